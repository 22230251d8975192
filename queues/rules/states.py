"""The state of a queue, from its wish and from the work that is left in it.

`spec.state` is the wish, `status.state` the observed state (seed: queue state
management). A queue below a closed one is closed with it, whatever its own
wish, and opens again with it. The work left in a queue are unfinished pod
groups, and pods on nodes without a group, in it and in all queues below it.

Volcano's own definition of queues has no `spec.state`, and an API server drops
fields that a definition does not have. The wish of such a queue follows from
its last state, written by us or by Volcano: Closed if that is Closed or
Closing, unless Volcano's annotation says that it is closed by its parent.

Clients of Volcano open and close a queue by writing `status.state`. For a queue
with `spec.state` this is a wish as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kube.kinds.scheduling import PodGroupPhase, QueueState
from kube.usage import ROOT_QUEUE

CLOSED_BY_PARENT = "ClosedByParent"
CLOSED_BY_PARENT_ANNOTATION = "volcano.sh/closed-by-parent"  # "true" or "false"
FINISHED = frozenset({PodGroupPhase.COMPLETED.value})


class QueueStatus(NamedTuple):
    """The state of a queue, and why, for people."""

    state: QueueState
    reason: str
    message: str


def closing_problem(name: str) -> str:
    """Return why the queue of this name may not be closed; empty when it may."""
    return "root queue can not be closed; close the queues below it." if name == ROOT_QUEUE else ""


class Case(NamedTuple):
    """A row of the table: the wish, whether a queue above is closed, whether work is left, and the resulting status."""

    wish: QueueState
    is_closed_above: bool
    has_work: bool
    state: QueueState
    reason: str
    message: str


TABLE = (
    Case(QueueState.OPEN, False, False, QueueState.OPEN, "Opened", "The queue accepts jobs."),
    Case(QueueState.OPEN, False, True, QueueState.OPEN, "Opened", "The queue accepts jobs."),
    Case(
        QueueState.OPEN, True, True, QueueState.CLOSING, CLOSED_BY_PARENT,
        "Closing with its parent queue {above}: {left}. Open {above} to accept jobs again.",
    ),
    Case(
        QueueState.OPEN, True, False, QueueState.CLOSED, CLOSED_BY_PARENT,
        "Closed with its parent queue {above}. Open {above} to accept jobs again.",
    ),
    Case(
        QueueState.CLOSED, False, True, QueueState.CLOSING, "Closing",
        "Closing: {left}. What is in the queue keeps being scheduled; new jobs are refused.",
    ),
    Case(
        QueueState.CLOSED, True, True, QueueState.CLOSING, "Closing",
        "Closing: {left}. What is in the queue keeps being scheduled; new jobs are refused.",
    ),
    Case(QueueState.CLOSED, False, False, QueueState.CLOSED, "Closed", "The queue is empty and accepts no jobs."),
    Case(QueueState.CLOSED, True, False, QueueState.CLOSED, "Closed", "The queue is empty and accepts no jobs."),
)  # fmt: skip

_OURS = frozenset((case.state.value, case.reason) for case in TABLE)
_ROWS = {(case.wish, case.is_closed_above, case.has_work): case for case in TABLE}


def wish(spec_state: str, state: str, *, is_closed_by_parent: bool) -> str:
    """Return the wish of a queue: its `spec.state`, or what follows from its last state."""
    if spec_state:
        return spec_state
    is_closed = state in (QueueState.CLOSED, QueueState.CLOSING) and not is_closed_by_parent
    return (QueueState.CLOSED if is_closed else QueueState.OPEN).value


def written_wish(status: Mapping[str, Any]) -> str:
    """Return Open or Closed if a client wrote that as the state of a queue, "" if the state is the controller's.

    The controller writes a matching reason beside it, which clients leave as it was or leave out.
    """
    state, reason = status.get("state"), status.get("reason")
    if state not in (QueueState.OPEN, QueueState.CLOSED) or (state, reason) in _OURS:
        return ""
    return str(state)


def next_state(wish: str, closed_above: str, groups: Mapping[str, int], loose: int = 0) -> QueueStatus:
    """Return the state that follows.

    `closed_above` names the nearest closed queue above, or is empty; `groups`
    counts pod groups in the queue and below it by the phase as which they count
    (`kube.usage.counted_phase`), `loose` the pods on nodes without a group. A wish that is neither Open nor
    Closed is Open (seed: an empty state means Open).
    """
    wished = QueueState.CLOSED if wish == QueueState.CLOSED else QueueState.OPEN
    left = what_is_left(groups, loose)
    case = _ROWS[wished, bool(closed_above), bool(left)]
    return QueueStatus(case.state, case.reason, case.message.format(above=closed_above, left=left))


def closed_above(name: str, parents: Mapping[str, str], wishes: Mapping[str, str]) -> str:
    """Return the nearest queue above that wishes to be closed; root never is."""
    seen = {name}
    above = parents.get(name, "")
    # A circle of parents is refused by admission; a stored one must not hang the controller.
    while above and above != ROOT_QUEUE and above not in seen:
        if wishes.get(above) == QueueState.CLOSED:
            return above
        seen.add(above)
        above = parents.get(above, "")
    return ""


def what_is_left(groups: Mapping[str, int], loose: int) -> str:
    """Return in words what keeps a queue from being empty; "" if nothing does."""
    unfinished = {phase: number for phase, number in groups.items() if number and phase not in FINISHED}
    parts = []
    if number := sum(unfinished.values()):
        listed = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(unfinished.items()))
        parts.append(f"{number} unfinished pod {'group is' if number == 1 else 'groups are'} left ({listed})")
    if loose:
        parts.append("1 pod without a group is left" if loose == 1 else f"{loose} pods without a group are left")
    return " and ".join(parts)
