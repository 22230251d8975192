"""Placing gangs: the minimum of each gets nodes as a whole, or none of it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.engine import arrange
from scheduler.engine.cluster import Cluster
from scheduler.engine.filler import Filler
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.turns import Turns


class Placer(Filler):
    """Places gangs one by one on one cluster."""

    def place_minimum(self, gang: Gang) -> Attempt:
        """Place what must start together; if it is short, nothing is placed."""
        if not self.may_fit(gang):
            attempt = Attempt(gang)
            attempt.short = (0, 0)
            return attempt
        if gang.arranged is not None:
            return arrange.place_minimum(self, gang)
        return self.start_anywhere(gang, self.place_part)

    def fits(self, gang: Gang) -> bool:
        """Tell whether what must start together finds room; nothing is placed."""
        attempt = self.place_minimum(gang)
        if attempt.short is not None:
            return False
        self.undo(gang, attempt)
        return True


def place(
    cluster: Cluster, gangs: Sequence[Gang], *, pods: int = -1, tried: Mapping[int, Attempt] | None = None
) -> list[Attempt]:
    """Place gangs in the order of `scheduler.engine.turns`, and return one attempt for each.

    First fit with skipping: a gang whose minimum does not fit holds nothing and the next one is tried, unless its queue is FIFO.
    All nodes are scored as scheduler.engine.ranking says, or by the weights of the cluster, with the same result as placing pod
    after pod; the same input always gives the same answer. cluster.free and the accounts are left as after placing. pods is the
    column of `pods`. tried are attempts, by gang number, whose minima are settled: on the cluster already, or short.
    """
    placer = Placer(cluster, pods=pods)
    tried = tried or {}
    attempts = [Attempt(gang) for gang in gangs]
    turns = Turns(gangs, cluster.allocatable.sum(axis=0).tolist())
    while (turn := turns.take()) is not None:
        gang = gangs[turn.gang]
        if turn.is_rest:
            _place_rest(placer, turns, turn.gang, attempts[turn.gang])
        else:
            attempts[turn.gang] = attempt = tried.get(turn.gang) or placer.place_minimum(gang)
            if attempt.short is None:
                for number, taken in enumerate(attempt.taken):
                    turns.placed(turn.gang, placer.requests_of(gang, number), taken)
                if attempt.rest() is not None:
                    turns.again(turn.gang)
            elif gang.account is not None and gang.account.fifo:
                for behind in turns.close():
                    attempts[behind].behind = turn.gang
        turns.end()
    return attempts


def _place_rest(placer: Placer, turns: Turns, number: int, attempt: Attempt) -> None:
    """Place as many of the pods beyond the minimum as are due in one turn."""
    gang, some = attempt.gang, attempt.rest()
    if some is None:
        return
    request = placer.requests_of(gang, some)
    due = min(turns.most(number, request), gang.bins[some].count - attempt.taken[some])
    if gang.arranged is not None:
        for each, pods in arrange.place_more(placer, attempt, some, due):
            turns.placed(number, placer.requests_of(gang, each), pods)
    else:
        taken = placer.take(attempt, some, due)
        turns.placed(number, request, taken)
        if taken < due:
            attempt.full.add(some)  # room only shrinks; if pods placed later make some, the next cycle finds it
    if attempt.rest() is not None:
        turns.again(number)
