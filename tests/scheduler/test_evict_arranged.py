"""Victims for gangs that are to be close together or have parts: compared with trying all sets of them, on small trees of HyperNodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import UNLIMITED, Cluster, PodClass
from scheduler.engine.evict import find_victims
from scheduler.engine.gang import Arranged, Bin, Gang, GangStep, Part, PartStep
from scheduler.engine.hyper_nodes import HyperNodes, Named, Topology
from scheduler.engine.units import Unit
from tests.campaign import examples
from tests.tables import cases

from .test_evict import PODS, Scene, always, subsets

relaxed = examples(250)


class Network(Scene):
    """A scene in a tree: nodes by `width` are of tier 1, twice as many of tier 2, all of tier 3.

    The gang has `parts` equal parts of `size` pods, of which so many start as `need` pods, and `few` parts, ask for; size 0 is no part
    at all. highest is the tier that all of it may span, inner that of a part; None for any.
    """

    width, size, parts, few, highest, inner, is_hard = 1, 0, 1, 0, None, None, True

    def domains(self, tier):
        """Return the nodes of each domain of a tier."""
        nodes = range(len(self.cpus))
        step = {1: self.width, 2: 2 * self.width}.get(tier, len(nodes))
        return [set(nodes[first : first + step]) for first in range(0, len(nodes), step)]

    def roots(self):
        """Return the sets of nodes in one of which all of the gang has to be."""
        tiers = [3] if self.highest is None or not self.is_hard else range(1, self.highest + 1)
        return [nodes for tier in tiers for nodes in self.domains(tier)]

    def wanted(self):
        """Return how many parts start, or pods where there are no parts."""
        return max(self.few, -(-self.need // self.size)) if self.size else self.need

    def fits(self, gone=()):
        """Count by node, then by the domains in which a part may be: exact, as all pods and all parts are alike."""
        stay = [pods for number, pods in enumerate(self.units) if number not in gone]
        rooms = [max(left, 0) // self.asked for left in self.left(gone)]
        pods = self.wanted() * max(self.size, 1)
        if self.used(stay) + pods * self.asked > self.ceiling:
            return False
        return any(self._room(rooms, root) >= self.wanted() for root in self.roots())

    def _room(self, rooms, root):
        if not self.size:
            return sum(rooms[node] for node in root)
        tier = 3 if self.inner is None else self.inner
        return sum(sum(rooms[node] for node in nodes & root) // self.size for nodes in self.domains(tier))

    def gang(self, account):
        """Return the gang as the engine has it."""
        topology = None if self.highest is None else Topology(self.is_hard, self.highest)
        if not self.size:
            return Gang((Bin(0, self.need),), (GangStep(self.need, (0,)),), account, arranged=Arranged(topology))
        inner = None if self.inner is None else Topology(True, self.inner)
        numbers = tuple(range(self.parts))
        parts = tuple(Part(f"p{number}", 0, (number,), self.size, inner) for number in numbers)
        steps = (GangStep(self.need, numbers),) if self.need else ()
        part_steps = (PartStep(self.few, numbers),) if self.few else ()
        bins = tuple(Bin(0, self.size, number) for number in numbers)
        return Gang(bins, steps, account, arranged=Arranged(topology, parts, part_steps))

    def find(self):
        root = Account("root", [self.ceiling, UNLIMITED], [0, 0], [0, 0])
        root.charge([(0, self.used(self.units))], 1)
        free = np.array([[cpu, 99] for cpu in self.left()], dtype=np.int64)
        whole = np.array([[cpu, 99] for cpu in self.cpus], dtype=np.int64)
        some = PodClass(np.array([self.asked, 1]), np.zeros(len(self.cpus), dtype=np.int16))
        self.cluster, self.account = Cluster(whole, free, [some]), root
        self.cluster.hyper_nodes = HyperNodes(
            (Named(f"h{min(nodes)}", tier, "", sorted(nodes)) for tier in (1, 2, 3) for nodes in self.domains(tier)),
            [f"n{number}" for number in range(len(self.cpus))],
        )
        return find_victims(self.cluster, self.gang(root), self._units(root), always, pods=PODS)


@st.composite
def networks(draw):
    cpus = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    scene = Network(cpus, [], draw(st.integers(1, 3)), draw(st.integers(1, 5)))
    pods = st.tuples(st.integers(0, 5), st.integers(1, 3))
    for unit in draw(st.lists(st.lists(pods, min_size=1, max_size=3), max_size=7)):  # as long as they fit
        scene.units.append([(node % len(cpus), cpu) for node, cpu in unit])
        if min(scene.left()) < 0:
            scene.units.pop()
    scene.width = draw(st.integers(1, 3))
    scene.highest = draw(st.sampled_from([None, 1, 2, 3]))
    scene.is_hard = draw(st.sampled_from([True, True, False]))
    if scene.highest is None or draw(st.booleans()):
        scene.size, scene.parts = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        scene.inner = draw(st.sampled_from([None, 1, 2]))
        scene.few = draw(st.integers(0, scene.parts))
        scene.need = draw(st.integers(0 if scene.few else 1, scene.parts * scene.size))
    scene.ceiling = draw(st.one_of(st.just(UNLIMITED), st.integers(scene.used(scene.units), 25)))
    return scene


@pytest.mark.shows("scheduler 2.6/for whom", "scheduler 11/18")
@relaxed
@given(networks())
def test_victims_are_found_where_any_set_of_them_helps(scene):
    found = scene.find()
    assert (found is not None) == any(scene.fits(each) for each in subsets(range(len(scene.units))))


@pytest.mark.shows("scheduler 2.6/for whom")
@relaxed
@given(networks())
def test_with_the_victims_gone_the_gang_fits_and_without_any_of_them_it_does_not(scene):
    found = scene.find()
    if found is None:
        return
    victims = set(found[0])
    assert scene.fits(victims)
    assert not any(scene.fits(victims - {each}) for each in victims)


@relaxed
@given(networks())
def test_the_gang_is_close_together_and_its_parts_are_whole(scene):
    found = scene.find()
    victims = set(found[0]) if found else set()
    left = scene.left(victims)
    if found:
        nodes = [attempt_nodes.tolist() for attempt_nodes in map(found[1].nodes, range(len(found[1].runs)))]
        assert any({node for some in nodes for node in some} <= root for root in scene.roots())
        for some in nodes if scene.size else ():
            tier = 3 if scene.inner is None else scene.inner
            assert len(some) in (0, scene.size)
            assert any(set(some) <= domain for domain in scene.domains(tier))
        for node in (node for some in nodes for node in some):
            left[node] -= scene.asked
    assert scene.cluster.free[:, 0].tolist() == left
    stay = [pods for number, pods in enumerate(scene.units) if number not in victims]
    placed = found[1].placed() if found else 0
    assert scene.account.used[0] == scene.used(stay) + placed * scene.asked


@relaxed
@given(networks())
def test_same_question_has_the_same_answer(scene):
    first, second = scene.find(), scene.find()
    assert (first and first[0]) == (second and second[0])


@st.composite
def networks_of_equals(draw):
    """Full nodes with pods of one CPU, each of which may go alone, and a gang that has to be in one HyperNode."""
    cpus = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    units = [[(node, 1)] for node, cpu in enumerate(cpus) for _ in range(draw(st.integers(0, min(cpu, 2))))]
    scene = Network(cpus, draw(st.permutations(units)), draw(st.integers(1, 2)), draw(st.integers(1, 4)))
    scene.width, scene.highest = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    return scene


@relaxed
@given(networks_of_equals())
def test_among_equals_the_hyper_node_is_chosen_where_as_few_go_as_possible(scene):
    found = scene.find()
    sizes = [len(each) for each in subsets(range(len(scene.units))) if scene.fits(each)]
    assert (len(found[0]) if found else None) == min(sizes, default=None)


def unit(account, node, tier=0, cpu=1):
    return Unit({node: (cpu, 1)}, (cpu, 1), 1, account, tier)


@pytest.mark.shows("scheduler 2.6/maxDomains")
@cases("most, victims", {
    "the one where fewest go": (8, [3]),
    "the first that will do": (1, [0, 1]),
})  # fmt: skip
def test_so_many_hyper_nodes_are_compared(most, victims):
    """Two pods of one CPU each go in the first HyperNode, one of two CPUs in the second."""
    account = Account("q", [UNLIMITED] * 2, [0, 0], [0, 0])
    cluster = Cluster(
        np.array([[2, 9], [2, 9]]), np.array([[0, 7], [0, 7]]), [PodClass(np.array([1, 1]), np.zeros(2, "i2"))]
    )
    cluster.hyper_nodes = HyperNodes([Named("a", 1, "", [0]), Named("b", 1, "", [1])], ["n0", "n1"])
    units = [unit(account, 0), unit(account, 0), unit(account, 0, tier=1, cpu=0), unit(account, 1, cpu=2)]
    gang = Gang((Bin(0, 2),), (GangStep(2, (0,)),), account, arranged=Arranged(Topology(True, 1)))
    found = find_victims(cluster, gang, units, always, pods=PODS, domains=most)
    assert found is not None
    assert found[0] == victims
