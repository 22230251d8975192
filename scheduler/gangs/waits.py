"""How long groups may wait: before they are let in by the plugin sla (reference/volcano-scheduler §3.11), and for their pods to be made."""

from __future__ import annotations

from typing import Protocol

from scheduler.policy.arguments import duration_of
from scheduler.policy.policy import Policy
from scheduler.records.records import Group

GRACE_MS = 10_000
"""How long pods of a gang may be about to be made before that is called waiting."""


class Waiter(Protocol):
    """A group that waits, as far as its place depends on it."""

    @property
    def key(self) -> str: ...
    @property
    def created(self) -> int: ...
    @property
    def priority_class(self) -> str: ...
    @property
    def waits(self) -> str: ...


def deadline(policy: Policy, group: Waiter) -> int | None:
    """Return when a group has waited long enough, in ms; None where it may wait for ever.

    What the group says itself goes before what the policy says, unless it is no duration.
    """
    if not policy.sla:
        return None
    wait = duration_of(group.waits) or policy.waits_ms
    return None if wait is None else group.created + wait


def made_until(group: Group, now: int) -> int | None:
    """Return until when pods of a group may be about to be made, in ms; None once that is over.

    What changed later than now did so before the clock was set back: it
    would be waited for until the clock shows that time again.
    """
    due = group.changed + GRACE_MS
    return due if group.changed <= now < due else None
