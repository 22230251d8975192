"""Scorers: the numbers that Volcano gives, and that two ways to reckon them agree."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cycle.weights import weights_of
from scheduler.engine.pod_class import PodClass
from scheduler.engine.scoring import Scorer, Weights
from scheduler.policy.policy import Fit, Scoring, Strategy
from tests.campaign import examples
from tests.tables import cases

GI = 1024**3
COLUMNS = {"cpu": 0, "memory": 1, "nvidia.com/gpu": 2, "pods": 3}


little, much = (partial(Strategy, much=each) for each in (False, True))


@pytest.mark.shows("scheduler 3.8/leastrequested.weight", "scheduler 3.8/mostrequested.weight")
@pytest.mark.shows("scheduler 3.8/no requests", "scheduler 3.8/balancedresource.weight", "scheduler 3.9/binpack.weight")
@pytest.mark.shows("scheduler 3.9/binpack.cpu, binpack.memory", "scheduler 3.9/binpack.resources")
@pytest.mark.shows("scheduler 3.9/score", "scheduler 3.11 resource-strategy-fit/resources")
@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/prefix*", "scheduler 3.11 resource-strategy-fit/overflow")
@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/sra", "scheduler 3.11 resource-strategy-fit/annotations")
@cases("scoring, request_, whole, used, expected", {
    "binpack: Volcano's own test vector (§3.9)": (
        Scoring(binpack=10, resources=(("cpu", 2), ("memory", 3))), (1000, GI, 0, 1), (2000, 4 * GI, 0, 9),
        (1000, GI, 0, 1), 700,
    ),
    "binpack: a resource of its own": (
        Scoring(binpack=1, resources=(("cpu", 1), ("nvidia.com/gpu", 3))), (1000, 0, 1, 1), (4000, GI, 4, 9),
        (1000, 0, 3, 1), 87.5,
    ),
    "least: what stays free, each rounded down":
        (Scoring(least=1), (1000, 0, 0, 1), (4000, 3 * GI, 0, 9), (0, GI, 0, 0), (75 + 66) // 2),
    "most: what is used, times the weight":
        (Scoring(most=2), (1000, GI, 0, 1), (4000, 4 * GI, 0, 9), (1000, 0, 0, 0), 2 * ((50 + 25) // 2)),
    "balanced: half the difference of two":
        (Scoring(balanced=1), (1000, GI, 0, 1), (4000, 4 * GI, 0, 9), (2000, 0, 0, 0), 75),
    "balanced: the deviation of three where GPUs are asked for":
        (Scoring(balanced=1), (1000, GI, 1, 1), (4000, 4 * GI, 4, 9), (0, 0, 2, 0), 76),
    "fit: the longest beginning of a name": (
        Scoring(fit=Fit(1, (much("nvidia.com/*", 1), little("nvidia.com/g*", 3), much("cpu", 1)))), (1000, 0, 1, 1),
        (4000, GI, 4, 9), (3000, 0, 0, 0), 100 * (1.0 + 3 * 0.75) / 4,
    ),
    "fit: a node with one of two scarce resources": (
        Scoring(fit=Fit(1, (much("cpu", 1),), spare=2, scarce=(("nvidia.com/gpu", 1), ("example.com/foo", 3)))),
        (0, GI, 0, 1), (4000, GI, 2, 9), (0, 0, 0, 0), 200 * (1 - 1 / 4),
    ),
})  # fmt: skip
def test_scores(scoring, request_, whole, used, expected):
    """One of each; all others: `test_by_weights_each_pod_gets_the_node_that_is_best_for_it`."""
    some = PodClass(np.array(request_, dtype=np.int64), np.zeros(1, dtype=np.int32))
    free = [size - taken for size, taken in zip(whole, used, strict=True)]
    assert Scorer(weights_of(scoring, COLUMNS), some).one(free, whole) == expected


amounts = st.integers(0, 1 << 53)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    row = st.lists(amounts, min_size=width, max_size=width)
    whole = draw(st.lists(row, min_size=1, max_size=5))
    used = [[draw(st.integers(0, 2 * size)) for size in sizes] for sizes in whole]
    columns = list(range(width))
    weights = Weights(
        draw(st.integers(0, 1000)),
        tuple((c, draw(st.integers(0, 9))) for c in columns),
        *(draw(st.integers(0, 1000)) for _ in range(3)),
        tuple(columns[:2]),
        tuple(columns[2:3]),
        draw(st.integers(0, 1000)),
        tuple((c, draw(st.integers(1, 9)), draw(st.booleans())) for c in columns),
        draw(st.integers(0, 9)),
        tuple((c, 1) for c in columns[1:]),
        draw(st.integers(width, 9)),
    )
    request = np.array(draw(st.lists(amounts, min_size=width, max_size=width)), dtype=np.int64)
    whole = np.array(whole, dtype=np.int64)
    return weights, request, whole, whole - np.array(used, dtype=np.int64)


@examples(400)
@given(tables())
def test_one_node_and_many_nodes_are_scored_alike_to_the_last_bit(table):
    weights, request, whole, free = table
    scorer = Scorer(weights, PodClass(request, np.zeros(len(whole), dtype=np.int32)))
    singly = [scorer.one(f, w) for f, w in zip(free.tolist(), whole.tolist(), strict=True)]
    assert scorer.many(free, whole).tolist() == singly
