"""Whole histories with evictions: pods that were asked to end go at random times, and their jobs make them again; and budgets."""

import copy
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import disruption
from kube.errors import ApiError
from kube.meta import now_text
from kube.resources import DISRUPTION_BUDGETS, HYPER_NODES, POD_GROUPS, PODS
from kube.volcano.evictions import FIRST_EVICTED
from tests.campaign import examples

from .world import START, World, group, node, pod, priority_class, queue, situation

STEPS = 60
PRIORITIES = ("p0", "p1", "p2")
relaxed = examples(300, here=25)


def job_of(pod_name):
    return pod_name.rpartition("-")[0]


class Job:
    """What somebody asked for: so many pods of a size, a minimum of which start together."""

    def __init__(self, name, priority, minimum, replicas, cpu, where="default"):
        self.name, self.minimum, self.cpu, self.where = name, minimum, cpu, where
        self.level = PRIORITIES.index(priority)
        self.pods = [f"{name}-{number}" for number in range(replicas)]
        self.is_close = False  # all of its pods are in one rack


class History(World):
    """A cluster with jobs that never end by themselves, and the rules that must hold after each cycle."""

    def __init__(self, cpus, queues, going, min_runtime=300):
        nodes = [node(f"n{number}", cpu=str(cpu), pods=99) for number, cpu in enumerate(cpus)]
        classes = [priority_class(name, number) for number, name in enumerate(PRIORITIES)]
        super().__init__(*nodes, *queues, *classes)
        self.cpus = {f"n{number}": cpu for number, cpu in enumerate(cpus)}
        self.jobs, self.due, self.count, self.lasts = {}, {}, 0, going
        self.evicted, self.helped = [], set()  # of the last cycle; those for whom others had to end
        self.deserved = {}  # queue → CPUs, where they are stated
        self.min_runtime = min_runtime  # seconds for which reclaim leaves alone what was evicted and has started again
        # Settling takes longer than `reservation-wait`, and what is kept for a queue counts as its use.
        self.snapshot.configuration.policy = replace(
            self.snapshot.policy, min_runtime_ms=min_runtime * 1000, reserves_ms=None
        )
        self.started = {}  # pod → when it got its node
        self.first_evicted = {}  # job → when a pod of it was evicted for the first time

    def submit(self, job):
        self.jobs[job.name] = job
        spec = {"queue": job.where, "priorityClassName": PRIORITIES[job.level]}
        if job.is_close:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        self.put(group(job.name, job.minimum, created=f"2026-01-01T00:00:{len(self.jobs):02}Z", **spec))
        self.put(*(self.made(name, job) for name in job.pods))

    def made(self, name, job):
        return pod(name, job.name, str(job.cpu))

    def step(self):
        """A cycle; what is due to be gone goes, and is made again."""
        self.count += 1
        before = self.running()
        decisions = self.cycle(seconds=1)
        self.evicted = decisions.evictions
        self.helped |= {each.beneficiary.partition("/")[2] for each in self.evicted}
        self.started |= {bind.pod.name: self.now for each in decisions.groups for bind in each.binds}
        for bound in self.where().keys() - set(self.going()):
            obj = self.get(PODS, bound)
            self.put((PODS, {**obj, "status": {**obj["status"], "phase": "Running"}}))
        self.judge(before)
        for each in self.evicted:
            self.first_evicted.setdefault(job_of(each.pod.name), self.now)
            self.due[each.pod.name] = self.count + self.lasts[len(self.due) % len(self.lasts)]
        for name in [name for name, at in self.due.items() if at <= self.count]:
            del self.due[name]
            self.gone(name)
            self.put(self.made(name, self.jobs[job_of(name)]))

    def running(self):
        """Return how many pods of each job run that were not asked to end."""
        return Counter(map(job_of, self.where().keys() - set(self.going())))

    def use(self, node):
        return sum(self.jobs[job_of(name)].cpu for name, at in self.where().items() if at == node)

    def judge(self, before):
        assert all(self.use(name) <= cpu for name, cpu in self.cpus.items())
        after = self.running()
        for each in self.evicted:
            victim, beneficiary = self.jobs[job_of(each.pod.name)], self.jobs[each.beneficiary.partition("/")[2]]
            assert after[victim.name] >= victim.minimum or after[victim.name] == 0
            assert before[beneficiary.name] < beneficiary.minimum
            self.judge_right(victim, beneficiary, each)
        self.judge_churn()

    def judge_churn(self):
        """No pod that has started again is reclaimed too soon alone, no job of which less than half has run long."""
        running = self.running()
        for name, job in self.jobs.items():
            gone = {e.pod.name for e in self.evicted if e.action == "reclaim" and job_of(e.pod.name) == name}
            again = {pod for pod in job.pods if self.started.get(pod, -1) >= self.first_evicted.get(name, self.now + 1)}
            young = {pod for pod in again & gone if self.now - self.started[pod] < self.min_runtime * 1000}
            most = len(again & gone) // 2 if gone and not running[name] else 0
            assert len(young) <= most, f"{name} goes again too soon"

    def used(self, where):
        """Return how many CPUs pods of a queue hold that were not asked to end."""
        running = self.running()
        return sum(job.cpu * running[name] for name, job in self.jobs.items() if job.where == where)

    def reserved_for(self, where):
        """Return how many CPUs are kept for jobs of a queue that wait for their own victims."""
        running = self.running()
        waiting = [job for job in self.jobs.values() if job.where == where and running[job.name] < job.minimum]
        return sum(job.minimum * job.cpu for job in waiting if self.waits_for_victims(job))

    def waits_for_victims(self, job):
        return (self.condition(job.name) or {}).get("reason") == "WaitingForVictims"

    def judge_right(self, victim, beneficiary, eviction):
        if eviction.action != "reclaim":
            assert victim.where == beneficiary.where
            assert victim.level < beneficiary.level
            return
        assert victim.where != beneficiary.where
        if self.deserved:
            request = beneficiary.minimum * beneficiary.cpu
            assert self.used(beneficiary.where) + request <= self.deserved[beneficiary.where]
            self.judge_part(victim.where)

    def judge_part(self, giving):
        """A queue gives of what it deserves at most with the last pod or gang."""
        part, left = self.deserved[giving], self.used(giving) + self.reserved_for(giving)
        if left < part:
            gone = Counter(job_of(each.pod.name) for each in self.evicted)
            largest = max(self.jobs[name].cpu * pods for name, pods in gone.items() if self.jobs[name].where == giving)
            assert left + largest > part

    def settle(self):
        """Go on until nothing moves in two cycles: who was bound in one can be evicted in the next."""
        is_quiet = False
        for _ in range(STEPS):
            before = self.where()
            self.step()
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


@st.composite
def jobs(draw, queues=("default",), most=5):
    made = []
    for number in range(draw(st.integers(2, most))):
        replicas = draw(st.integers(1, 4))
        priority, minimum = draw(st.sampled_from(PRIORITIES)), draw(st.integers(1, replicas))
        where = draw(st.sampled_from(queues))
        made.append(Job(f"j{number}", priority, minimum, replicas, draw(st.integers(1, 3)), where))
    return made


some_cpus = st.lists(st.integers(2, 6), min_size=1, max_size=3)
some_times = st.lists(st.integers(0, 3), min_size=1, max_size=4)


def play(cpus, workload, going, queues, deserved=None):
    history = History(cpus, queues, going)
    history.deserved = deserved or {}
    for job in workload:
        history.submit(job)
        history.step()
    history.settle()
    return history


RACKS = (("n0", "n1"), ("n2", "n3"))


def racks():
    for number, names in enumerate(RACKS):
        members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
        yield HYPER_NODES, {"metadata": {"name": f"rack-{number}"}, "spec": {"tier": 1, "members": members}}


def room(history, job, nodes):
    """Count, node by node, the pods of a job that fit without all that is less urgent: they are alike."""
    stay = [
        (history.jobs[job_of(name)].cpu, at)
        for name, at in history.where().items()
        if name not in job.pods and history.jobs[job_of(name)].level >= job.level
    ]
    left = [history.cpus[each] - sum(cpu for cpu, at in stay if at == each) for each in nodes if each in history.cpus]
    return sum(cpu // job.cpu for cpu in left)


@pytest.mark.shows("scheduler 2.4/for whom", "scheduler 2.6/for whom", "scheduler 3.1/victims", "scheduler 10.1/17")
@pytest.mark.shows("scheduler 11/5", "scheduler 11/7", "scheduler 11/18")
@pytest.mark.parametrize("some_are_close", [False, True])
@relaxed
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), jobs(), some_times, st.data())
def test_it_comes_to_rest_and_nobody_waits_whose_minimum_fits_without_all_that_is_less_urgent(
    some_are_close, cpus, workload, going, data
):
    """Nobody wins back the room of those who were evicted for him, and nobody who has to be in one rack is in two."""
    for job in workload if some_are_close else ():
        job.is_close = data.draw(st.booleans())
    history = play(cpus, workload, going, [queue(), *racks()])
    running, where = history.running(), history.where()
    for job in history.jobs.values():
        places = RACKS if job.is_close else [[*history.cpus]]
        assert any({where[name] for name in job.pods if name in where} <= {*nodes} for nodes in places)
        assert running[job.name] >= job.minimum or all(room(history, job, nodes) < job.minimum for nodes in places)
        if job.name in history.helped and job.level == len(PRIORITIES) - 1:
            assert running[job.name] >= job.minimum


@relaxed
@given(some_cpus, jobs(), some_times, st.integers(2, 8))
def test_ceiling_of_the_queue_holds(cpus, workload, going, most):
    history = play(cpus, workload, going, [queue(capability={"cpu": str(most)})])
    assert sum(history.use(name) for name in history.cpus) <= most


TREE = {"a": "left", "b": "left", "c": "right", "d": "root", "left": "root", "right": "root"}


@relaxed
@given(some_cpus, jobs("abcd", 6), some_times, st.fixed_dictionaries({name: st.integers(1, 4) for name in TREE}))
def test_queues_come_to_rest_too(cpus, workload, going, weights):
    """What one queue takes from another one, that one never takes back, whatever else is preempted meanwhile."""
    play(cpus, workload, going, [queue(name, parent=parent, weight=weights[name]) for name, parent in TREE.items()])


some_parts = st.lists(st.integers(0, 5), min_size=3, max_size=3)


def stated(parts):
    deserved = dict(zip("abc", parts, strict=True))
    return deserved, [queue(name, deserved={"cpu": str(cpu)}) for name, cpu in deserved.items()]


@pytest.mark.shows("scheduler 2.5/for whom")
@relaxed
@given(some_cpus, jobs("abc", 6), some_times, some_parts)
def test_a_queue_keeps_what_it_deserves_but_for_its_last_pod_or_gang(cpus, workload, going, parts):
    deserved, queues = stated(parts)
    play(cpus, workload, going, queues, deserved)


@pytest.mark.shows("scheduler 2.5/from whom", "scheduler 3.6/reclaim")
@relaxed
@given(some_cpus, st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 6)), max_size=5), some_parts)
def test_each_queue_comes_to_what_it_deserves(cpus, demands, parts):
    """With pods of one CPU that may go alone nobody waits below his part beside somebody above it, or beside room."""
    deserved, queues = stated(parts)
    singles = [where for where, pods in demands for _ in range(pods)]
    work = [Job(f"j{number}", "p0", 1, 1, 1, where) for number, where in enumerate(singles)]
    history = play(cpus, work, [1], queues, deserved)
    running, used = history.running(), {name: history.used(name) for name in deserved}
    for job in work:
        if not running[job.name]:
            assert sum(cpus) == sum(used.values())
            assert used[job.where] >= deserved[job.where] or all(used[name] <= deserved[name] for name in deserved)


def test_group_is_gone_and_so_is_what_it_is_kept():
    history = History([4], [queue()], [3])
    for job in (Job("low", "p0", 1, 4, 1), Job("high", "p1", 2, 2, 1)):
        history.submit(job)
        history.step()
    assert len(history.going()) == 2
    for name in history.jobs["high"].pods:
        history.remove(PODS, name)
    history.remove(POD_GROUPS, "high")
    history.settle()
    assert history.running() == {"low": 4}


# Whom budgets protect, and on whom it is noted

READY = {"type": "Ready", "status": "True"}


@st.composite
def protected_worlds(draw):
    """Gangs of low priority with labels and readiness, budgets about them, and one that waits."""
    objects = []
    for number in range(draw(st.integers(1, 3))):
        name, count = f"r{number}", draw(st.integers(1, 3))
        minimum, node_name = draw(st.integers(0, count)), draw(st.sampled_from(["n1", "n2"]))
        gang = [*situation(f"group {name} {minimum}/{count}x1 low @{node_name}")]
        for _, obj in gang[-count:]:
            obj["metadata"]["labels"] = {"app": draw(st.sampled_from(["web", "db"])), "of": name}
            obj["status"]["conditions"] = [READY] if draw(st.booleans()) else []
        objects += gang
    budgets = []
    for number in range(draw(st.integers(0, 3))):
        field = draw(st.sampled_from(["minAvailable", "maxUnavailable"]))
        value = draw(st.sampled_from([0, 1, 2, 3, "50%", "34%"]))
        selector = draw(st.sampled_from([{"app": "web"}, {"app": "db"}, {"of": "r0"}]))
        always = draw(st.sampled_from([{}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}]))
        spec = {"selector": {"matchLabels": selector}, field: value, **always}
        metadata = {"name": f"b{number}", "namespace": "ns"}
        budgets.append((DISRUPTION_BUDGETS, {"metadata": metadata, "spec": spec}))
    return objects, budgets, f"group g {draw(st.integers(1, 3))}x{draw(st.integers(1, 2))} high"


def full(objects, *others):
    """Nodes with as many CPUs as those need who run on one of them: no more, so that others have to go."""
    use = Counter(obj["spec"]["nodeName"] for kind, obj in objects if kind is PODS)
    nodes = f"node n1..2 {max(use.values())} pods:99; queue default reclaimable=false"
    return World(nodes, *copy.deepcopy(objects), *others)


def permits(pods, budgets, victims):
    """Ask the rule of `pods/eviction` about one victim after the other, for each budget, as if each was gone."""
    pods = copy.deepcopy(pods)
    by_name = {each["metadata"]["name"]: each for each in pods}
    # Who is not ready is asked first: while others are going there may no longer be enough of them.
    for name in sorted(victims, key=lambda each: disruption.is_ready(by_name[each])):
        for each in budgets:
            try:
                disruption.check(by_name[name], [each], pods)
            except ApiError:
                return False
        by_name[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return True


@pytest.mark.shows("scheduler 3.11 pdb/budgets")
@examples(200)
@given(protected_worlds())
def test_evictions_are_those_that_the_eviction_api_would_allow(scene):
    objects, budgets, wanted = scene
    here = full(objects, *budgets, wanted)
    pods = [obj for key, obj in here.objects.items() if key[0] == "pods" and obj["spec"].get("nodeName")]
    before = copy.deepcopy(pods)
    here.cycle()
    assert permits(before, [obj for _, obj in budgets], here.going())


@examples(100)
@given(protected_worlds())
def test_budgets_that_allow_everything_change_nothing(scene):
    objects, _, wanted = scene
    one, other = (full(objects, wanted) for _ in range(2))
    other.put("budget loose minAvailable=9 +app=none")
    one.cycle()
    other.cycle()
    assert one.going() == other.going()


def test_it_is_noted_once_on_whose_pods_are_evicted():
    here = World("node n1 8 pods:99; queue a; queue b; group r 1/8x1 queue=a @n1; group x 4x1 queue=b")
    here.cycle(seconds=7)

    def noted(name):
        return (here.get(POD_GROUPS, name)["metadata"].get("annotations") or {}).get(FIRST_EVICTED)

    assert (noted("r"), noted("x")) == (now_text(START + 7000), None)
    here.gone()
    here.cycle(seconds=1)
    here.put("queue b deserved=8; queue a deserved=0; group more 2x1 queue=b")
    here.cycle(seconds=1)
    assert len(here.going()) == 2, "those that stayed were not evicted, so nothing protects them"
    assert noted("r") == now_text(START + 7000)


@pytest.mark.shows("scheduler 2.5/again")
@pytest.mark.parametrize(("arguments", "seconds"), [("{}", 300), ("{minRuntime: 40s}", 40), ("{minRuntime: 0}", 0)])
def test_two_queues_that_are_owed_in_turn_do_not_take_a_node_from_each_other_all_the_time(arguments, seconds):
    """The one node is deserved by one queue, then by the other, each 10 s."""
    here = World("node n1 1; queue a; queue b; group x 1x1 queue=a; group y 1x1 queue=b")
    section = f"configurations: [{{name: reclaim, arguments: {arguments}}}]"
    here.put(f"conf actions: 'enqueue, allocate, reclaim, preempt', {section}")
    gone = []
    for turn in range(120):
        parts = {"a": "01"[turn % 2], "b": "10"[turn % 2]}
        here.put(*(f"queue {name} deserved={cpu}" for name, cpu in parts.items()))
        for _ in range(2):
            decisions = here.cycle(seconds=5)
            for each in decisions.evictions:
                gone.append((here.now, each.pod.name))
                here.gone(each.pod.name)
                here.put(f"pod {each.pod.name} group={each.pod.name[0]}")
    times = [at for at, _ in gone]
    assert all(later - at >= seconds * 1000 for at, later in pairwise(times[1:]))
    least = 1200 // (seconds + 20) if seconds else 100
    assert least <= len(gone) <= (2 + 1200 // seconds if seconds else 120), "nor does one keep it for good"
