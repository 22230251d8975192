"""What is owed to a queue comes back, whatever shape the gangs of the others have; nobody goes in vain, and nothing goes to and fro."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scheduler.cycle import protection
from scheduler.cycle.evictions import Evictions
from scheduler.engine.victim_search import Search

from .test_evictions import History, Job
from .world import node, pod, queue

GPU = "nvidia.com/gpu"
QUEUES = ("a", "b", "c")
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Work(Job):
    """A job that may ask for GPUs as well."""

    def __init__(self, name, where, minimum, replicas, cpu, gpu=0):
        super().__init__(name, "p0", minimum, replicas, cpu, where)
        self.asks = {"cpu": cpu, GPU: gpu}

    def __repr__(self):
        return f"Work({self.name!r}, {self.where!r}, {self.minimum}, {len(self.pods)}, {self.cpu}, {self.asks[GPU]})"


class Owing(History):
    """A history of queues with stated parts; it knows for whom others had to end."""

    def __init__(self, cpus, gpus, parts, going, min_runtime=300):
        deserved = {name: {"cpu": str(cpu), GPU: str(gpu)} for name, (cpu, gpu) in parts.items()}
        super().__init__(cpus, [queue(name, deserved=each) for name, each in deserved.items()], going, min_runtime)
        self.put(
            *(
                node(f"n{n}", cpu=str(cpu), pods=99, **{GPU: str(gpu)})
                for n, (cpu, gpu) in enumerate(zip(cpus, gpus, strict=True))
            )
        )
        self.whole = {f"n{n}": {"cpu": cpu, GPU: gpu} for n, (cpu, gpu) in enumerate(zip(cpus, gpus, strict=True))}
        self.parts = {name: {"cpu": cpu, GPU: gpu} for name, (cpu, gpu) in parts.items()}
        self.promised = set()

    def made(self, name, job):
        return pod(name, job.name, str(job.cpu), requests={GPU: str(job.asks[GPU])} if job.asks[GPU] else None)

    def step(self):
        super().step()
        self.promised |= {each.beneficiary.partition("/")[2] for each in self.evicted}
        running = self.running()
        self.promised -= {name for name in self.promised if running[name] >= self.jobs[name].minimum}

    def judge_right(self, victim, beneficiary, eviction):
        assert victim.where != beneficiary.where
        if {each.beneficiary for each in self.evicted} == {eviction.beneficiary}:
            others = (job for job in self.jobs.values() if job is not beneficiary)
            if not any(self.waits_for_victims(job) for job in others):
                self.judge_need(victim, beneficiary, eviction)

    def judge_need(self, victim, beneficiary, eviction):
        """The minimum of who is the only one to get room fits when all are gone, and would not if a pod, or a job that goes whole, stayed."""
        pods = [each.pod.name for each in self.evicted if each.pod.group == eviction.pod.group]
        staying = [eviction.pod.name] if self.running()[victim.name] else pods
        assert self.fits(beneficiary, self.left_without(self.going())), "all go in vain"
        needed = set(self.going()) - set(staying)
        assert not self.fits(beneficiary, self.left_without(needed)), f"{eviction.pod.name} goes in vain"

    def left_without(self, gone):
        """Return what is free on each node when some pods are gone."""
        free = self.left()
        for name, at in self.where().items():
            if name in gone:
                for column, amount in self.jobs[name.rpartition("-")[0]].asks.items():
                    free[at][column] += amount
        return free

    def left(self):
        """Return what is free on each node."""
        free = {name: dict(amounts) for name, amounts in self.whole.items()}
        for name, at in self.where().items():
            for column, amount in self.jobs[name.rpartition("-")[0]].asks.items():
                free[at][column] -= amount
        return free

    def holds(self, where, column):
        running = self.running()
        return sum(job.asks[column] * running[job.name] for job in self.jobs.values() if job.where == where)

    def play(self, works, *, rests=True):
        """Submit one after the other, and go on until nothing moves."""
        for work in works:
            self.submit(work)
            self.step()
        if rests:
            self.settle()

    def owed(self, work):
        """Return the columns in which a queue has no more than it deserves with the minimum of a job.

        Where it would have more of some only those that do not lie idle, and none if it would have more of one of these.
        """
        idle = Counter()
        for amounts in self.left().values():
            idle.update(amounts)
        asked = {column: amount * work.minimum for column, amount in work.asks.items() if amount}
        within = {
            column
            for column, amount in asked.items()
            if self.holds(work.where, column) + amount <= self.parts[work.where][column]
        }
        scarce = {column for column, amount in asked.items() if amount > idle[column]}
        if within == set(asked):
            return within
        return scarce if scarce <= within else set()

    def fits(self, work, free):
        """Tell whether a minimum has room: its pods are alike, so those that fit on each node add up."""
        return (
            sum(min(amounts[column] // each for column, each in work.asks.items() if each) for amounts in free.values())
            >= work.minimum
        )

    def would_fit(self, work):
        """Tell whether a job would have room if some gangs of queues that have too much went as a whole: a slow count of all sets."""
        where, running = self.where(), self.running()
        others = [job for job in self.jobs.values() if running[job.name] and job.where != work.where]
        for size in range(len(others) + 1):
            for gone in combinations(others, size):
                free = self.left()
                for job in gone:
                    for name in (name for name in job.pods if name in where):
                        for column, amount in job.asks.items():
                            free[where[name]][column] += amount
                if self.fits(work, free) and all(self.may_go(work, gone, name) for name in QUEUES):
                    return True
        return False

    def may_go(self, work, gone, where):
        """Tell whether a queue has more than it deserves of something that is owed until the last of its gangs goes."""
        running = self.running()
        mine = [job for job in gone if job.where == where]

        def has_too_much(before):
            lost = Counter()
            for job in before:
                lost.update({column: amount * running[job.name] for column, amount in job.asks.items()})
            part = self.parts[where]
            return any(self.holds(where, column) - lost[column] > part[column] for column in self.owed(work))

        return not mine or any(has_too_much([job for job in mine if job is not last]) for last in mine)


some_cpus = st.lists(st.integers(2, 6), min_size=1, max_size=3)
some_times = st.lists(st.integers(0, 3), min_size=1, max_size=4)
some_runtimes = st.sampled_from([0, 3, 300])


@st.composite
def clusters(draw, *, gpus=False):
    """Draw nodes, and parts of queues that are not more than there is."""
    cpus = draw(some_cpus)
    devices = [draw(st.integers(0, 2)) if gpus else 0 for _ in cpus]
    parts, left = {}, (sum(cpus), sum(devices))
    for name in QUEUES:
        part = draw(st.integers(0, left[0])), draw(st.integers(0, left[1]))
        parts[name], left = part, (left[0] - part[0], left[1] - part[1])
    return cpus, devices, parts


@st.composite
def works(draw, queues=QUEUES, *, gpus=False, most=5):
    found = []
    for number in range(draw(st.integers(1, most))):
        replicas = draw(st.integers(1, 4))
        gang = draw(st.booleans())
        found.append(
            Work(
                f"j{number}",
                draw(st.sampled_from(queues)),
                replicas if gang else draw(st.integers(1, replicas)),
                replicas,
                draw(st.integers(1, 5)),
                draw(st.integers(0, 1)) if gpus else 0,
            )
        )
    return found


@pytest.mark.shows("scheduler 2.5/from whom", "scheduler 2.6/gangreclaim", "scheduler 3.6/reclaim")
@relaxed
@example(
    ([4, 4, 4, 4], [0] * 4, {"a": (4, 0), "b": (0, 0), "c": (12, 0)}), [Work("j0", "a", 4, 4, 4)], [1], 12, 300, True
)
@example(
    ([6], [0], {"a": (2, 0), "b": (2, 0), "c": (2, 0)}),
    [Work("j0", "a", 1, 1, 3), Work("j1", "b", 1, 1, 3)],
    [1],
    1,
    300,
    True,
)
@given(clusters(), works("ab"), some_times, st.integers(1, 12), some_runtimes, st.booleans())
def test_what_a_queue_deserves_comes_back_whatever_shape_the_gangs_of_others_have(
    cluster, others, going, size, min_runtime, rests
):
    """Pods of one CPU fit wherever others leave any, so all that is deserved can be had: at rest at once, otherwise when all have run for so long."""
    history = Owing(*cluster, going, min_runtime)
    history.play(others, rests=rests)
    size = min(size, history.parts["c"]["cpu"])
    if not size:
        return
    history.submit(Work("mine", "c", size, size, 1))
    if not rests:
        history.step()
        history.now += min_runtime * 1000
    for _ in range(max(going) + 4):
        history.step()
    assert history.running()["mine"] == size
    history.settle()
    assert history.running()["mine"] == size


@relaxed
@given(clusters(gpus=True), works(gpus=True), some_times)
def test_nobody_who_is_owed_waits_where_his_work_would_fit(cluster, asked, going):
    history = Owing(*cluster, going)
    history.play(asked)
    running = history.running()
    for work in asked:
        if running[work.name] < work.minimum and history.owed(work):
            assert not history.would_fit(work)


@relaxed
# Each is owed what the other has, of which there is enough on other nodes.
@example(
    ([2, 2, 4], [0, 2, 1], {"a": (0, 1), "b": (2, 0), "c": (0, 0)}),
    [Work("j0", "a", 1, 1, 2, 1), Work("j1", "b", 2, 2, 1, 1)],
    [0],
)
@given(clusters(gpus=True), works(gpus=True), some_times)
def test_nobody_goes_in_vain_and_nothing_goes_to_and_fro(cluster, asked, going):
    history = Owing(*cluster, going)
    history.play(asked)
    assert not history.promised, "somebody has others evicted and does not start"


def one_more_than_needed(put):
    """Everybody goes who may, not only who has to."""
    put(Search, "_spare", lambda self: None)
    put(Search, "_spare_with_other_places", lambda self: None)
    put(Search, "settle", Search.settle_at_any_cost)


def for_a_gang_that_does_not_fit(put):
    """All who may go do, whether or not the gang has room then."""

    def victims(self, action, drawn, gang, going, kept):
        if drawn is None:
            return None
        list(self._candidates.units(drawn.groups, going, kept, gangs=True))
        return going or None

    put(Evictions, "_victims", victims)


ONE_NODE = ([6], [0], {"a": (2, 0), "b": (4, 0), "c": (0, 0)})


@pytest.mark.parametrize(
    ("plant", "cluster", "asked"),
    [
        (one_more_than_needed, ONE_NODE, [Work("j0", "a", 1, 4, 1), Work("j1", "b", 3, 3, 1)]),
        (
            one_more_than_needed,
            ([6], [0], {"a": (0, 0), "b": (4, 0), "c": (0, 0)}),
            [Work("j0", "a", 2, 2, 1), Work("j1", "a", 2, 2, 1), Work("j2", "b", 4, 4, 1)],
        ),
        (
            for_a_gang_that_does_not_fit,
            ([2, 2], [0, 0], {"a": (0, 0), "b": (3, 0), "c": (0, 0)}),
            [Work("j0", "a", 1, 4, 1), Work("j1", "b", 1, 1, 3)],
        ),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_it_finds_those_who_go_in_vain(plant, cluster, asked, monkeypatch):
    ask = test_nobody_goes_in_vain_and_nothing_goes_to_and_fro.hypothesis.inner_test
    ask(cluster, asked, [1])
    plant(monkeypatch.setattr)
    with pytest.raises(AssertionError, match="in vain"):
        ask(cluster, asked, [1])


some_swaps = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def swap(history, swaps):
    """Play on while two queues deserve what the other one did, again and again: who is owed something is a matter of when one looks."""
    for steps in swaps:
        parts = history.parts
        parts["a"], parts["b"] = parts["b"], parts["a"]
        for name in "ab":
            cpu, gpu = parts[name]["cpu"], parts[name][GPU]
            history.put(queue(name, deserved={"cpu": str(cpu), GPU: str(gpu)}))
        for _ in range(steps):
            history.step()


@pytest.mark.shows("scheduler 2.5/again")
@relaxed
@given(clusters(), works("ab"), some_times, some_swaps, some_runtimes)
def test_queues_that_are_owed_in_turn_do_not_take_from_each_other_all_the_time(
    cluster, asked, going, swaps, min_runtime
):
    """After each step `judge_churn` looks at who goes; and at rest nobody waits whose work would fit."""
    history = Owing(*cluster, going, min_runtime)
    history.play(asked)
    swap(history, swaps)
    history.settle()
    running = history.running()
    for work in asked:
        if running[work.name] < work.minimum and history.owed(work):
            assert not history.would_fit(work)


def test_it_finds_who_is_not_left_alone(monkeypatch):
    ask = test_queues_that_are_owed_in_turn_do_not_take_from_each_other_all_the_time.hypothesis.inner_test
    cluster = [2], [0], {"a": (0, 0), "b": (2, 0), "c": (0, 0)}
    case = cluster, [Work("j0", "a", 2, 2, 1), Work("j1", "b", 2, 2, 1)], [0], [4, 4, 4, 4], 300
    ask(*case)
    monkeypatch.setattr(protection, "stays_until", lambda started, first_evicted, least: 0)
    with pytest.raises(AssertionError, match="again too soon"):
        ask(*case)
