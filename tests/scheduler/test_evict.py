"""Finding victims: compared with trying all sets of them, on random small clusters."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import UNLIMITED, Cluster, PodClass
from scheduler.engine.evict import find_victims
from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.engine.leaving import Leaving
from scheduler.engine.units import Unit
from tests.campaign import examples

PODS = 1


def always(_account, _holds):
    return True


class Scene:
    """Nodes, pods on them in units, and a gang; amounts are (cpu, pods)."""

    def __init__(self, cpus, units, asked, need, *, ceiling=UNLIMITED):
        self.cpus, self.asked, self.need, self.ceiling = cpus, asked, need, ceiling
        self.units = [[(node % len(cpus), cpu) for node, cpu in pods] for pods in units]

    def used(self, units, node=None):
        return sum(cpu for pods in units for where, cpu in pods if node in (None, where))

    def left(self, gone=()):
        """Return what is free of each node when some units are gone."""
        stay = [pods for number, pods in enumerate(self.units) if number not in gone]
        return [cpu - self.used(stay, node) for node, cpu in enumerate(self.cpus)]

    def fits(self, gone=()):
        """Count pod by pod, node by node: exact, as the pods of the gang are alike."""
        stay = [pods for number, pods in enumerate(self.units) if number not in gone]
        room = sum(max(left, 0) // self.asked for left in self.left(gone))
        return room >= self.need and self.used(stay) + self.need * self.asked <= self.ceiling

    def find(self):
        root = Account("root", [self.ceiling, UNLIMITED], [0, 0], [0, 0])
        root.charge([(0, self.used(self.units))], 1)
        free = np.array([[cpu, 99] for cpu in self.left()], dtype=np.int64)
        whole = np.array([[cpu, 99] for cpu in self.cpus], dtype=np.int64)
        some = PodClass(np.array([self.asked, 1]), np.zeros(len(self.cpus), dtype=np.int16))
        self.cluster = Cluster(whole, free, [some])
        self.account = root
        gang = Gang((Bin(0, self.need),), (GangStep(self.need, (0,)),), account=root)
        return find_victims(self.cluster, gang, self._units(root), always, pods=PODS)

    def _units(self, account):
        for pods in self.units:
            holds = {}
            for node, cpu in pods:
                before = holds.get(node, (0, 0))
                holds[node] = (before[0] + cpu, before[1] + 1)
            yield Unit(holds, (sum(cpu for _, cpu in pods), len(pods)), len(pods), account)


@st.composite
def scenes(draw, *, most=3):
    cpus = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    pods = st.tuples(st.integers(0, 3), st.integers(1, 3))
    drawn = draw(st.lists(st.lists(pods, min_size=1, max_size=most), max_size=7))
    scene = Scene(cpus, [], draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    for unit in drawn:  # as long as they fit
        scene.units.append([(node % len(cpus), cpu) for node, cpu in unit])
        if min(scene.left()) < 0:
            scene.units.pop()
    scene.ceiling = draw(st.one_of(st.just(UNLIMITED), st.integers(scene.used(scene.units), 30)))
    return scene


def subsets(numbers):
    return chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1))


@pytest.mark.shows("scheduler 2.4/node", "scheduler 11/22")
@examples(300)
@given(scenes())
def test_victims_are_found_where_any_set_of_them_helps(scene):
    found = scene.find()
    assert (found is not None) == any(scene.fits(each) for each in subsets(range(len(scene.units))))


@pytest.mark.shows("scheduler 2.4/node", "scheduler 11/19", "scheduler 11/21")
@examples(300)
@given(scenes())
def test_with_the_victims_gone_the_gang_fits_and_without_any_of_them_it_does_not(scene):
    found = scene.find()
    if found is None:
        return
    victims = set(found[0])
    assert scene.fits(victims)
    assert not any(scene.fits(victims - {each}) for each in victims)


@pytest.mark.shows("scheduler 11/2")
@examples(300)
@given(scenes())
def test_state_afterwards_is_what_was_decided(scene):
    found = scene.find()
    victims = set(found[0]) if found else set()
    left = scene.left(victims)
    if found:
        for node in found[1].nodes(0).tolist():
            left[node] -= scene.asked
    assert scene.cluster.free[:, 0].tolist() == left
    stay = [pods for number, pods in enumerate(scene.units) if number not in victims]
    assert scene.account.used[0] == scene.used(stay) + (scene.need * scene.asked if found else 0)


@st.composite
def scenes_of_equals(draw):
    """Full nodes with pods of one CPU, each of which may go alone."""
    cpus = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    units = [[(node, 1)] for node, cpu in enumerate(cpus) for _ in range(draw(st.integers(0, cpu)))]
    return Scene(cpus, draw(st.permutations(units)), draw(st.integers(1, 3)), draw(st.integers(1, 4)))


@examples(200)
@given(scenes_of_equals())
def test_among_equals_as_few_go_as_possible(scene):
    found = scene.find()
    sizes = [len(each) for each in subsets(range(len(scene.units))) if scene.fits(each)]
    assert (len(found[0]) if found else None) == min(sizes, default=None)


@examples(100)
@given(scenes())
def test_same_question_has_the_same_answer(scene):
    first, second = scene.find(), scene.find()
    assert (first and first[0]) == (second and second[0])


def test_what_is_going_is_there_later_and_what_is_placed_stays():
    account = Account("q", [UNLIMITED] * 2, [0, 0], [0, 0])
    account.charge([(0, 3)], 1)
    cluster = Cluster(np.array([[4, 9]]), np.array([[1, 9]]), [])
    leaving = Leaving(cluster)
    leaving.add(0, [2, 1], account)
    leaving.add(None, [1, 1], account)
    with leaving.gone():
        assert cluster.free.tolist() == [[3, 10]]
        assert account.used == [0, -2]
        cluster.free[0, 0] -= 3
    assert cluster.free.tolist() == [[-2, 9]]
    assert account.used == [3, 0]
