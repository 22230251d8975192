"""Finding victims, for whatever gangs: compared with trying all sets of them."""

import copy
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import UNLIMITED
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Arranged, Bin, Gang, GangStep, Part, PartStep
from scheduler.engine.hyper_nodes import HyperNodes, Named, Topology
from scheduler.engine.place import Placer
from scheduler.engine.pod_class import PodClass
from scheduler.engine.scoring import Weights
from scheduler.engine.spared import Spared
from scheduler.victims.evict import find_victims
from scheduler.victims.leaving import Leaving
from scheduler.victims.units import Unit
from tests.campaign import examples
from tests.tables import cases

from . import demanding
from .definitions import Judge
from .world import World, configuration, group, priority_class, situation

PODS = 1


def always(_account, _holds):
    return True


class Scene:
    """Nodes, pods on them in units, and a gang; amounts are (cpu, pods).

    It may be in a tree: nodes by `width` are of tier 1, twice as many of tier 2, all of tier 3. The gang has `parts`
    equal parts of `size` pods, of which so many start as `need` pods, and `few` parts, ask for; size 0 is no part at
    all. highest is the tier that all of it may span, inner that of a part; None for any.
    """

    width, size, parts, few, highest, inner, is_hard, is_arranged = 1, 0, 1, 0, None, None, True, False

    def __init__(self, cpus, request, need):
        self.cpus, self.request, self.need, self.ceiling, self.units = cpus, request, need, UNLIMITED, []

    def used(self, units, node=None):
        return sum(cpu for pods in units for where, cpu in pods if node in (None, where))

    def staying(self, gone=()):
        return [pods for number, pods in enumerate(self.units) if number not in gone]

    def left(self, gone=()):
        """Return what is free of each node when some units are gone."""
        return [cpu - self.used(self.staying(gone), node) for node, cpu in enumerate(self.cpus)]

    def domains(self, tier):
        """Return the nodes of each domain of a tier."""
        nodes = range(len(self.cpus))
        step = {1: self.width, 2: 2 * self.width}.get(tier, len(nodes))
        return [set(nodes[first : first + step]) for first in range(0, len(nodes), step)]

    def roots(self):
        """Return the sets of nodes in one of which all of the gang has to be."""
        tiers = [3] if self.highest is None or not self.is_hard else range(1, self.highest + 1)
        return [nodes for tier in tiers for nodes in self.domains(tier)]

    def places(self):
        """Return the sets of nodes in one of which each part has to be."""
        return self.domains(3 if self.inner is None else self.inner)

    def wanted(self):
        """Return how many parts start, or pods where there are no parts."""
        return max(self.few, -(-self.need // self.size)) if self.size else self.need

    def fits(self, gone=()):
        """Count by node, then by the domains in which a part may be: exact, as all pods and all parts are alike."""
        rooms = [max(left, 0) // self.request for left in self.left(gone)]
        pods = self.wanted() * max(self.size, 1)
        if self.used(self.staying(gone)) + pods * self.request > self.ceiling:
            return False
        return any(self._room(rooms, root) >= self.wanted() for root in self.roots())

    def _room(self, rooms, root):
        if not self.size:
            return sum(rooms[node] for node in root)
        return sum(sum(rooms[node] for node in nodes & root) // self.size for nodes in self.places())

    def gang(self, account):
        """Return the gang as the engine has it."""
        topology = None if self.highest is None else Topology(self.is_hard, self.highest)
        if not self.size:
            arranged = Arranged(topology) if self.is_arranged else None
            return Gang((Bin(0, self.need),), (GangStep(self.need, (0,)),), account, arranged=arranged)
        inner = None if self.inner is None else Topology(True, self.inner)
        numbers = tuple(range(self.parts))
        parts = tuple(Part(f"p{number}", 0, (number,), self.size, inner) for number in numbers)
        steps = (GangStep(self.need, numbers),) if self.need else ()
        part_steps = (PartStep(self.few, numbers),) if self.few else ()
        bins = tuple(Bin(0, self.size, number) for number in numbers)
        return Gang(bins, steps, account, arranged=Arranged(topology, parts, part_steps))

    def find(self):
        self.account = root = Account("root", [self.ceiling, UNLIMITED], [0, 0], [0, 0])
        root.charge([(0, self.used(self.units))], 1)
        free, whole = (np.array([[cpu, 99] for cpu in each], dtype=np.int64) for each in (self.left(), self.cpus))
        some = PodClass(np.array([self.request, 1]), np.zeros(len(self.cpus), dtype=np.int32))
        self.cluster = Cluster(whole, free, [some])
        if self.is_arranged:
            self.cluster.hyper_nodes = HyperNodes(
                (
                    Named(f"h{min(nodes)}", tier, "", sorted(nodes))
                    for tier in (1, 2, 3)
                    for nodes in self.domains(tier)
                ),
                [f"n{number}" for number in range(len(self.cpus))],
            )
        return find_victims(self.cluster, self.gang(root), self._units(root), always, pods=PODS)

    def _units(self, account):
        for pods in self.units:
            holds = {}
            for node, cpu in pods:
                before = holds.get(node, (0, 0))
                holds[node] = (before[0] + cpu, before[1] + 1)
            yield Unit(holds, (sum(cpu for _, cpu in pods), len(pods)), len(pods), account)


def arrange(draw, scene):
    """Put a scene into a tree."""
    scene.is_arranged, scene.width = True, draw(st.integers(1, 3))
    scene.highest = draw(st.sampled_from([None, 1, 2, 3]))
    scene.is_hard = draw(st.sampled_from([True, True, False]))
    if scene.highest is None or draw(st.booleans()):
        scene.size, scene.parts = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        scene.inner = draw(st.sampled_from([None, 1, 2]))
        scene.few = draw(st.integers(0, scene.parts))
        scene.need = draw(st.integers(0 if scene.few else 1, scene.parts * scene.size))


@st.composite
def scenes(draw, *, in_a_tree):
    cpus = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    scene = Scene(cpus, draw(st.integers(1, 3)), draw(st.integers(1, 5)))
    pods = st.tuples(st.integers(0, 5), st.integers(1, 3))
    for unit in draw(st.lists(st.lists(pods, min_size=1, max_size=3), max_size=7)):  # as long as they fit
        scene.units.append([(node % len(cpus), cpu) for node, cpu in unit])
        if min(scene.left()) < 0:
            scene.units.pop()
    if in_a_tree:
        arrange(draw, scene)
    scene.ceiling = draw(st.one_of(st.just(UNLIMITED), st.integers(scene.used(scene.units), 30)))
    return scene


def subsets(numbers):
    return chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1))


@pytest.mark.shows("scheduler 2.4/node", "scheduler 2.6/for whom", "scheduler 11/2", "scheduler 11/18")
@pytest.mark.shows("scheduler 11/19", "scheduler 11/21", "scheduler 11/22")
@pytest.mark.parametrize("in_a_tree", [False, True])
@examples(600)
@given(st.data())
def test_victims_are_found_where_any_set_of_them_helps_and_none_of_them_goes_in_vain(in_a_tree, data):
    """The state afterwards is what was decided, the gang is where it has to be, and another try has the same answer."""
    scene = data.draw(scenes(in_a_tree=in_a_tree))
    found = scene.find()
    assert (found is not None) == any(scene.fits(each) for each in subsets(range(len(scene.units))))
    victims, attempt = (set(found[0]), found[1]) if found else (set(), None)
    nodes = [attempt.nodes(number).tolist() for number in range(len(attempt.runs))] if attempt else []
    left = scene.left(victims)
    if found:
        assert scene.fits(victims)
        assert not any(scene.fits(victims - {each}) for each in victims)
        assert any({node for some in nodes for node in some} <= root for root in scene.roots())
        assert not scene.size or all(len(some) in (0, scene.size) for some in nodes)
        assert not scene.size or all(any(set(some) <= domain for domain in scene.places()) for some in nodes)
        for node in (node for some in nodes for node in some):
            left[node] -= scene.request
    assert scene.cluster.free[:, 0].tolist() == left
    assert scene.account.used[0] == scene.used(scene.staying(victims)) + sum(map(len, nodes)) * scene.request
    again = scene.find()
    assert (found and found[0]) == (again and again[0])


@st.composite
def scenes_of_equals(draw, *, in_a_tree):
    """Full nodes with pods of one CPU, each of which may go alone, and a gang that may have to be in one HyperNode."""
    cpus = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    scene = Scene(cpus, draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    units = [[(node, 1)] for node, cpu in enumerate(cpus) for _ in range(draw(st.integers(0, min(cpu, 3))))]
    scene.units = draw(st.permutations(units))
    if in_a_tree:
        scene.is_arranged, scene.width, scene.highest = True, draw(st.integers(1, 2)), draw(st.integers(1, 3))
    return scene


@pytest.mark.parametrize("in_a_tree", [False, True])
@examples(250)
@given(st.data())
def test_among_equals_as_few_go_as_possible(in_a_tree, data):
    scene = data.draw(scenes_of_equals(in_a_tree=in_a_tree))
    found = scene.find()
    sizes = [len(each) for each in subsets(range(len(scene.units))) if scene.fits(each)]
    assert (len(found[0]) if found else None) == min(sizes, default=None)


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


@pytest.mark.shows("scheduler 2.6/maxDomains")
@cases("most, effort, victims", {
    "the one where fewest go": (8, 10_000, [3]), "the first that will do": (1, 10_000, [0, 1]),
    "the first while each try costs too much": (8, 0, [0, 1]),
})  # fmt: skip
def test_so_many_hyper_nodes_are_compared(most, effort, victims, monkeypatch):
    """Two pods of one CPU each go in the first HyperNode, one of two CPUs in the second."""
    monkeypatch.setattr("scheduler.victims.evict_arranged.EFFORT", effort)
    account = Account("q", [UNLIMITED] * 2, [0, 0], [0, 0])
    some = PodClass(np.array([1, 1]), np.zeros(2, "i2"))
    cluster = Cluster(np.array([[2, 9], [2, 9]]), np.array([[0, 7], [0, 7]]), [some])
    cluster.hyper_nodes = HyperNodes([Named("a", 1, "", [0]), Named("b", 1, "", [1])], ["n0", "n1"])
    pods = [(0, 1, 0), (0, 1, 0), (0, 0, 1), (1, 2, 0)]  # node, CPU, tier
    units = [Unit({node: (cpu, 1)}, (cpu, 1), 1, account, tier) for node, cpu, tier in pods]
    gang = Gang((Bin(0, 2),), (GangStep(2, (0,)),), account, arranged=Arranged(Topology(True, 1)))
    assert find_victims(cluster, gang, units, always, pods=PODS, domains=most)[0] == victims


# Pods that have rules about other pods

PLACES_ONLY = configuration("actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n")
OWN = [*situation("queue default reclaimable=false"), priority_class("high", 100), priority_class("low", 1)]


@st.composite
def scenes_with_rules(draw):
    """Nodes, pods that may go one by one, and a gang; all of them may demand things because of others."""
    nodes = [draw(demanding.nodes(f"n{number}")) for number in range(draw(st.integers(1, 3)))]
    names = [each[1]["metadata"]["name"] for each in nodes]
    running = []
    for number in range(draw(st.integers(1, 5))):
        name = f"r{number}"
        kind, one = draw(demanding.pods(f"{name}-0", name))
        one["spec"]["nodeName"] = draw(st.sampled_from(names))
        one["status"] = {"phase": "Running"}
        running += [group(name, 1, phase="Running", priorityClassName="low"), (kind, one)]
    count = draw(st.integers(1, 3))
    _, model = draw(demanding.pods("g", "g"))
    wanted = []
    for number in range(count):
        one = copy.deepcopy(model)
        one["metadata"] |= {"name": f"g-{number}", "uid": f"uid-g-{number}"}
        one["metadata"]["namespace"] = "ns"
        wanted.append((resources.PODS, one))
    return [*nodes, draw(demanding.namespaces)], running, [group("g", count, priorityClassName="high"), *wanted]


def starts(ground, running, wanted, without=()):
    """Tell whether the gang starts at once when some pods are not there."""
    stay = [each for each in running if each[1]["metadata"]["name"] not in without]
    here = World(*OWN, PLACES_ONLY, *copy.deepcopy([*ground, *stay, *wanted]))
    here.cycle()
    return {obj["metadata"]["name"] for kind, obj in wanted if kind is resources.PODS} <= here.where().keys()


@pytest.mark.shows("scheduler 2.4/ports and affinity")
@examples(150, here=25)
@given(scenes_with_rules())
def test_victims_for_gangs_with_rules_about_other_pods_are_found_where_any_set_helps_and_none_goes_in_vain(scene):
    ground, running, wanted = scene
    here = World(*OWN, *copy.deepcopy([*ground, *running, *wanted]))
    here.cycle()
    victims = here.going()
    if not victims and "g-0" not in here.where():
        names = [obj["metadata"]["name"] for kind, obj in running if kind is resources.PODS]
        assert not [each for each in subsets(names) if starts(ground, running, wanted, each)]
    if victims:
        assert not starts(ground, running, wanted)
        assert starts(ground, running, wanted, victims)
        assert not any(starts(ground, running, wanted, set(victims) - {each}) for each in victims)
        here.gone()
        judge = Judge(here)
        here.cycle()
        for name, node in sorted(here.where().items()):
            if name.startswith("g"):
                assert judge.broken(here.get(resources.PODS, name), node) <= {"affinity"}


# CPU and memory that are kept for idle devices (`proportional` of resource-strategy-fit)

EACH = 2  # CPUs beside each idle device


def classes(nodes):
    """Pods of one CPU, of two, and of one CPU and a device."""
    spared = (Spared(0, 1, EACH),)
    verdicts = np.zeros(nodes, dtype=np.int32)
    return [
        PodClass(np.array([1, 0, 1]), verdicts, spared=spared),
        PodClass(np.array([2, 0, 1]), verdicts, spared=spared),
        PodClass(np.array([1, 1, 1]), verdicts),
    ]


def fits(row, request):
    """Tell by the rule itself whether a pod may come to a node with so many CPUs and devices free."""
    cpu, devices = row[0] - request[0], row[1] - request[1]
    if min(cpu, devices) < 0:
        return False
    return bool(request[1]) or cpu >= EACH * max(row[1], 0)


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=4)
pod_counts = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=5)


@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/proportional")
@examples(300)
@given(rows, pod_counts, st.booleans())
def test_pods_start_exactly_where_enough_is_left_for_idle_devices(free, gangs, weighs):
    """Each pod that is placed was allowed there by then, and for one that is not, no node is open."""
    whole = np.array([[12, 4, 99] for _ in free])
    cluster = Cluster(whole, np.array([[*row, 99] for row in free]), classes(len(free)))
    if weighs:
        cluster.weights = Weights(least=1, sized=(0,))
    placer, left = Placer(cluster), [list(row) for row in free]
    for some, count in gangs:
        request = cluster.classes[some].request.tolist()
        gang = Gang((Bin(some, count),), ())
        attempt = placer.place_minimum(gang)
        placer.take(attempt, 0, count)
        for number in attempt.nodes(0).tolist():
            assert fits(left[number], request)
            left[number] = [left[number][0] - request[0], left[number][1] - request[1]]
        assert attempt.taken[0] == count or not any(fits(row, request) for row in left)
    assert cluster.free[:, :2].tolist() == left


@st.composite
def scenes_with_devices(draw):
    """Nodes that are full as far as pods of one CPU, with or without a device, fit."""
    free = draw(rows)
    units = []
    for number in range(len(free)):
        for cpu, device in draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 1)), max_size=2)):
            units.append((number, cpu, device))
    return free, units, draw(st.integers(0, 2)), draw(st.integers(1, 3))


@examples(300)
@given(scenes_with_devices())
def test_victims_beside_idle_devices_are_found_where_any_set_helps_and_none_goes_in_vain(scene):
    free, units, some, count = scene

    def has_room(gone):
        left = [list(row) for row in free]
        for number in gone:
            node, cpu, device = units[number]
            left[node] = [left[node][0] + cpu, left[node][1] + device]
        room = 0
        for row in left:
            while fits(row, request):
                room, row[0], row[1] = room + 1, row[0] - request[0], row[1] - request[1]
        return room >= count

    account = Account("q", [UNLIMITED] * 3, [0] * 3, [0] * 3)
    whole = np.array([[20, 9, 99] for _ in free])
    cluster = Cluster(whole, np.array([[*row, 50] for row in free]), classes(len(free)))
    request = cluster.classes[some].request.tolist()
    made = [Unit({node: (cpu, device, 1)}, (cpu, device, 1), 1, account) for node, cpu, device in units]
    gang = Gang((Bin(some, count),), (GangStep(count, (0,)),), account)
    found = find_victims(cluster, gang, made, always)
    assert (found is not None) == any(has_room(each) for each in subsets(range(len(units))))
    if found is not None:
        victims = set(found[0])
        assert has_room(victims)
        assert not any(has_room(victims - {each}) for each in victims)
