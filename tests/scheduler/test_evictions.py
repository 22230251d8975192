"""Whole histories with evictions: pods that were asked to end go at random times, and their jobs make them again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.resources import HYPER_NODES, POD_GROUPS, PODS

from .world import World, group, node, pod, priority_class, queue

STEPS = 60
PRIORITIES = ("p0", "p1", "p2")
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Job:
    """What somebody asked for: so many pods of a size, a minimum of which start together."""

    def __init__(self, name, priority, minimum, replicas, cpu, where="default", *, is_close=False):
        self.name, self.priority, self.minimum, self.cpu, self.where = name, priority, minimum, cpu, where
        self.pods = [f"{name}-{number}" for number in range(replicas)]
        self.is_close = is_close  # all of its pods are in one rack


class History(World):
    """A cluster with jobs that never end by themselves, and the rules that must hold after each cycle."""

    def __init__(self, cpus, queues, going, min_runtime=300):
        nodes = [node(f"n{number}", cpu=str(cpu), pods=99) for number, cpu in enumerate(cpus)]
        classes = [priority_class(name, number) for number, name in enumerate(PRIORITIES)]
        super().__init__(*nodes, *queues, *classes)
        self.cpus = {f"n{number}": cpu for number, cpu in enumerate(cpus)}
        self.jobs = {}
        self.lasts = going
        self.due = {}
        self.count = 0
        self.evicted = []  # of the last cycle
        self.deserved = {}  # queue → CPUs, where they are stated
        self.min_runtime = min_runtime  # seconds for which reclaim leaves alone what was evicted and has started again
        # Settling takes longer than `reservation-wait`, and what is kept for a queue counts as its use: no reservations here.
        self.snapshot.policy = replace(self.snapshot.policy, min_runtime_ms=min_runtime * 1000, reserves_ms=None)
        self.started = {}  # pod → when it got its node
        self.first_evicted = {}  # job → when a pod of it was evicted for the first time

    def submit(self, job):
        self.jobs[job.name] = job
        created = f"2026-01-01T00:00:{len(self.jobs):02}Z"
        spec = {"queue": job.where, "priorityClassName": job.priority, "created": created}
        if job.is_close:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        self.put(group(job.name, job.minimum, **spec))
        self.put(*(self.made(name, job) for name in job.pods))

    def made(self, name, job):
        return pod(name, job.name, str(job.cpu))

    def step(self):
        """A cycle; what is due to be gone goes, and is made again."""
        self.count += 1
        before = self.running()
        decisions = self.cycle(seconds=1)
        self.evicted = decisions.evictions
        self.started |= {bind.pod.name: self.now for each in decisions.groups for bind in each.binds}
        for bound in self.where().keys() - set(self.going()):
            kind, obj = PODS, self.get(PODS, bound)
            self.put((kind, {**obj, "status": {**obj["status"], "phase": "Running"}}))
        self.judge(before)
        for each in self.evicted:
            self.first_evicted.setdefault(each.pod.group.partition("/")[2], self.now)
            self.due[each.pod.name] = self.count + self.lasts[len(self.due) % len(self.lasts)]
        for name in [name for name, at in self.due.items() if at <= self.count]:
            del self.due[name]
            job = self.jobs[name.rpartition("-")[0]]
            self.gone(name)
            self.put(self.made(name, job))

    def running(self):
        """Return how many pods of each job run that were not asked to end."""
        stay = self.where().keys() - set(self.going())
        return Counter(name.rpartition("-")[0] for name in stay)

    def use(self, node):
        return sum(self.jobs[n.rpartition("-")[0]].cpu for n, at in self.where().items() if at == node)

    def judge(self, before):
        for name, cpu in self.cpus.items():
            assert self.use(name) <= cpu
        after = self.running()
        for name in {each.pod.group.partition("/")[2] for each in self.evicted}:
            assert after[name] >= self.jobs[name].minimum or after[name] == 0
        for each in self.evicted:
            victim = self.jobs[each.pod.group.partition("/")[2]]
            beneficiary = self.jobs[each.beneficiary.partition("/")[2]]
            assert before[beneficiary.name] < beneficiary.minimum
            self.judge_right(victim, beneficiary, each)
        self.judge_churn()

    def judge_churn(self):
        """Nobody whose pods have started again is reclaimed too soon: no pod by itself, and no job of which less than half has run long."""
        reclaimed = [each.pod for each in self.evicted if each.action == "reclaim"]
        names = {name: [pod.name for pod in reclaimed if pod.group.endswith(f"/{name}")] for name in self.jobs}
        running = self.running()
        for name, pods in names.items():
            again = [pod for pod in self.jobs[name].pods if self.has_started_again(pod, name)]
            young = [pod for pod in again if self.now - self.started[pod] < self.min_runtime * 1000]
            if pods and not running[name]:
                gone = [pod for pod in young if pod in pods]
                assert len(gone) <= len([pod for pod in again if pod in pods]) // 2, f"{name} goes again too soon"
            else:
                assert not set(young) & set(pods), f"{name} loses pods again too soon"

    def has_started_again(self, pod, name):
        """Tell whether a pod has had its node since later than the first eviction of its job, in whole seconds."""
        return pod in self.started and self.started[pod] >= self.first_evicted.get(name, self.now + 1)

    def used(self, where):
        """Return how many CPUs pods of a queue hold that were not asked to end."""
        return sum(
            self.jobs[name].cpu * pods for name, pods in self.running().items() if self.jobs[name].where == where
        )

    def kept(self, where):
        """Return how many CPUs are kept for jobs of a queue that wait for their own victims."""
        running = self.running()
        return sum(
            job.minimum * job.cpu
            for job in self.jobs.values()
            if job.where == where and running[job.name] < job.minimum and self.waits_for_victims(job)
        )

    def waits_for_victims(self, job):
        return (self.condition(job.name) or {}).get("reason") == "WaitingForVictims"

    def judge_right(self, victim, beneficiary, eviction):
        if eviction.action == "reclaim":
            assert victim.where != beneficiary.where
            if self.deserved:
                asked = beneficiary.minimum * beneficiary.cpu
                assert self.used(beneficiary.where) + asked <= self.deserved[beneficiary.where]
                self.judge_part(victim.where)
            return
        assert victim.where == beneficiary.where
        assert PRIORITIES.index(victim.priority) < PRIORITIES.index(beneficiary.priority)

    def judge_part(self, giving):
        """A queue gives of what it deserves at most with the last pod or gang."""
        part, left = self.deserved[giving], self.used(giving) + self.kept(giving)
        if left < part:
            gone = Counter(each.pod.group.partition("/")[2] for each in self.evicted)
            largest = max(self.jobs[name].cpu * pods for name, pods in gone.items() if self.jobs[name].where == giving)
            assert left + largest > part

    def settle(self):
        """Go on until nothing moves; who had others evicted runs then, unless somebody more urgent took the room.

        Who was bound in one cycle can be evicted in the next one, so that is over only with a cycle in which nobody was bound either.
        """
        helped, is_quiet = set(), False
        for _ in range(STEPS):
            before = self.where()
            self.step()
            helped |= {each.beneficiary.partition("/")[2] for each in self.evicted}
            if self.evicted or self.due or self.where() != before:
                is_quiet = False
            elif is_quiet:
                break
            else:
                is_quiet = True
                self.now += self.min_runtime * 1000  # whoever was left alone has run for long enough by then
        else:
            raise AssertionError(f"not at rest after {STEPS} cycles")
        assert not self.going()
        return helped


@st.composite
def jobs(draw, queues=("default",), most=5):
    made = []
    for number in range(draw(st.integers(2, most))):
        replicas = draw(st.integers(1, 4))
        minimum = draw(st.integers(1, replicas))
        made.append(
            Job(
                f"j{number}",
                draw(st.sampled_from(PRIORITIES)),
                minimum,
                replicas,
                draw(st.integers(1, 3)),
                draw(st.sampled_from(queues)),
            )
        )
    return made


some_cpus = st.lists(st.integers(2, 6), min_size=1, max_size=3)
some_times = st.lists(st.integers(0, 3), min_size=1, max_size=4)


def play(cpus, asked, going, queues, deserved=None):
    history = History(cpus, queues, going)
    history.deserved = deserved or {}
    helped = set()
    for job in asked:
        history.submit(job)
        history.step()
        helped |= {each.beneficiary.partition("/")[2] for each in history.evicted}
    return history, helped | history.settle()


@pytest.mark.shows(
    "scheduler 2.4/for whom", "scheduler 3.1/victims", "scheduler 10.1/17", "scheduler 11/5", "scheduler 11/7"
)
@relaxed
@given(some_cpus, jobs(), some_times)
def test_rules_hold_and_after_a_while_nobody_is_evicted(cpus, asked, going):
    """Nobody wins back the room of those who were evicted for him, or it would never end."""
    history, helped = play(cpus, asked, going, [queue()])
    running = history.running()
    highest = max((PRIORITIES.index(history.jobs[name].priority) for name in helped), default=-1)
    for name in helped:
        job = history.jobs[name]
        if PRIORITIES.index(job.priority) == highest == len(PRIORITIES) - 1:
            assert running[name] >= job.minimum


@relaxed
@given(some_cpus, jobs(), some_times)
def test_nobody_waits_whose_minimum_fits_without_all_that_is_less_urgent(cpus, asked, going):
    """A slow count: pods of one job are alike, so those that fit on each node add up."""
    history, _ = play(cpus, asked, going, [queue()])
    running = history.running()
    for job in history.jobs.values():
        if running[job.name] >= job.minimum:
            continue
        level = PRIORITIES.index(job.priority)
        room = 0
        for name, cpu in history.cpus.items():
            stay = [
                history.jobs[pod.rpartition("-")[0]]
                for pod, at in history.where().items()
                if at == name and pod.rpartition("-")[0] != job.name
            ]
            used = sum(each.cpu for each in stay if PRIORITIES.index(each.priority) >= level)
            room += (cpu - used) // job.cpu
        assert room < job.minimum


@relaxed
@given(some_cpus, jobs(), some_times, st.integers(2, 8))
def test_ceiling_of_the_queue_holds(cpus, asked, going, most):
    history, _ = play(cpus, asked, going, [queue(capability={"cpu": str(most)})])
    assert sum(history.use(name) for name in history.cpus) <= most


TREE = {"a": "left", "b": "left", "c": "right", "d": "root", "left": "root", "right": "root"}
LEAVES = ("a", "b", "c", "d")


@relaxed
@given(some_cpus, jobs(LEAVES, 6), some_times, st.fixed_dictionaries({name: st.integers(1, 4) for name in TREE}))
def test_queues_come_to_rest_too(cpus, asked, going, weights):
    """What one queue takes from another one, that one never takes back, whatever else is preempted meanwhile."""
    queues = [queue(name, parent=parent, weight=weights[name]) for name, parent in TREE.items()]
    play(cpus, asked, going, queues)


some_parts = st.lists(st.integers(0, 5), min_size=3, max_size=3)


def stated(parts):
    deserved = dict(zip("abc", parts, strict=True))
    return deserved, [queue(name, deserved={"cpu": str(cpu)}) for name, cpu in deserved.items()]


@pytest.mark.shows("scheduler 2.5/for whom")
@relaxed
@given(some_cpus, jobs("abc", 6), some_times, some_parts)
def test_a_queue_keeps_what_it_deserves_but_for_its_last_pod_or_gang(cpus, asked, going, parts):
    deserved, queues = stated(parts)
    play(cpus, asked, going, queues, deserved)


@pytest.mark.shows("scheduler 2.5/from whom", "scheduler 3.6/reclaim")
@relaxed
@given(some_cpus, st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 6)), max_size=5), some_parts)
def test_each_queue_comes_to_what_it_deserves(cpus, asked, parts):
    """With pods of one CPU that may go alone: nobody waits below his part beside somebody above it, or beside free room."""
    deserved, queues = stated(parts)
    made = [Job(f"j{number}", "p0", 1, pods, 1, where) for number, (where, pods) in enumerate(asked)]
    singles = [Job(f"{job.name}x{number}", "p0", 1, 1, 1, job.where) for job in made for number in range(len(job.pods))]
    history, _ = play(cpus, singles, [1], queues, deserved)
    running = history.running()
    used = {name: history.used(name) for name in deserved}
    free = sum(cpus) - sum(used.values())
    above = any(used[name] > deserved[name] for name in deserved)
    for job in singles:
        if not running[job.name]:
            assert not free
            assert used[job.where] >= deserved[job.where] or not above


RACKS = (("n0", "n1"), ("n2", "n3"))


def racks():
    for number, names in enumerate(RACKS):
        members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
        yield HYPER_NODES, {"metadata": {"name": f"rack-{number}"}, "spec": {"tier": 1, "members": members}}


@pytest.mark.shows("scheduler 2.6/for whom", "scheduler 11/18")
@relaxed
@given(st.lists(st.integers(2, 5), min_size=2, max_size=4), jobs(), some_times, st.data())
def test_jobs_that_are_to_be_in_one_rack_have_others_go_there(cpus, asked, going, data):
    """Rules hold, it comes to rest, nobody is in two racks, and nobody waits for whom a rack has room without all that is less urgent."""
    for job in asked:
        job.is_close = data.draw(st.booleans())
    history, _ = play(cpus, asked, going, [queue(), *racks()])
    running, where = history.running(), history.where()
    for job in (job for job in history.jobs.values() if job.is_close):
        used = {where[pod] for pod in job.pods if pod in where}
        assert any(used <= set(rack) for rack in RACKS)
        if running[job.name] < job.minimum:
            level = PRIORITIES.index(job.priority)
            stay = {pod: node for pod, node in where.items() if pod not in job.pods}
            urgent = [
                (history.jobs[pod.rpartition("-")[0]].cpu, node)
                for pod, node in stay.items()
                if PRIORITIES.index(history.jobs[pod.rpartition("-")[0]].priority) >= level
            ]
            for rack in RACKS:
                left = (
                    history.cpus[name] - sum(cpu for cpu, node in urgent if node == name)
                    for name in rack
                    if name in history.cpus
                )
                assert sum(free // job.cpu for free in left) < job.minimum


def test_group_is_gone_and_so_is_what_it_is_kept():
    history = History([4], [queue()], [3])
    history.submit(Job("low", "p0", 1, 4, 1))
    history.step()
    history.submit(Job("high", "p1", 2, 2, 1))
    history.step()
    assert len(history.going()) == 2
    for name in history.jobs["high"].pods:
        history.remove(PODS, name)
    history.remove(POD_GROUPS, "high")
    history.settle()
    assert history.running() == {"low": 4}
