"""A change of one thing costs what it touches, whatever else there is.

Each line of a table is a change or a question, each column what there are many of beside it. What it costs (`tests.costs.meter`)

1    is the same at a thousand as at ten
n    grows with them, each of many costing no more than each of few, for the reason that is given
"""

from collections import Counter
from functools import cache

import pytest
from django.db import transaction

from tests.costs.counting import Counting
from tests.costs.scheduling import Scheduling
from tests.costs.serving import Serving
from tests.costs.watching import Watching

pytestmark = pytest.mark.django_db
FEW, SOME, MANY = 10, 20, 1000
# A cycle shares the cluster between all queues, and looks at all who wait, whatever changed: what a change costs is what the
# cycle after it does more. The order of those who wait is by their priorities, and what they are told has the taints and
# HyperNodes in it. Which nodes are in a HyperNode is worked out anew for all, for those who wait to be close together.
SCHEDULING = """
                  queues  classes  namespaces  nodes  taints  HyperNodes  pods  running  waiting
a cycle                n        1           1      1       1           1     1        1        n
a queue                1        1           1      1       1           1     1        1        1
a priority class       1        1           1      1       1           1     1        1        n
a node                 1        1           1      n       1           n     1        1        1
a taint                1        1           1      1       1           1     1        1        n
a namespace            1        1           1      1       1           1     1        1        1
a quota                1        1           1      1       1           1     1        1        1
a HyperNode            1        1           1      n       1           n     1        1        n
a pod                  1        1           1      1       1           1     1        1        1
a job                  1        1           1      1       1           1     1        1        1
"""
WATCHING = """
            watches  names  pages
to watches        1      1      1
to pages          1      1      1
"""
# What is said of a queue is said of those below it, too, and root is above all of them; a queue's wish counts for them as well.
COUNTING = """
                            queues  namespaces  groups  pods
a queue's weight                 n           1       1     1
a queue's wish                   n           1       1     1
a queue's parent                 n           1       1     1
a new queue                      n           1       1     1
a namespace's queue              1           1       1     n
a group's phase                  n           1       1     1
a queue with all below it        1           1       1     1
the tree of queues               n           1       1     1
"""
# Lists and sums have what they list and sum in them, the form what can be chosen. What others may see, do and did costs nobody
# anything, and a job's page, its admission and the controllers' work for it have only what is the job's own.
SERVING = """
                       queues  classes  namespaces  users  nodes  jobs  deeds  decisions  events  changes  mine
the overview                n        1           1      1      n     n      1          1       1        1     n
the jobs                    1        1           1      1      1     n      1          1       1        1     n
a job                       1        1           1      1      1     1      1          1       1        1     1
a job's decisions           1        1           1      1      1     1      1          1       1        1     1
a job's events              1        1           1      1      1     1      1          1       n        1     1
the decisions               1        1           1      1      1     1      1          n       1        1     1
the audit                   1        1           1      1      1     1      n          1       1        1     1
the form of a job           n        n           n      1      n     1      1          1       1        1     1
the queues                  n        1           1      1      1     n      1          1       1        1     n
a queue                     n        1           1      1      1     n      1          1       1        1     n
the nodes                   1        1           1      1      n     1      1          1       1        1     1
a node                      1        1           1      1      1     1      1          1       1        1     n
making a job                1        1           1      1      1     1      1          1       1        1     1
deleting a job              1        1           1      1      1     1      1          1       1        1     1
jobs                        1        1           1      1      1     1      1          1       1        1     1
history                     1        1           1      1      1     1      1          1       1        1     1
garbage                     1        1           1      1      1     1      1          1       1        1     1
quotas                      1        1           1      1      1     1      1          1       1        1     1
"""
TABLES = {Serving: SERVING, Scheduling: SCHEDULING, Watching: WATCHING, Counting: COUNTING}


def cells():
    for world, table in TABLES.items():
        kinds, *lines = table.strip().splitlines()
        assert kinds.split() == list(world.MANY)
        for line in lines:
            what, *growths = line.rsplit(None, len(world.MANY))
            for kind, growth in zip(world.MANY, growths, strict=True):
                yield pytest.param(world, what, kind, growth, id=f"{what}, {kind}")


@pytest.mark.parametrize(("world", "what", "kind", "growth"), list(cells()))
def test_cost(world, what, kind, growth):
    many = world.MOST.get(kind, MANY)
    few, all_of_them = costs(world, "", FEW)[what], costs(world, kind, many)[what]
    if growth == "1":
        grown = growth_of(few, all_of_them)
        assert grown.total() < (many - FEW) / 10, (
            f"{what} costs more with {many} {kind} than with {FEW}: {growth_text(grown)}"
        )
        return
    some = costs(world, kind, SOME)[what]
    each = growth_of(few, some).total() / (SOME - FEW)
    grown = growth_of(some, all_of_them)
    assert each > 0.1, f"{what} does not cost more with more {kind}: write 1"
    assert grown.total() < 1.5 * (each + 1) * (many - SOME), (
        f"{what} costs more for each of many {kind} than for each of few: {growth_text(grown)}"
    )


@cache
def remember(world):
    """Have this process remember what it works out once and for all."""
    with transaction.atomic(), world.running():
        world().costs()
        transaction.set_rollback(True)


@cache
def costs(world, kind, number):
    """Return what everything costs in a world with so many of a kind, and few of all others."""
    remember(world)
    with transaction.atomic(), world.running():
        made = world()
        for each in world.MANY:
            made.add(each, range(FEW))
        if kind:
            made.add(kind, range(FEW, number))
        found = made.costs()
        transaction.set_rollback(True)
    return found


def growth_of(before, after):
    grown = Counter(after)
    grown.subtract(before)
    return grown


def growth_text(grown):
    """Say where a cost grew most."""
    return "; ".join(f"{count} more in {location}" for location, count in grown.most_common(8) if count > 0)
