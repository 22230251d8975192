"""Which units to evict so that the minimum of a gang fits: as few as possible, in the order in which they may go.

The search works on the cluster without the pods that are being deleted (`scheduler.victims.leaving`). The gang's pods get nodes one by
one, each the node where the least is lost: first nodes with room, then those where evicting units of the lowest tier makes room, of
these those with the fewest victims, then with the youngest. A unit leaves room on all of its nodes, which later pods of the gang can
use. Then, if a ceiling is in the way, units of queues that have to use less go. No unit goes that would take more pods from a budget
than it allows. At the end each unit, the last first, is tried again: can it stay after all? The result counts only if
`Placer.place_minimum`, which places the gang later, finds room for it.

For pods with rules about other pods, a node also costs the units in the way of those (`scheduler.victims.conflicts`). Where pods need
others near them, or are spread among them, it may help if these stay: if all else fails, every unit but those goes.

`scheduler.victims.evict_arranged` decides which HyperNode an arranged gang gets, and where its parts are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.victims.evict_arranged import Arranger
from scheduler.victims.trial import Yields
from scheduler.victims.units import Drawn, Unit
from scheduler.victims.victim_search import Search

MAX_DOMAINS = 8
"""How many HyperNodes in which evictions help are compared by default (reference/volcano-scheduler §2.6)."""


def find_victims(
    cluster: Cluster, gang: Gang, units: Iterable[Unit], yields: Yields, *, pods: int = -1, domains: int = MAX_DOMAINS
) -> tuple[list[int], Attempt] | None:
    """Return the numbers of the units to evict and the gang placed in their room, or None when nothing helps.

    units come in the order in which they are to go, numbered from 0. Afterwards the victims are gone from the cluster and the
    accounts, and the gang is placed there; with None nothing has changed. domains: how many HyperNodes in which it helps are compared.
    """
    drawn = Drawn(units, gang, cluster)
    while True:
        more = drawn.draw()
        search = Search(cluster, gang, drawn, yields, pods)
        arranger = None if gang.arranged is None else Arranger(search, drawn, domains)
        found = search.run(search.settle) if arranger is None else arranger.run(arranger.settle)
        if found is not None:
            return found
        if not more:
            return _at_any_cost(search, arranger)


def _at_any_cost(search: Search, arranger: Arranger | None) -> tuple[list[int], Attempt] | None:
    """Try it without all units; then without all but those whose eviction may do harm."""
    run = partial(search.run, search.settle_at_any_cost)
    if arranger is not None:
        run = partial(arranger.run, arranger.settle_at_any_cost)
    return run() or (run() if search.spare_needed() else None)
