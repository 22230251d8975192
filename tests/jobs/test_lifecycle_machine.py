"""Jobs of any kind, to which anything may happen at any moment, live as the reference says, and come to an end.

`tests.jobs.reference` says which phase follows, and the invariants of `proof.invariants` judge the log.
"""

import itertools
from contextlib import nullcontext, suppress
from random import Random

import hypothesis.strategies as st
import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.consumers import consumer
from cluster.consumers.consumer import Runner
from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from jobs.consumers.job_controller import JobConsumer
from jobs.controller import plan, ssh_keys
from jobs.plugins.contract import KeyPair
from jobs.rules import admission
from kube import resources
from kube.errors import ApiError
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS
from proof.harness.clocks import ManualClock
from proof.invariants import INVARIANTS, Judge
from proof.simulation.planted import planted
from tests.campaign import scaled
from tests.cluster.store.conftest import empty
from tests.jobs import builders, reference
from tests.jobs.made import Doom, Killed, runner

pytestmark = pytest.mark.django_db(transaction=True)
ACTIONS = (
    "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "AbortJob",
    "TerminateJob", "CompleteJob", "ResumeJob",
)  # fmt: skip
ANSWERED = ("PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed")
CODES = (1, 3, 137)
TIMEOUTS = (None, None, "30s", "10m")
NAMESPACE = "default"
STEPS = 400  # of a controller that has nothing more to do long before
START_US = 1_767_225_600_000_000
NAMES = st.sampled_from(("x", "x", "x", "y"))
WHICH = st.integers(0, 5)
COMMANDS = (*ACTIONS, "Jump")
OUT_OF_SCOPE = ("nodes", "gangs", "queues", "quotas", "waiting")  # scheduler and nodes are played here
REQUIRED_ACTION = {"Aborted": "AbortJob", "Terminated": "TerminateJob"}  # what somebody has to ask for
RULES = [each.name for each in INVARIANTS if each.__module__.rpartition(".")[2] not in OUT_OF_SCOPE]
# Of the defects that the simulation knows, those that this machine finds within a few dozen examples.
FOUND = (
    "wrong-task", "any-uid", "one-too-many", "told-late", "asked-again", "counted-twice", "products-left", "no-retry",
)  # fmt: skip


# ---- jobs by chance, small and odd, and such as admission accepts
@st.composite
def policies(draw):
    """A list of policies: `*` alone, or some events, each once; beside them exit codes."""
    wild = draw(st.integers(0, 4)) == 0
    events = ["*"] if wild else draw(st.lists(st.sampled_from(ANSWERED), unique=True, max_size=2))
    codes = draw(st.lists(st.sampled_from(CODES), unique=True, max_size=1))
    answered = [{"event": each} for each in events] + [{"exitCode": code} for code in codes]
    return [draw(with_action(each)) for each in draw(st.permutations(answered))]


@st.composite
def with_action(draw, answered):
    policy = {**answered, "action": draw(st.sampled_from(ACTIONS))}
    timeout = draw(st.sampled_from(TIMEOUTS))
    return policy | ({"timeout": timeout} if timeout else {})


@st.composite
def tasks(draw, name, before):
    fields = {"policies": draw(policies())} if draw(st.booleans()) else {}
    replicas = draw(st.sampled_from((0, 1, 2, 2, 3)))
    if draw(st.integers(0, 4)) == 0:
        fields["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 1}
        replicas = 2
    elif draw(st.booleans()):
        fields["minAvailable"] = draw(st.integers(0, replicas))
    if before and draw(st.integers(0, 2)) == 0:
        names = draw(st.lists(st.sampled_from(before), unique=True, min_size=1))
        fields["dependsOn"] = {"name": names, "iteration": draw(st.sampled_from(("any", "all")))}
    if draw(st.booleans()):
        fields["maxRetry"] = draw(st.integers(1, 3))
    return builders.task(name, replicas, pod={"restartPolicy": "OnFailure"}, **fields)


@st.composite
def specs(draw):
    names = ("a", "b", "c")[: draw(st.integers(1, 3))]
    wanted = [draw(tasks(name, names[:number])) for number, name in enumerate(names)]
    total = sum(each["replicas"] for each in wanted)
    fields = {"policies": draw(policies()), "maxRetry": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        fields["minAvailable"] = draw(st.integers(0, total))
    if draw(st.integers(0, 3)) == 0:
        fields["minSuccess"] = draw(st.integers(1, max(total, 1)))
    if draw(st.integers(0, 3)) == 0:
        fields["ttlSecondsAfterFinished"] = draw(st.sampled_from((0, 60)))
    fields["plugins"] = {name: [] for name in draw(st.sets(st.sampled_from(("svc", "ssh", "env"))))}
    return wanted, fields


def submitted(name, spec):
    """Return a job that a person submits, with its defaults; None where admission refuses it."""
    wanted, fields = spec
    obj = builders.job(*wanted, name=name, **fields)
    if builders.refusals(obj):
        return None
    admission.default(obj, None, None)
    return obj


# ---- the controller in a process that may die, before any statement or with the last of its transaction
class Mortal(Runner):
    dies_uncommitted = False
    interrupted_by = None  # what somebody does between the plan and its commit

    def __init__(self):
        super().__init__(registry.get("jobs"), 0, JobConsumer())

    def _commit(self, cursor, plan, timers, now):
        interrupted_by, self.interrupted_by = self.interrupted_by, None
        if interrupted_by is not None:
            interrupted_by()
        super()._commit(cursor, plan, timers, now)

    def _conclude(self, groups, outcomes, now):
        """The last that is written in the transaction."""
        following = super()._conclude(groups, outcomes, now)
        if self.dies_uncommitted:
            raise Killed
        return following


class LifecycleMachine(RuleBasedStateMachine):
    """One or two jobs, people, a scheduler and nodes, and a controller that may die; only what a rule says happens."""

    @initialize(spec=specs(), room=st.sampled_from((plan.ROOM, plan.ROOM, 2)), far=st.integers(0, 3))
    def begin(self, spec, room, far):
        self.batch, self.room = consumer.BATCH, plan.reconcile.__kwdefaults__
        plan.reconcile.__kwdefaults__ = {**self.room, "room": room}
        self.keys = ssh_keys.use(lambda: KeyPair("private", "public"))
        self.chance, self.numbers, uids = (store.uids, store.random), itertools.count(), itertools.count(1)
        store.uids, store.random = lambda: f"00000000-0000-4000-8000-{next(uids):012x}", Random(1)
        self.clock, self.latest_us = ManualClock(START_US), START_US
        self.real = clock.use(self.clock)
        self.judge = Judge(only=RULES, lag_ms=0)
        empty("default")
        bootstrap()
        self.controller, self.collector = Mortal(), runner("garbage")
        self.works()  # what happens from here on is told to them
        self.submits("x", spec)
        for _ in range(far):
            self.all_goes_well()

    def teardown(self):
        if not hasattr(self, "controller"):
            return
        try:
            self.come_to_an_end()
        finally:
            clock.use(self.real)
            ssh_keys.use(self.keys)
            store.uids, store.random = self.chance
            consumer.BATCH, plan.reconcile.__kwdefaults__ = self.batch, self.room

    # ---- people

    @rule(name=NAMES, spec=specs())
    def submits(self, name, spec):
        obj = submitted(name, spec)
        if obj is not None:
            write(Create(JOBS, obj))

    @rule(name=NAMES, actions=st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=2))
    def commands(self, name, actions):
        for action in actions:
            if stored := job_of(name):
                target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": stored.uid}
                owners = [{**target, "controller": True}]
                metadata = {"name": f"{name}-{next(self.numbers)}", "namespace": NAMESPACE, "ownerReferences": owners}
                write(Create(resources.COMMANDS, {"metadata": metadata, "action": action, "target": target}))

    @rule(name=NAMES, number=WHICH, replicas=st.integers(0, 4))
    def scales(self, name, number, replicas):
        """A task gets other replicas, and the minimums are brought in line as admission asks."""
        stored = job_of(name)
        tasks = [dict(task) for task in stored.object["spec"]["tasks"]] if stored else []
        task = tasks[number % len(tasks)] if tasks else {}
        if task and not task.get("partitionPolicy"):
            task |= {"replicas": replicas, "minAvailable": min(task["minAvailable"], replicas)}
            least = min(stored.object["spec"]["minAvailable"], sum(each["replicas"] for each in tasks))
            write(Patch(JOBS, NAMESPACE, name, {"spec": {"tasks": tasks, "minAvailable": least}}))

    @rule(name=NAMES, propagation=st.sampled_from(("Background", "Foreground")))
    def deletes(self, name, propagation):
        write(Delete(JOBS, NAMESPACE, name, propagation=propagation))

    @rule(name=NAMES, spec=specs(), action=st.sampled_from((None, *COMMANDS)))
    def makes_anew(self, name, spec, action):
        """A job is deleted, and another has its name at once; what was asked of the first is not for the second."""
        if action:
            self.commands(name, [action])
        self.deletes(name, "Background")
        self.submits(name, spec)

    @rule(which=WHICH, grace=st.sampled_from((None, 0)))
    def deletes_a_pod(self, which, grace):
        for pod in some(which):
            write(Delete(PODS, NAMESPACE, pod.name, uid=pod.uid, grace=grace))

    # ---- scheduler and nodes

    @rule()
    def all_goes_well(self):
        """Pods are made, get their nodes and begin."""
        self.works()
        self.admits()
        self.works()
        self.binds()
        for pod in pods(lambda pod: node_of(pod) and phase_of(pod) == "Pending" and not is_going(pod)):
            report(pod, "Running", ready=True, state={"running": {}})
        self.works()

    @rule()
    def admits(self):
        for group in store.find(POD_GROUPS):
            if group.object.get("status", {}).get("phase", "") in ("", "Pending"):
                write(Patch(POD_GROUPS, NAMESPACE, group.name, {"status": {"phase": "Inqueue"}}, "status"))

    @rule(which=WHICH, phase=st.sampled_from(("Unknown", "Unknown", "Pending", "Running")))
    def tells_of_a_group(self, which, phase):
        if groups := store.find(POD_GROUPS):
            name = groups[which % len(groups)].name
            write(Patch(POD_GROUPS, NAMESPACE, name, {"status": {"phase": phase}}, "status"))

    @rule()
    def binds(self):
        for pod in pods(lambda pod: not node_of(pod) and not is_going(pod)):
            binding = {"spec": {"nodeName": f"n{int(pod.name.rpartition('-')[2]) % 2}"}}
            write(Patch(PODS, NAMESPACE, pod.name, binding, "binding"))

    @rule(which=WHICH)
    def pod_begins(self, which):
        for pod in some(which, lambda pod: node_of(pod) and phase_of(pod) == "Pending"):
            report(pod, "Running", ready=True, state={"running": {}})

    @rule(which=WHICH, code=st.sampled_from((0, *CODES)), number=st.integers(1, 3))
    def pods_end(self, which, code, number):
        for pod in some(which, lambda pod: node_of(pod) and phase_of(pod) in reference.ALIVE, number):
            end(pod, code)

    @rule(which=WHICH)
    def container_is_started_again(self, which):
        for pod in some(which, lambda pod: phase_of(pod) == "Running"):
            before = pod.object["status"].get("containerStatuses", [{}])[0].get("restartCount", 0)
            report(pod, phase_of(pod), ready=True, state={"running": {}}, restartCount=before + 1)

    @rule(node=st.sampled_from(("n0", "n1")))
    def node_is_lost(self, node):
        """What was going on it has gone, and the other pods have failed (docs/design/node.md)."""
        for pod in pods(lambda pod: node_of(pod) == node and phase_of(pod) in reference.ALIVE):
            lost = {"status": {"phase": "Failed", "reason": "NodeLost"}}
            gone = Delete(PODS, NAMESPACE, pod.name, uid=pod.uid, grace=0)
            write(gone if is_going(pod) else Patch(PODS, NAMESPACE, pod.name, lost, "status"))

    @rule()
    def pods_go(self):
        for pod in pods(is_going):
            write(Delete(PODS, NAMESPACE, pod.name, uid=pod.uid, grace=0))

    # ---- the controller

    @rule()
    def works(self):
        """Controller and collector work until neither has anything to do."""
        for _ in range(STEPS):
            more = self.step()
            more |= self.collector.step()
            if not more:
                return
        last = [f"{each.verb} {each.resource}/{each.key}" for each in store.changes(store.revision() - 5)]
        raise AssertionError(f"controller and collector are at work after {STEPS} steps; the log ends with {last}")

    def step(self, doom=None):
        """Let the controller take a step, in which it may die; tell whether there may be more."""
        more = False
        self.clock.move(0.001)
        with suppress(Killed), connection.execute_wrapper(doom) if doom else nullcontext():
            more = self.controller.step()
        return more

    @rule()
    def takes_one_step(self):
        self.step()

    @rule(batch=st.sampled_from((1, 2, 5, 4000)))
    def reads_at_once(self, batch):
        consumer.BATCH = batch

    @rule()
    def starts_anew(self):
        self.controller = Mortal()

    @rule(at=st.integers(0, 40))
    def dies(self, at):
        self.step(Doom(at))
        self.starts_anew()

    @rule()
    def dies_before_its_commit(self):
        self.controller.dies_uncommitted = True
        self.step()
        self.starts_anew()

    @rule(which=WHICH, code=st.sampled_from((0, 1, 3)), deleted=st.booleans())
    def is_interrupted(self, which, code, deleted):
        """A pod ends or is deleted between the plan and its commit."""

        def happens():
            for pod in some(which):
                if deleted:
                    write(Delete(PODS, NAMESPACE, pod.name, uid=pod.uid, grace=0))
                elif node_of(pod) and phase_of(pod) in reference.ALIVE:
                    end(pod, code)

        self.controller.interrupted_by = happens
        self.step()
        self.controller.interrupted_by = None
        # What has just happened was not known when it was planned.
        self.judge.set_lag(1000)
        self.the_log_is_right()
        self.judge.set_lag(0)

    @rule(seconds=st.sampled_from((1, 31, 61, 601, -45, -3600)))
    def time_passes(self, seconds):
        self.clock.move(seconds)
        self.latest_us = max(self.latest_us, self.clock.us)

    # ---- what must be

    @invariant()
    @precondition(lambda self: hasattr(self, "controller"))
    def the_log_is_right(self):
        for change in store.changes(self.judge.revision):
            self.judge.take(change)

    @rule()
    def comes_to_rest(self):
        """Nothing more happens for two minutes, and the clock shows again the latest time that it has shown."""
        self.time_passes(max(self.latest_us - self.clock.us, 0) / 1e6)
        for _ in range(3):
            self.time_passes(40)
            self.works()
        self.pods_go()
        self.works()
        self.the_log_is_right()
        self.judge.settle(clock.milliseconds())
        for job in living():
            rests(job)

    def come_to_an_end(self):
        """Faults are over, the scheduler admits everything and all pods run to their end: so do all jobs, or say why not."""
        self.reads_at_once(4000)
        for _ in range(12):
            before = store.revision()
            self.all_goes_well()
            for pod in pods(lambda pod: phase_of(pod) == "Running" and not is_going(pod)):
                end(pod, 0)
            self.time_passes(700)
            self.comes_to_rest()
            if store.revision() == before:
                break
        else:
            raise AssertionError("there is no end to it")
        for job in living():
            assert is_over(job), f"{job.name} is {job.object['status']['state']}"


def living():
    return [job for job in store.find(JOBS) if not is_going(job)]


def rests(job):
    """A job at rest is where its counts lead, and says why; who ended it was asked to, and left nothing of it running."""
    spec, status = job.object["spec"], job.object["status"]
    state, phase, version = status["state"], status["state"]["phase"], str(status.get("version", 0))
    groups, own = (store.find(kind, owner=job.uid) for kind in (POD_GROUPS, PODS))
    group = groups[0].object.get("status", {}).get("phase", "") if groups else ""
    assert all((state["reason"], state["message"])), state
    assert reference.by_itself(phase, spec, status, group) == phase, status
    events = [each.object for each in store.find(EVENTS) if each.object["involvedObject"].get("uid") == job.uid]
    messages = " ".join(each["message"] for each in events)
    assert REQUIRED_ACTION.get(phase, "") in messages, f"{phase}: {messages}"
    if phase in reference.ALIVE:
        left = [pod for pod in own if pod.object["metadata"]["annotations"]["volcano.sh/job-version"] != version]
    else:
        left = groups + [pod for pod in own if phase_of(pod) in reference.ALIVE]
    assert not [each.name for each in left if not is_going(each)], state


def is_over(job):
    spec, state = job.object["spec"], job.object["status"]["state"]
    if state["phase"] in reference.FINISHED:
        return True
    if state["phase"] == "Aborted":
        return "Resume it" in state.get("next", "")
    if reference.replicas_of(spec) == 0:
        return "0 replicas" in state["message"]
    return state["reason"] == "WaitingForTasks" and "No pod is left" in state["message"]


def write(change):
    """Write as people and nodes do: what is refused has not happened."""
    with suppress(ApiError):
        store.write(change)


def report(pod, phase, **container):
    before = (pod.object["status"].get("containerStatuses") or [{"name": "main"}])[0]
    status = {"phase": phase, "containerStatuses": [{**before, **container}]}
    write(Patch(PODS, NAMESPACE, pod.name, {"status": status}, "status"))


def end(pod, code):
    report(pod, "Failed" if code else "Succeeded", ready=False, state={"terminated": {"exitCode": code}})


def job_of(name):
    return store.by_keys(JOBS, [f"{NAMESPACE}/{name}"]).get(f"{NAMESPACE}/{name}")


def pods(wanted=lambda pod: True):
    return [pod for pod in store.find(PODS) if wanted(pod)]


def some(which, wanted=lambda pod: True, number=1):
    """Return some of the pods that are wanted, from one on."""
    found = pods(wanted)
    return (found[which % len(found) :] + found)[: min(number, len(found))] if found else []


def node_of(pod):
    return pod.object["spec"].get("nodeName", "")


def phase_of(pod):
    return pod.object["status"].get("phase", "Pending")


def is_going(pod):
    return "deletionTimestamp" in pod.object["metadata"]


def play(**fields):
    fields = {"phases": [Phase.generate], "database": None, "deadline": None, **fields}
    chosen = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck), **fields)
    run_machine(LifecycleMachine, settings=chosen)


@pytest.mark.campaign
def test_jobs_live_as_the_reference_says():
    """The same lives in each run of the tests, and others in each campaign."""
    play(max_examples=scaled(30, 1500), derandomize=scaled(True, False))


@pytest.mark.campaign
@pytest.mark.parametrize("defect", scaled(FOUND[:1], FOUND))
def test_it_finds_what_is_wrong(defect):
    with planted(defect), pytest.raises(AssertionError):
        play(max_examples=300, derandomize=not scaled(False, True), report_multiple_bugs=False)
