"""What is owed to a queue comes back, whatever shape the gangs of the others have; nobody goes in vain."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.campaign import examples

from .test_evictions import History, Job, job_of, some_cpus, some_times
from .world import node, pod, queue

GPU = "nvidia.com/gpu"
QUEUES = ("a", "b", "c")
relaxed = examples(300, here=25)


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
        self.parts = {name: {"cpu": cpu, GPU: gpu} for name, (cpu, gpu) in parts.items()}
        super().__init__(cpus, [self.stated(name) for name in parts], going, min_runtime)
        pairs = enumerate(zip(cpus, gpus, strict=True))
        self.whole = {f"n{number}": {"cpu": cpu, GPU: gpu} for number, (cpu, gpu) in pairs}
        self.put(*(node(name, str(each["cpu"]), pods=99, **{GPU: str(each[GPU])}) for name, each in self.whole.items()))
        self.promised = set()

    def stated(self, name):
        return queue(name, deserved={column: str(amount) for column, amount in self.parts[name].items()})

    def made(self, name, job):
        return pod(name, job.name, str(job.cpu), requests={GPU: str(job.asks[GPU])} if job.asks[GPU] else None)

    def step(self):
        super().step()
        self.promised |= {each.beneficiary.partition("/")[2] for each in self.evicted}
        running = self.running()
        self.promised -= {name for name in self.promised if running[name] >= self.jobs[name].minimum}

    def judge_right(self, victim, beneficiary, eviction):
        """Who is the only one to get room fits when all are gone, and would not if a pod or a gang stayed."""
        assert victim.where != beneficiary.where
        others = (job for job in self.jobs.values() if job is not beneficiary)
        if len({each.beneficiary for each in self.evicted}) > 1 or any(map(self.waits_for_victims, others)):
            return
        pods = [each.pod.name for each in self.evicted if each.pod.group == eviction.pod.group]
        staying = [eviction.pod.name] if self.running()[victim.name] else pods
        assert self.fits(beneficiary, self.left(self.going())), "all go in vain"
        needed = set(self.going()) - set(staying)
        assert not self.fits(beneficiary, self.left(needed)), f"{eviction.pod.name} goes in vain"

    def left(self, gone=()):
        """Return what is free on each node when some pods are gone."""
        free = {name: dict(amounts) for name, amounts in self.whole.items()}
        for name, at in self.where().items():
            for column, amount in self.jobs[job_of(name)].asks.items() if name not in gone else ():
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

        Where it would have more of some only those that do not lie idle; none if it would have more of one of these.
        """
        idle = Counter()
        for amounts in self.left().values():
            idle.update(amounts)
        request = {column: amount * work.minimum for column, amount in work.asks.items() if amount}
        part = self.parts[work.where]
        within = {
            column for column, amount in request.items() if self.holds(work.where, column) + amount <= part[column]
        }
        scarce = {column for column, amount in request.items() if amount > idle[column]}
        return within if within == set(request) else scarce if scarce <= within else set()

    def fits(self, work, free):
        """Tell whether a minimum has room: its pods are alike, so those that fit on each node add up."""
        rooms = (
            min(amounts[column] // each for column, each in work.asks.items() if each) for amounts in free.values()
        )
        return sum(rooms) >= work.minimum

    def would_fit(self, work):
        """Tell, by counting all sets, whether a job had room if some gangs of queues that have too much went whole."""
        running = self.running()
        others = [job for job in self.jobs.values() if running[job.name] and job.where != work.where]
        for gone in (gone for size in range(len(others) + 1) for gone in combinations(others, size)):
            free = self.left({name for job in gone for name in job.pods})
            if self.fits(work, free) and all(self.may_go(work, gone, name) for name in QUEUES):
                return True
        return False

    def may_go(self, work, gone, where):
        """Tell whether a queue has more than it deserves of something that is owed until the last of its gangs goes."""
        running, part = self.running(), self.parts[where]
        mine = [job for job in gone if job.where == where]

        def has_too_much(before):
            lost = Counter()
            for job in before:
                lost.update({column: amount * running[job.name] for column, amount in job.asks.items()})
            return any(self.holds(where, column) - lost[column] > part[column] for column in self.owed(work))

        return not mine or any(has_too_much([job for job in mine if job is not last]) for last in mine)

    def judge_rest(self):
        """Nobody who is owed waits where his work would fit."""
        running = self.running()
        for work in self.jobs.values():
            if running[work.name] < work.minimum and self.owed(work):
                assert not self.would_fit(work)


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
def works(draw, queues=QUEUES, *, gpus=False):
    found = []
    for number in range(draw(st.integers(1, 5))):
        replicas = draw(st.integers(1, 4))
        minimum = replicas if draw(st.booleans()) else draw(st.integers(1, replicas))
        where, cpu = draw(st.sampled_from(queues)), draw(st.integers(1, 5))
        found.append(Work(f"j{number}", where, minimum, replicas, cpu, draw(st.integers(0, 1)) if gpus else 0))
    return found


FOUR_NODES = [4, 4, 4, 4], [0] * 4, {"a": (4, 0), "b": (0, 0), "c": (12, 0)}
OF_B = [2], [0], {"a": (0, 0), "b": (2, 0), "c": (0, 0)}
ONE_NODE = [6], [0], {"a": (2, 0), "b": (2, 0), "c": (2, 0)}


@pytest.mark.shows("scheduler 2.5/from whom", "scheduler 2.6/gangreclaim", "scheduler 3.6/reclaim")
@relaxed
@example(FOUR_NODES, [Work("j0", "a", 4, 4, 4)], [1], 12, 300, True)
@example(ONE_NODE, [Work("j0", "a", 1, 1, 3), Work("j1", "b", 1, 1, 3)], [1], 1, 300, True)
@given(clusters(), works("ab"), some_times, st.integers(1, 12), some_runtimes, st.booleans())
def test_what_a_queue_deserves_comes_back_whatever_shape_the_gangs_of_others_have(
    cluster, others, going, size, min_runtime, rests
):
    """Pods of one CPU fit wherever others leave any: at rest at once, otherwise when all have run for so long."""
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
# Each is owed what the other has, of which there is enough on other nodes.
@example(
    ([2, 2, 4], [0, 2, 1], {"a": (0, 1), "b": (2, 0), "c": (0, 0)}),
    [Work("j0", "a", 1, 1, 2, 1), Work("j1", "b", 2, 2, 1, 1)],
    [0],
)
# One more pod would go than needed, or one more gang, or all for a gang that does not fit.
@example(([6], [0], {"a": (2, 0), "b": (4, 0), "c": (0, 0)}), [Work("j0", "a", 1, 4, 1), Work("j1", "b", 3, 3, 1)], [1])
@example(
    ([6], [0], {"a": (0, 0), "b": (4, 0), "c": (0, 0)}),
    [Work("j0", "a", 2, 2, 1), Work("j1", "a", 2, 2, 1), Work("j2", "b", 4, 4, 1)],
    [1],
)
@example(
    ([2, 2], [0, 0], {"a": (0, 0), "b": (3, 0), "c": (0, 0)}), [Work("j0", "a", 1, 4, 1), Work("j1", "b", 1, 1, 3)], [1]
)
@given(clusters(gpus=True), works(gpus=True), some_times)
def test_nobody_who_is_owed_waits_where_his_work_would_fit_and_nothing_goes_to_and_fro(cluster, workload, going):
    history = Owing(*cluster, going)
    history.play(workload)
    history.judge_rest()
    assert not history.promised, "somebody has others evicted and does not start"


@pytest.mark.shows("scheduler 2.5/again")
@relaxed
@example(OF_B, [Work("j0", "a", 2, 2, 1), Work("j1", "b", 2, 2, 1)], [0], [4] * 4, 300)
@given(clusters(), works("ab"), some_times, st.lists(st.integers(1, 6), min_size=1, max_size=8), some_runtimes)
def test_queues_that_are_owed_in_turn_do_not_take_from_each_other_all_the_time(
    cluster, workload, going, swaps, min_runtime
):
    """After each step `judge_churn` looks at who goes; and at rest nobody waits whose work would fit."""
    history = Owing(*cluster, going, min_runtime)
    history.play(workload)
    for steps in swaps:
        parts = history.parts
        parts["a"], parts["b"] = parts["b"], parts["a"]
        history.put(history.stated("a"), history.stated("b"))
        for _ in range(steps):
            history.step()
    history.settle()
    history.judge_rest()
