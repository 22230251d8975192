"""All invariants over one log."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cluster.store import Change
from proof.invariants import (
    commands,
    evictions,
    gangs,
    idle,
    jobs,
    log,
    made,
    nodes,
    ownership,
    pods,
    policies,
    queues,
    quotas,
    waiting,
)
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture

MODULES = (log, nodes, pods, gangs, evictions, jobs, policies, made, queues, quotas, ownership, commands, waiting, idle)
INVARIANTS: tuple[type[Invariant], ...] = tuple(invariant for module in MODULES for invariant in module.INVARIANTS)
LAG_MS = 5000  # a cycle over a large cluster takes seconds, and decides by what it read when it began


class Judge:
    """All invariants over one log, taken change by change from its first revision.

    `only` names the invariants that are asked. `lag_ms` is how long ago a bound
    may have been lowered without the scheduler having known of it when it
    wrote: where each of its turns is one step, as in a simulation, 0 is exact.
    """

    def __init__(self, *, only: Collection[str] | None = None, lag_ms: int = LAG_MS) -> None:
        names = {invariant.name for invariant in INVARIANTS}
        if unknown := set(only or ()) - names:
            raise ValueError(
                f"There is no invariant {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}."
            )
        self.picture = Picture(lag_ms)
        self._all = [kind(self.picture) for kind in INVARIANTS if only is None or kind.name in only]
        self._of_every_kind = [each.take for each in self._all if each.kinds is None]
        kinds = {kind for each in self._all for kind in each.kinds or ()}
        self._of_kind = {
            kind: [each.take for each in self._all if each.kinds is None or kind in each.kinds] for kind in kinds
        }

    @property
    def revision(self) -> int:
        """The last revision that was taken."""
        return self.picture.revision

    def take(self, change: Change) -> None:
        """Judge a change; raise Broken at the first thing that must not be."""
        step = self.picture.take(change)
        for judge in self._of_kind.get(change.resource, self._of_every_kind):
            judge(step)

    def set_lag(self, lag_ms: int) -> None:
        """Take another `lag_ms` from now on: somebody was stopped between what he read and what he writes."""
        self.picture.lag_ms = lag_ms

    def excuse(self, revision: int) -> None:
        """Know that what a revision tells, which is still to be taken, is not true: it is not judged, what comes of it is."""
        self.picture.untrue.add(revision)

    def finish(self) -> None:
        """Judge what waited for the next change: the log ends here."""
        for invariant in self._all:
            invariant.finish()

    def settle(self, now: int) -> None:
        """Judge what must hold once nothing moves any more; now is in epoch milliseconds. Raise Broken."""
        self.finish()
        for invariant in self._all:
            invariant.settle(now)


# These expect what is done together in neighbouring rows of the log, as one transaction writes it.
TOGETHER = frozenset(
    {
        gangs.BoundWhole.name,
        gangs.RunsWhole.name,
        commands.CarriedOut.name,
        *(each.name for each in evictions.INVARIANTS),
    }
)

# What is asked of a log in which controllers work by one request after the other.
BY_REQUESTS = frozenset(each.name for each in INVARIANTS) - TOGETHER

# These expect that controllers hear each change of a pod, also one between two others that nobody was there to hear.
LOSSLESS_ONLY = frozenset({commands.FailuresReported.name, *(each.name for each in policies.INVARIANTS)})


def check(changes: Iterable[Change], *, now: int | None = None, by_requests: bool = False) -> Judge:
    """Judge a whole log, and its end as a cluster at rest when now is given; return the judge.

    by_requests: who worked on the cluster did so one request after the other, as controllers of another system do.
    """
    judge = Judge(only=BY_REQUESTS if by_requests else None)
    for change in changes:
        judge.take(change)
    judge.finish()
    if now is not None:
        judge.settle(now)
    return judge
