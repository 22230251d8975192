"""Whom to evict so that the minimum of a gang fits: as few as possible, those first that may go first.

The cluster is as it will be when all is gone that is going (`scheduler.victims.leaving`). Pods of the gang get nodes one by
one, each the node where the least is lost: first nodes with room, then those where units of the lowest tier make some, of
these where the fewest pods go, then where the youngest go. A unit that goes leaves room on all of its nodes, which the next pods
find there. Then units go whose queues have to use less, if a ceiling is in the way. No unit goes that would take from a budget more pods
than it allows. In the end it is tried for each unit, the last first, whether it can stay after all. The answer counts only if
`Placer.place_minimum`, which places the gang later, finds room for it then.

For pods with rules about other pods a node also costs whoever is in the way of those (`scheduler.victims.conflicts`). Where pods need
others near them, or are spread among them, it may help that these stay: if all else fails everybody goes but those.

Which HyperNode a gang gets that is arranged, and where its parts are, is for `scheduler.victims.evict_arranged`.
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

MOST_DOMAINS = 8
"""So many HyperNodes in which evictions help are compared, unless somebody says otherwise (reference/volcano-scheduler §2.6)."""


def find_victims(
    cluster: Cluster, gang: Gang, units: Iterable[Unit], yields: Yields, *, pods: int = -1, domains: int = MOST_DOMAINS
) -> tuple[list[int], Attempt] | None:
    """Return the numbers of the units to evict and the gang placed in their room, or None when nothing helps.

    units come in the order in which they are to go, numbered from 0. Afterwards the victims are gone from the cluster and from
    the accounts, and the gang is on them; with None nothing has changed. domains: so many HyperNodes are compared in which it helps.
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
    """Have everybody go at first; then everybody but those whose going may do harm."""
    run = partial(search.run, search.settle_at_any_cost)
    if arranger is not None:
        run = partial(arranger.run, arranger.settle_at_any_cost)
    return run() or (run() if search.spare_needed() else None)
