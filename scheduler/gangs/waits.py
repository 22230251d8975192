"""How long groups may wait: until the plugin sla admits them (reference/volcano-scheduler §3.11), and for their pods to be created."""

from __future__ import annotations

from typing import Protocol

from scheduler.policy.arguments import duration_of
from scheduler.policy.policy import Policy
from scheduler.records.records import Group

GRACE_MS = 10_000
"""How long the pods of a gang may take to be created before that counts as waiting."""


class Waiter(Protocol):
    """A group that waits: the fields on which its place in line depends."""

    @property
    def key(self) -> str: ...
    @property
    def created(self) -> int: ...
    @property
    def priority_class(self) -> str: ...
    @property
    def waits(self) -> str: ...


def deadline(policy: Policy, group: Waiter) -> int | None:
    """Return when a group has waited long enough, in ms; None where it may wait forever.

    The group's own duration takes precedence over the policy's, unless it cannot be read.
    """
    if not policy.sla:
        return None
    wait = duration_of(group.waits) or policy.waits_ms
    return None if wait is None else group.created + wait


def made_until(group: Group, now: int) -> int | None:
    """Return until when pods of a group may be about to be created, in ms; None once that is over.

    None also if it changed later than now, before the clock was set back:
    the wait would last until the clock shows that time again.
    """
    due = group.changed + GRACE_MS
    return due if group.changed <= now < due else None
