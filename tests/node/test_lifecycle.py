"""What an agent does next with a pod, and what it tells of it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cluster.store import Create, store
from kube.kinds.core import Container, Pod
from kube.kinds.meta import ObjectMeta
from kube.kinds.pod import ContainerState, ContainerStateWaiting, ContainerStatus, PodStatus
from kube.resources import EVENTS, NAMESPACES
from node.attempt import Attempt, AttemptState, Run, time_text, unknown
from node.pods import events
from node.pods.local_cluster import LocalCluster
from node.rules.lifecycle import Refusal, back_off, decide, start_of
from node.status import PodAddress, Waiting, qos_class
from proof.simulation.parts.machine import Deaf
from tests import builders
from tests.tables import cases

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
ADDRESS = PodAddress("127.1.2.3", "127.0.0.1", NOW - 5 * SECOND)


def pod(*, containers=("main",), inits=(), policy="Never", deleted=False, phase="", owned=False, **spec):
    metadata = {"uid": "u"}
    if owned:
        metadata["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "o", "controller": True}]
    if deleted:
        metadata |= {"deletionTimestamp": "2027-01-01T00:00:00Z", "deletionGracePeriodSeconds": 7}
    spec |= {"restartPolicy": policy, "initContainers": [builders.container(name) for name in inits]}
    made = builders.pod("p", *map(builders.container, containers), status={"phase": phase}, **metadata, **spec)
    return msgspec.convert(made, Pod)


def running(number=0, streak=0):
    return Run(Attempt(number, AttemptState.RUNNING, streak, NOW - SECOND))


def ended(code=0, *, number=0, streak=0, ran_s=1, ago_s=0, stopped=""):
    finished = NOW - ago_s * SECOND
    return Run(Attempt(number, AttemptState.ENDED, streak, finished - ran_s * SECOND, finished, code, stopped=stopped))


ORDERED = Run(Attempt(0, AttemptState.ORDERED))
UNKNOWN = Run(unknown(0, 0, NOW - SECOND, NOW))  # its shim was killed, with the machine or alone
STOPPED = ended(0, stopped="NodeShutdown")
BOTH = pod(owned=True, containers=("a", "b"))
LOST_TOO = ended(143, stopped=decide(BOTH, {"a": UNKNOWN, "b": running()}, ADDRESS, NOW).stop.reason)

PROBLEMS = [
    Waiting("ImagePullBackOff", 'Back-off pulling image "a"'), Waiting("ErrImageNeverPull"),
    Waiting("CreateContainerConfigError", 'configmap "c" not found'), Waiting("ContainerCreating", "pulling"),
]  # fmt: skip

states = st.sampled_from([None, ORDERED, running(), ended(0), ended(1), ended(143, stopped="NodeShutdown")])
POLICIES = st.sampled_from(["Always", "OnFailure", "Never"])


class TestDecisions:
    @cases("given, runs, phase, starts", {
        "begins": (pod(), {}, "Pending", [("main", 0)]),
        "all together": (pod(containers=("a", "b")), {}, "Pending", [("a", 0), ("b", 0)]),
        "waits for the start": (pod(), {"main": ORDERED}, "Pending", []),
        "runs": (pod(), {"main": running()}, "Running", []),
        "succeeds": (pod(), {"main": ended(0)}, "Succeeded", []),
        "fails": (pod(), {"main": ended(1)}, "Failed", []),
        "one still runs": (pod(containers=("a", "b")), {"a": ended(1), "b": running()}, "Running", []),
        "one failed": (pod(containers=("a", "b")), {"a": ended(1), "b": ended(0)}, "Failed", []),
        "always again": (pod(policy="Always"), {"main": ended(0)}, "Running", [("main", 1)]),
        "success is the end": (pod(policy="OnFailure"), {"main": ended(0)}, "Succeeded", []),
        "failure is repeated": (pod(policy="OnFailure"), {"main": ended(1)}, "Running", [("main", 1)]),
        "back-off": (pod(policy="Always"), {"main": ended(1, number=1, streak=1, ago_s=9)}, "Running", []),
        "after it": (pod(policy="Always"), {"main": ended(1, number=1, streak=1, ago_s=10)}, "Running", [("main", 2)]),
        "first init container alone": (pod(inits=("i", "j")), {}, "Pending", [("i", 0)]),
        "waits for the first": (pod(inits=("i", "j")), {"i": running()}, "Pending", []),
        "then the second": (pod(inits=("i", "j")), {"i": ended(0)}, "Pending", [("j", 0)]),
        "then the containers": (pod(inits=("i",)), {"i": ended(0)}, "Pending", [("main", 0)]),
        "init container failed for good": (pod(inits=("i",)), {"i": ended(1)}, "Failed", []),
        "init again": (pod(inits=("i",), policy="Always"), {"i": ended(1)}, "Pending", [("i", 1)]),
        "init once": (pod(inits=("i",), policy="Always"), {"i": ended(0)}, "Pending", [("main", 0)]),
        "deleted before it began": (pod(deleted=True), {}, "Failed", []),
        "not restarted when deleted": (pod(deleted=True, policy="Always"), {"main": ended(143)}, "Failed", []),
        "an end is an end": (pod(phase="Failed"), {"main": running()}, "Failed", []),
        "stopped with the cluster": (pod(), {"main": ended(143, stopped="NodeShutdown")}, "Failed", []),
        "to go on": (pod(policy="OnFailure"), {"main": ended(0, stopped="NodeShutdown")}, "Running", [("main", 1)]),
        "deadline stops first": (pod(activeDeadlineSeconds=5), {"main": running()}, "Running", []),
        "then fails": (pod(activeDeadlineSeconds=5), {"main": ended(0, stopped="DeadlineExceeded")}, "Failed", []),
        "done before the deadline": (pod(activeDeadlineSeconds=5), {"main": ended(0)}, "Succeeded", []),
        "deadline not yet": (pod(activeDeadlineSeconds=6), {}, "Pending", [("main", 0)]),
    })  # fmt: skip
    def test_what_comes_next(self, given, runs, phase, starts):
        decision = decide(given, runs, ADDRESS, NOW)
        assert decision.status["phase"] == phase
        assert [(one.container.name, one.number) for one in decision.start] == starts
        assert decision.over == (phase in ("Succeeded", "Failed") and not any(r.current.active for r in runs.values()))

    @cases("given, runs, lost", {
        "stopped with the cluster": (pod(owned=True), {"main": STOPPED}, True),
        "its shim is gone": (pod(owned=True, phase="Running"), {"main": UNKNOWN}, True),
        "nobody makes it again": (pod(), {"main": UNKNOWN}, False),
        "failed by itself": (pod(owned=True), {"main": ended(1)}, False),
        "succeeded": (pod(owned=True), {"main": ended(0)}, False),
        "begins again in its place": (pod(owned=True, policy="OnFailure"), {"main": UNKNOWN}, False),
        "one was done": (BOTH, {"a": STOPPED, "b": ended(0)}, True),
        "one had failed": (BOTH, {"a": STOPPED, "b": ended(1)}, False),
        "one runs still": (BOTH, {"a": UNKNOWN, "b": running()}, True),
        "one was stopped as the other was lost": (BOTH, {"a": UNKNOWN, "b": LOST_TOO}, True),
        "init container": (pod(owned=True, inits=("i",)), {"i": UNKNOWN}, True),
        "init container again": (pod(owned=True, inits=("i",), policy="Always"), {"i": STOPPED}, False),
        "being deleted": (pod(owned=True, deleted=True), {"main": UNKNOWN}, False),
        "an end is an end": (pod(owned=True, phase="Succeeded"), {"main": UNKNOWN}, False),
    })  # fmt: skip
    def test_pod_that_its_machine_has_ended_is_taken_away(self, given, runs, lost):
        decision = decide(given, runs, ADDRESS, NOW)
        runs_on = any(run.current.active for run in runs.values())
        assert bool(decision.lost) == lost
        if lost:
            assert decision.status["phase"] == (given.status.phase or "Pending")
            assert (decision.over, bool(decision.stop), decision.start) == (not runs_on, runs_on, [])
            (condition,) = [one for one in decision.status["conditions"] if one["type"] == "DisruptionTarget"]
            assert (condition["status"], condition["reason"]) == ("True", "TerminationByKubelet")

    @cases("given, reason, grace", {
        "deleted": (pod(deleted=True), "Deleted", 7),
        "deadline": (pod(activeDeadlineSeconds=5, terminationGracePeriodSeconds=3), "DeadlineExceeded", 3),
        "given up elsewhere": (pod(phase="Failed"), "Failed", 30),
    })  # fmt: skip
    def test_what_runs_is_stopped(self, given, reason, grace):
        stop = decide(given, {"main": running()}, ADDRESS, NOW).stop
        assert (stop.reason, stop.grace_s) == (reason, grace)

    def test_refusal_and_problem_are_said_where_they_are(self):
        status = decide(pod(), {}, ADDRESS, NOW, refusal=Refusal("NoCommand", "Say what to run.")).status
        assert (status["phase"], status["reason"], status["message"]) == ("Failed", "NoCommand", "Say what to run.")
        problem = Waiting("CreateContainerConfigError", 'secret "s" not found')
        status = decide(pod(), {}, ADDRESS, NOW, problems={"main": problem}).status
        assert status["containerStatuses"][0]["state"] == {"waiting": problem._asdict()}

    @cases("given, name, statuses", {
        "container": (pod(policy="Always"), "main", "containerStatuses"),
        "init container": (pod(policy="OnFailure", inits=("i",)), "i", "initContainerStatuses"),
    })  # fmt: skip
    def test_a_container_that_cannot_start_again_waits_and_its_end_is_its_last_state(self, given, name, statuses):
        for problem in PROBLEMS:
            runs = {name: ended(3, number=2, streak=2, ago_s=60)}
            entry = decide(given, runs, ADDRESS, NOW, problems={name: problem}).status[statuses][0]
            assert entry["state"] == {"waiting": {k: v for k, v in problem._asdict().items() if v}}
            assert (entry["lastState"]["terminated"]["exitCode"], entry["restartCount"]) == (3, 2)

    @given(
        problem=st.sampled_from(PROBLEMS), policy=POLICIES, deleted=st.booleans(),
        phase=st.sampled_from(["Running", "Failed"]), refused=st.booleans(), code=st.sampled_from([0, 1]),
    )  # fmt: skip
    def test_only_what_is_to_start_again_waits(self, problem, policy, deleted, phase, refused, code):
        """What has ended for good stays terminated, whatever was in the way of it before."""
        given = pod(containers=("a", "b"), policy=policy, deleted=deleted, phase=phase)
        runs = {"a": ended(code, number=1), "b": running()}
        refusal = Refusal("DeadlineExceeded", "") if refused else None
        decision = decide(given, runs, ADDRESS, NOW, refusal=refusal, problems={"a": problem})
        is_due = any(start.container.name == "a" for start in decision.start)
        state = decision.status["containerStatuses"][0]["state"]
        assert state.keys() == ({"waiting"} if is_due else {"terminated"})

    def test_times_that_a_container_waits_for(self):
        given = pod(policy="Always", activeDeadlineSeconds=60)
        waits = decide(given, {"main": ended(1, streak=1, ago_s=3)}, ADDRESS, NOW)
        assert waits.wake_us == NOW + 7 * SECOND, "the sooner one"
        set_back = {"main": ended(1, streak=3, ago_s=-3600)}
        assert decide(pod(policy="Always"), set_back, ADDRESS, NOW).start, "a clock that was set back holds nobody"
        found = [back_off(ended(1, streak=streak).current) for streak in (0, 1, 2, 5, 6, 900)]
        assert found == [(1, 0), (2, 10), (3, 20), (6, 160), (7, 300), (901, 300)]
        assert back_off(ended(1, streak=9, ran_s=600).current) == (1, 0), "anew after ten minutes"

    @given(
        policy=POLICIES, deleted=st.booleans(), phase=st.sampled_from(["", "Running", "Failed", "Succeeded"]),
        runs=st.fixed_dictionaries(dict.fromkeys(("i", "a", "b"), states)),
    )  # fmt: skip
    def test_laws(self, policy, deleted, phase, runs):
        given = pod(containers=("a", "b"), inits=("i",), policy=policy, deleted=deleted, phase=phase)
        existing = {name: run for name, run in runs.items() if run is not None}
        decision = decide(given, existing, ADDRESS, NOW)
        active = {name for name, run in existing.items() if run.current.active}
        assert not active & {one.container.name for one in decision.start}
        assert not (decision.start and (deleted or decision.stop or phase in ("Failed", "Succeeded")))
        assert not (decision.over and active)
        if phase in ("Failed", "Succeeded"):
            assert decision.status["phase"] == phase
        if decision.status["phase"] in ("Failed", "Succeeded") and phase in ("", "Running"):
            assert not active

    def test_transition_times_stay_while_nothing_changes_and_what_others_wrote_is_kept(self):
        def given(**status):
            return msgspec.convert(msgspec.to_builtins(pod()) | {"status": status}, Pod)

        before = decide(pod(), {"main": running()}, ADDRESS, NOW).status
        later = NOW + 5 * SECOND
        assert decide(given(**before), {"main": running()}, ADDRESS, later).status == before
        conditions = decide(given(**before), {"main": ended(0)}, ADDRESS, later).status["conditions"]
        times = {one["type"]: one["lastTransitionTime"] for one in conditions}
        assert (times["PodScheduled"], times["Ready"]) == (time_text(NOW), time_text(later))
        preempted = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}
        observed = given(conditions=[preempted], startTime=time_text(NOW + 123_456))
        condition = decide(observed, {}, ADDRESS, NOW).status["conditions"][0]
        assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "Preempted")
        assert start_of(observed, 0) == NOW + 123_456

    def test_quality_of_service(self):
        for requests, limits, expected in (
            ({}, {}, "BestEffort"), ({"cpu": "1"}, {}, "Burstable"), ({"nvidia.com/gpu": "1"}, {}, "BestEffort"),
            ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
            ({"cpu": "500m", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
        ):  # fmt: skip
            container = {"name": "c", "resources": {"requests": requests, "limits": limits}}
            assert qos_class([msgspec.convert(container, Container)]) == expected


T = 1_780_000_000_000
LOOPS = {"waiting": {"reason": "CrashLoopBackOff"}}
WAITS = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))


def waiting_pod(*waiting):
    statuses = [ContainerStatus(name=name, state=WAITS) for name in waiting]
    metadata = ObjectMeta(name="p", namespace="default", uid="u-1")
    return Pod(metadata=metadata, status=PodStatus(container_statuses=statuses))


def status(init=(), **states):
    lists = {"containerStatuses": states, "initContainerStatuses": dict(init)}
    return {key: [{"name": name, "state": state} for name, state in one.items()] for key, one in lists.items()}


class TestEvents:
    @cases("before, after, expected", {
        "begins to wait": ((), status(a=LOOPS), [("containers", "a")]),
        "goes on waiting": (("a",), status(a=LOOPS), []),
        "runs": (("a",), status(a={"running": {}}), []),
        "is created": ((), status(a={"waiting": {"reason": "ContainerCreating"}}), []),
        "another one": (("a",), status(a=LOOPS, b=LOOPS), [("containers", "b")]),
        "init container": ((), status(init={"i": LOOPS}), [("initContainers", "i")]),
    })  # fmt: skip
    def test_a_wait_is_told_when_it_begins(self, before, after, expected):
        assert events.newly_backing_off(waiting_pod(*before), after) == expected

    def test_one_event_for_each_container_counts_its_waits(self, db):
        store.write(Create(NAMESPACES, {"metadata": {"name": "default"}}))
        for number in range(3):
            now = T + number * 60_000
            store.write(*events.writes(LocalCluster(Deaf()), waiting_pod(), status(a=LOOPS, b=LOOPS), now))
        recorded = [stored.object for stored in store.find(EVENTS)]
        counts = {each["involvedObject"]["fieldPath"]: each["count"] for each in recorded}
        assert counts == {"spec.containers{a}": 3, "spec.containers{b}": 3}
        times = {(each["firstTimestamp"], each["lastTimestamp"]) for each in recorded}
        assert times == {("2026-05-28T20:26:40Z", "2026-05-28T20:28:40Z")}
