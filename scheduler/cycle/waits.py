"""How long groups may wait before they are let in: the plugin sla (reference/volcano-scheduler §3.11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scheduler.policy.arguments import duration_of

if TYPE_CHECKING:
    from scheduler.policy.policy import Policy


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
