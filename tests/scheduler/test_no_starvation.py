"""Whole histories: a stream of small jobs starves no gang, and each queue comes to its share."""

import copy
import math
from collections import Counter
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube.meta import timestamp
from kube.resources import POD_GROUPS, PODS
from kube.usage import ESTIMATE_ANNOTATION
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import UNLIMITED
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.engine.place import Placer
from scheduler.engine.pod_class import PodClass
from scheduler.engine.soonest import Leaver, soonest
from tests.campaign import examples

from .world import World, configuration, group, node, pod, priority_class, queue

WAIT = 20
CONFIGURED = configuration(
    'actions: "enqueue, allocate, backfill, preempt, reclaim"\n'
    f"tiers: [{{plugins: [{{name: gang, arguments: {{reservation-wait: {WAIT}s}}}}, {{name: overcommit}}]}}]"
)
relaxed = examples(200, here=10)


class Stream(World):
    """A cluster on which jobs last as long as they last; each second is a cycle."""

    def __init__(self, cpus, *queues, changes_process=False):
        nodes = [node(f"n{number}", cpu=str(cpu), pods=99) for number, cpu in enumerate(cpus)]
        super().__init__(*nodes, *queues, CONFIGURED, priority_class("high", 9))
        self.cpus = {f"n{number}": cpu for number, cpu in enumerate(cpus)}
        self.lasts, self.began = {}, {}
        self.requests = {}  # job → (pods, CPUs of each)
        self.changes_process = changes_process

    def ask(self, name, pods, cpu, lasts, where="default", *, says=True):
        self.requests[name], self.lasts[name] = (pods, cpu), lasts
        spec = {"queue": where, "minResources": {"cpu": str(pods * cpu)}}
        kind, made = group(name, pods, phase="", created=timestamp(self.now), **spec)
        if says:
            made["metadata"]["annotations"] = {ESTIMATE_ANNOTATION: f"{lasts}s"}
        self.put((kind, made))

    def second(self):
        """Let jobs end that are due or evicted, make the pods of those that were let in, and decide."""
        due = {each for each, at in self.began.items() if self.now >= at + 1000 * self.lasts[each]}
        for name in sorted(due | {each.rpartition("-")[0] for each in self.going()}):
            self._end(name)
        for name, (pods, cpu) in self.requests.items():
            is_in = self.status(name).get("phase") not in ("", None, "Pending")
            if is_in and ("pods", "ns", f"{name}-0") not in self.objects:
                created = timestamp(self.now)
                self.put(*(pod(f"{name}-{number}", name, str(cpu), created=created) for number in range(pods)))
        if self.changes_process:
            self.snapshot = self.rebuilt()
        self.cycle()
        for name, pods in Counter(each.rpartition("-")[0] for each in self.where()).items():
            assert pods == self.requests[name][0]  # no part of a gang
            self.began.setdefault(name, self.now)
        assert min(self.free().values()) >= 0
        self.now += 1000

    def free(self):
        used = Counter()
        for name, at in self.where().items():
            used[at] += self.requests[name.rpartition("-")[0]][1]
        return {name: cpu - used[name] for name, cpu in self.cpus.items()}

    def _end(self, name):
        for number in range(self.requests.pop(name)[0]):
            self.remove(PODS, f"{name}-{number}")
        self.remove(POD_GROUPS, name)
        del self.began[name]


some_cpus = st.lists(st.integers(2, 4), min_size=1, max_size=3)
some_lasts = st.lists(st.integers(1, 9), min_size=2, max_size=6)
some_says = st.lists(st.booleans(), min_size=1, max_size=3)


@st.composite
def gangs(draw):
    """A cluster, and a gang that fits on it when it is empty: pods and the CPUs of each."""
    cpus = draw(some_cpus)
    cpu = draw(st.integers(1, max(cpus)))
    return cpus, draw(st.integers(1, sum(each // cpu for each in cpus))), cpu


QUEUES = {"default": "", "mine": "team", "beside": "team", "team": "root", "root": ""}


def tree():
    return [queue(name, parent=parent) for name, parent in QUEUES.items()]


def flood(stream, seconds, lasts, says, where, until=lambda: False):
    """Submit more small jobs each second than there is room for; return after how many seconds it was over."""
    for second in range(seconds):
        for number in range(max(sum(stream.cpus.values()) - len(stream.requests), 0) + 1):
            pick = (second + number) % len(lasts)
            queue_name = where[number % len(where)]
            stream.ask(f"s{second:04}x{number}", 1, 1, lasts[pick], queue_name, says=says[pick % len(says)])
        stream.second()
        if until():
            return second
    return seconds


LONGEST = 9
# Twice the wait, at the entry and for nodes; then all that runs ends, and with it who was let in meanwhile.
LIMIT = 2 * WAIT + 3 * LONGEST + 5
some_places = st.lists(st.sampled_from(["default", "mine", "beside"]), min_size=1, max_size=3)


@pytest.mark.shows("coscheduling 3/does not fit")
@relaxed
@given(gangs(), some_lasts, some_says, some_places, st.booleans())
def test_no_stream_of_small_jobs_starves_a_gang(gang, lasts, says, where, changes_process):
    """In its own queue, beside it, or elsewhere; whether or not anybody says how long he runs; in whatever process."""
    cpus, pods, cpu = gang
    stream = Stream(cpus, *tree(), changes_process=changes_process)
    flood(stream, 5, lasts, says, where)
    stream.ask("big", pods, cpu, 5, "mine", says=says[0])
    assert flood(stream, LIMIT, lasts, says, where, until=lambda: "big" in stream.began) < LIMIT


@st.composite
def gangs_of_queues(draw):
    """A cluster, and a gang of some of its queues each: the CPUs of a pod of theirs, and how many pods each has."""
    cpus = draw(some_cpus)
    cpu = draw(st.integers(1, max(cpus)))
    pods = st.integers(1, sum(each // cpu for each in cpus))
    return cpus, cpu, draw(st.dictionaries(st.sampled_from(["default", "mine", "beside"]), pods, min_size=1))


@relaxed
# Others reclaim from its queue; many have waited for long at the entry; those of another queue have room kept all the
# time; what others leave is enough in each cycle, until it is their turn; two have room kept on one node.
@example(([4, 4], 1, {"mine": 7}), [1, 2, 9, 3, 3, 5], ["mine", "beside", "default"])
@example(([2], 2, {"default": 1, "mine": 1}), [3, 7], ["default"])
@example(([3], 3, {"default": 1, "beside": 1}), [5, 8], ["mine"])
@example(([2, 2, 3], 2, {"mine": 3, "default": 1, "beside": 1}), [1, 1], ["default"])
@example(([4], 3, {"default": 1, "mine": 1, "beside": 1}), [4, 6, 9], ["default"])
@given(gangs_of_queues(), some_lasts, some_places)
def test_with_true_estimates_gangs_start_by_the_time_that_was_expected(case, lasts, where):
    cpus, cpu, gangs = case
    stream = Stream(cpus, *tree())
    flood(stream, 5, lasts, [True], where)
    for name, pods in gangs.items():
        stream.ask(f"big-{name}", pods, cpu, 5, name)
    began, promised = {}, {}

    def over():
        for name in gangs:
            reservation = stream.snapshot.groups.reserved.get(f"ns/big-{name}")
            if reservation is not None and reservation.places:
                promised.setdefault(name, set()).add(reservation.expected)
            if f"big-{name}" in stream.began:
                began.setdefault(name, stream.began[f"big-{name}"])
        return len(began) == len(gangs)

    flood(stream, len(gangs) * (2 * WAIT + 3 * LONGEST), lasts, [True], where, until=over)
    assert set(began) == set(gangs)
    for name, (expected,) in promised.items():
        assert began[name] <= expected


@relaxed
@given(gangs(), some_lasts, some_says)
def test_another_process_decides_the_same(gang, lasts, says):
    cpus, pods, cpu = gang
    seen = {True: [], False: []}  # where everybody was after each second
    for changes_process, places in seen.items():
        stream = Stream(cpus, *tree(), changes_process=changes_process)
        flood(stream, 5, lasts, says, ["default", "mine"])
        stream.ask("big", pods, cpu, 5, "mine", says=says[0])
        note = lambda: places.append(stream.where())  # noqa: B023, E731
        flood(stream, 2 * WAIT + 2 * LONGEST, lasts, says, ["default", "mine"], until=note)
    assert seen[True] == seen[False]


def test_gangs_of_many_queues_start_one_after_the_other():
    """Each wants the whole cluster, and small jobs of all queues do so as well."""
    names = [f"q{number}" for number in range(12)]
    stream = Stream([3, 3], *(queue(name) for name in names))
    flood(stream, 3, [2, 3], [False], names)
    for name in names:
        stream.ask(f"big-{name}", 2, 3, 2, name)
    started = set()

    def over():
        started.update(stream.began)
        return {f"big-{name}" for name in names} <= started

    assert flood(stream, 480, [2, 3], [False], names, until=over) < 480


# Where a gang fits soonest


@st.composite
def departures(draw):
    nodes = draw(st.integers(1, 4))
    free = np.array([[draw(st.integers(0, 3)), draw(st.integers(0, 3))] for _ in range(nodes)], dtype=np.int64)
    root = Account("root", [draw(st.integers(2, 12)), UNLIMITED], [0, 0], [0, 0])
    leaves = [Account(name, [UNLIMITED] * 2, [0, 0], [0, 0], root) for name in "ab"]
    leavers = []
    for _ in range(draw(st.integers(0, 8))):
        amounts = np.array([draw(st.integers(0, 3)), 1], dtype=np.int64)
        at = draw(st.one_of(st.none(), st.integers(0, nodes - 1)))
        account = draw(st.sampled_from(leaves))
        account.charge(enumerate(amounts.tolist()), 1)
        leavers.append(Leaver(at, amounts, account))
    count = draw(st.integers(1, 4))
    some = PodClass(np.array([draw(st.integers(1, 3)), 1], dtype=np.int64), np.zeros(nodes, dtype=np.int32))
    world = Cluster(free + 9, free, [some])
    return world, Gang((Bin(0, count),), (GangStep(count, (0,)),), leaves[0]), leavers


@examples(300)
@given(departures())
def test_soonest_is_the_first_number_of_leavers_with_which_it_fits(case):
    world, gang, leavers = case
    slow_world, slow_gang, slow_leavers = copy.deepcopy(case)
    before = world.free.copy(), [list(each.used) for each in gang.account.line]
    found = soonest(world, gang, leavers)
    assert (world.free == before[0]).all()
    assert [list(each.used) for each in gang.account.line] == before[1]
    expected = None
    for gone in range(len(leavers) + 1):
        placer = Placer(slow_world)
        attempt = placer.place_minimum(slow_gang)
        if attempt.short is None:
            expected = attempt.runs, gone
            break
        if gone < len(leavers):
            leaver = slow_leavers[gone]
            if leaver.node is not None:
                slow_world.free[leaver.node] += leaver.amounts
            leaver.account.charge(enumerate(leaver.amounts.tolist()), -1)
    assert (found and (found[0].runs, found[1])) == expected


CPUS = 8
CYCLES = 12
LEAVES = ("a", "b", "c", "d")
PARENTS = {"c": "team", "d": "team", "team": "root", "a": "root", "b": "root"}
some_weights = st.fixed_dictionaries({name: st.integers(1, 6) for name in PARENTS})


class Life(World):
    """A world with a job controller that makes pods, and jobs of one CPU that end some cycles after their start."""

    def __init__(self, weights, lasts, **more):
        tree = [
            queue(name, parent=above, weight=weights[name], **more.get(name, {})) for name, above in PARENTS.items()
        ]
        super().__init__("node n0..1 4 pods:99", priority_class("high", 9), *tree)
        self.lasts, self.count, self.numbers = lasts, 0, count()
        self.queues = {}  # job → its queue
        self.ends = {}  # job → the cycle after which it ends

    def ask(self, where, jobs, urgency=""):
        """Submit jobs to a queue."""
        for _ in range(jobs):
            name = f"j{next(self.numbers):04}"
            self.queues[name] = where
            spec = {"queue": where, "phase": "Pending", "priorityClassName": urgency}
            self.put(group(name, minResources={"cpu": "1"}, created=f"2026-01-01T00:{self.count:02}:00Z", **spec))

    def step(self):
        """Let jobs end that are due, let others in, make their pods, and place them."""
        self.count += 1
        for name in [name for name, at in self.ends.items() if at <= self.count]:
            self.remove(PODS, f"{name}-0")
            self.remove(POD_GROUPS, name)
            del self.ends[name], self.queues[name]
        self.cycle(seconds=1)
        for name in self.inside():
            if ("pods", "ns", f"{name}-0") not in self.objects:
                self.put(pod(f"{name}-0", name))
        self.cycle()
        for name in (bound.removesuffix("-0") for bound in self.where()):
            if name not in self.ends:
                self.ends[name] = self.count + self.lasts[len(self.ends) % len(self.lasts)]

    def use(self):
        """Return how many CPUs the pods of each queue use."""
        return Counter(self.queues[each.removesuffix("-0")] for each in self.where())

    def waiting(self, where):
        """Return how many jobs of a queue have not started; those that run can end all at once."""
        return sum(each == where and name not in self.ends for name, each in self.queues.items())


def by_weight(name, weights):
    """Return a queue's part of the cluster when everybody wants more."""
    if name == "root":
        return Fraction(CPUS)
    beside = sum(weights[each] for each, parent in PARENTS.items() if parent == PARENTS[name])
    return by_weight(PARENTS[name], weights) * weights[name] / beside


few = examples(200, here=8)
short_lasts = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@pytest.mark.shows("scheduler 3.5/levels")
@few
@given(some_weights, short_lasts, st.permutations(LEAVES), st.sampled_from(["", "high"]))
def test_every_queue_comes_to_its_share_however_late_and_whatever_the_backlog_of_others(weights, lasts, order, urgency):
    """The first queue asks for everything, urgently; the others come one after the other."""
    life = Life(weights, lasts)
    for number, where in enumerate(order):
        life.ask(where, CPUS, urgency if number == 0 else "")
        life.step()
    for _ in range(CYCLES):
        life.step()
        for where in LEAVES:  # nobody runs out of jobs
            life.ask(where, CPUS - life.waiting(where))
    used = life.use()
    assert sum(used.values()) == CPUS
    assert all(used[where] >= math.floor(by_weight(where, weights)) - 2 for where in LEAVES)


@pytest.mark.shows("scheduler 3.5/guarantees of others", "queues 1.2/guarantee")
@few
# A pod of `b` waits for its victim on the node that has the free processor.
@example({"a": 1, "b": 4, "c": 1, "d": 1, "team": 1}, [4], 1, 0, "c")
# A pod of `b` waits for its victim, and would be placed on the free processor of another node when that is gone.
@example({"a": 1, "b": 3, "c": 1, "d": 1, "team": 1}, [4, 4, 1, 1, 4], 1, 0, "c")
@given(some_weights, short_lasts, st.integers(1, 3), st.integers(0, 2), st.sampled_from(LEAVES))
def test_what_is_guaranteed_is_there_at_once(weights, lasts, guarantee, above, where):
    """However much the others run and want, a guaranteed amount is free for its queue in the cycle in which it asks."""
    guarantees = {where: guarantee, "team": above + guarantee}
    life = Life(
        weights, lasts, **{name: {"guarantee": {"resource": {"cpu": str(cpu)}}} for name, cpu in guarantees.items()}
    )
    for other in LEAVES:
        if other != where:
            life.ask(other, CPUS)
    for _ in range(3):
        life.step()
    assert life.use()[where] == 0
    life.ask(where, guarantee)
    life.step()
    assert life.use()[where] == guarantee
