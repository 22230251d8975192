"""What happens to pods (volcano-job §3.3), which policy answers it (§3.4), what waits (§3.5), and what an action does (§2.3, §2.6)."""

import msgspec
import pytest

from cluster.writes import Create, Delete, Patch, Update
from jobs.controller import pending_actions, plan, pod_events, policy_engine
from jobs.controller.observed import ObservedJob, World
from jobs.controller.pending_actions import PendingAction
from jobs.controller.pod_events import PodEvent
from jobs.controller.requests import Request, Target
from kube.kinds.batch import Action, JobEvent
from kube.priorities import PriorityClasses
from kube.resources import EVENTS, POD_GROUPS, PODS
from tests.jobs.builders import NOW, UID, group_fact, job, job_fact, pod_fact, task, terminated
from tests.tables import cases

FAILED, EVICTED, PENDING = JobEvent.POD_FAILED, JobEvent.POD_EVICTED, JobEvent.POD_PENDING
COMPLETED, RESTARTED, UNKNOWN = JobEvent.TASK_COMPLETED, JobEvent.TASK_FAILED, JobEvent.UNKNOWN
SECOND, OTHERS = Target("main", "demo-main-1", 1), Target("other", "demo-other-1", 0)
WORLD = World(PriorityClasses(), {})
PARTS = {"totalPartitions": 2, "partitionSize": 2}


def policy(action="RestartJob", *events, code=None, timeout=None):
    written = {"event": events[0], "events": [*events[1:]]} if events else {}
    optional = {"exitCode": code, "timeout": timeout}
    return {"action": action, **written} | {key: value for key, value in optional.items() if value is not None}


def read(*policies, of_task=(), phase="Running", replicas=2, **status):
    """A job with a task `main`, its policies and the task's."""
    return job_fact(job(task("main", replicas, policies=[*of_task]), policies=[*policies]), phase=phase, **status)


def pod(index=0, phase="Running", *, code=None, restarts=0, made="2026-01-01T00:00:00Z", **fields):
    state = {} if code is None else {"terminated": {"exitCode": code}}
    statuses = [{"name": "main", "restartCount": restarts, "state": state}]
    return pod_fact("main", index, phase, metadata={"creationTimestamp": made}, containerStatuses=statuses, **fields)


ANY, ON_3 = policy("AbortJob", "*"), policy("RestartJob", code=3)
LOST, RESTARTS_ANY = policy("AbortJob", UNKNOWN), policy("RestartPod", "*")
ABORTS, RESTARTS = policy("AbortJob", FAILED), policy("RestartPod", FAILED)


@pytest.mark.shows("3.4/5")
@cases("of_job, of_task, event, code, action", {
    "job's | 1.1/policies + 3.4/6": ([ABORTS], [], FAILED, 1, "AbortJob"),
    "task's before the job's | 1.2/policies + 3.4/5 + 3.4/6": ([ABORTS], [RESTARTS], FAILED, 1, "RestartPod"),
    "task's does not switch the job's off | 3.4/6": ([ABORTS], [policy("RestartPod", EVICTED)], FAILED, 1, "AbortJob"),
    "one of several | 1.3/events + 1.3/event": ([policy("AbortJob", EVICTED, FAILED)], [], FAILED, 1, "AbortJob"),
    "* is an eviction | 3.1/* + 3.4/5a": ([ANY], [], EVICTED, None, "AbortJob"),
    "* is Unknown | 3.1/*": ([ANY], [], UNKNOWN, None, "AbortJob"),
    "* is a task's completion | 3.1/*": ([ANY], [], COMPLETED, None, "AbortJob"),
    "* is a task's failure | 3.1/*": ([ANY], [], RESTARTED, None, "AbortJob"),
    "* is nothing internal | 3.1/* + 3.4/2 + 3.3/pod runs": ([ANY], [], JobEvent.POD_RUNNING, None, None),
    "* is no Pending at once | 3.1/* + 3.4/5a": ([ANY], [], PENDING, None, None),
    "* is Pending after a while": ([policy("AbortJob", "*", timeout="1m")], [], PENDING, None, "AbortJob"),
    "Pending needs a timeout | 3.1/PodPending + 3.4/5a": ([policy("AbortJob", PENDING)], [], PENDING, None, None),
    "Pending after a while": ([policy("AbortJob", PENDING, timeout="1m")], [], PENDING, None, "AbortJob"),
    "exit code | 3.4/5b": ([ON_3], [], FAILED, 3, "RestartJob"),
    "another exit code | 3.4/5b + 3.4/7": ([ON_3], [], FAILED, 4, None),
    "exit code of a pod that goes | 3.4/5b": ([ON_3], [], EVICTED, 3, None),
    "first in the list | 3.4/5": ([ABORTS, ON_3], [], FAILED, 3, "AbortJob"),
    "exit code that is first in the list | 3.4/5": ([ON_3, ABORTS], [], FAILED, 3, "RestartJob"),
    "no task | 3.1/Unknown + 3.3/group Unknown": ([LOST], [RESTARTS_ANY], UNKNOWN, None, "AbortJob"),
    "unknown action": ([policy("Explode", FAILED)], [], FAILED, 1, None),
    "unknown event": ([policy("AbortJob", "Earthquake")], [], FAILED, 1, None),
    "unreadable timeout": ([policy("AbortJob", FAILED, timeout="soon")], [], FAILED, 1, None),
})  # fmt: skip
def test_policy_that_answers(of_job, of_task, event, code, action):
    task_name = "" if event is UNKNOWN else "main"
    found = read(*of_job, of_task=of_task).policy_for(event, task_name, [] if code is None else [code])
    assert (found and found.action) == action


def answer(job_, *happenings, pods=None, pending=()):
    return policy_engine.to_pods(
        job_, pods or [each.pod for each in happenings], pending, happenings, NOW
    ).pending_actions


def failed(index=0, code=1, **fields):
    return PodEvent(FAILED, pod(index, "Failed", code=code, **fields))


def of_task(event, *pods):
    """A task of two pods of which something happened to the first."""
    return read(policy("CompleteJob", event), replicas=2), [PodEvent(event, pods[0])], pods


def started_often(retries, *restarts):
    """The containers of two pods of a task were started so often, which may be so often."""
    pods = [pod(index, restarts=number) for index, number in enumerate(restarts)]
    job_ = read(policy("AbortJob", RESTARTED))
    job_.task_retries["main"] = retries
    return job_, [PodEvent(RESTARTED, pods[0])], pods


GONE, ENDED = PodEvent(EVICTED, pod()), pod(0, "Succeeded")
ON_FAILED, BOTH = policy("RestartJob", FAILED), [policy("AbortJob", FAILED), policy("RestartJob", EVICTED)]


@cases("job_, happenings, pods", {
    "failed | 3.5/told": (read(ON_FAILED), [failed(code=3)], None),
    "two failed: one restart": (read(ON_FAILED), [failed(0), failed(1)], None),
    "two failed: both, once each": (read(RESTARTS), [failed(0), failed(1), failed(1)], None),
    "of a run that was ended | 3.4/4": (read(ON_FAILED, version=2), [failed(version=1)], None),
    "of this run": (read(ON_FAILED, version=2), [failed(version=2)], None),
    "job that ends": (read(ON_FAILED, phase="Aborting"), [failed()], None),
    "job that is over": (read(ON_FAILED, phase="Completed"), [failed()], None),
    "restarts already": (read(ON_FAILED, phase="Restarting"), [failed()], None),
    "failed, then evicted: both | 10/Q-18": (read(*BOTH), [failed(), GONE], None),
    "evicted, later | 3.5/told": (read(policy("AbortJob", EVICTED, timeout="90s")), [GONE], None),
    "task: all succeeded | 3.3/pod succeeded + 3.5/told": of_task(COMPLETED, ENDED, pod(1, "Succeeded")),
    "task: one runs | 3.3/pod succeeded": of_task(COMPLETED, ENDED, pod(1)),
    "task: one failed | 3.3/pod succeeded": of_task(COMPLETED, ENDED, pod(1, "Failed")),
    "task: one is being ended | 3.3/pod succeeded": of_task(COMPLETED, ENDED, pod(1, "Succeeded", marked=True)),
    "task: one is not there | 3.3/pod succeeded": of_task(COMPLETED, ENDED),
    "started too seldom | 3.3/pod restarted": started_often(3, 1, 1),
    "started often enough together | 3.3/pod restarted": started_often(3, 1, 2),
    "0 is 3, which admission writes": started_often(0, 1, 2),
    "one is enough": started_often(1, 1, 0),
    "never": started_often(-1, 99, 99),
})  # fmt: skip
def test_what_is_asked_of_the_job(golden, job_, happenings, pods):
    golden("answers", [f"{each.action}: {each.why}" for each in answer(job_, *happenings, pods=pods)])


def waiting(action="RestartJob", event=FAILED, name="demo-main-0", delay_s=60, **fields):
    fields, delay = {"uid": UID, "why": "", **fields}, delay_s * 1000
    return PendingAction(
        action=Action(action), event=event, due=NOW + delay, delay_ms=delay, task="main", pod=name, **fields
    )


@cases("pending, new, left", {
    "waits | 3.5/place": ([], waiting(), [("RestartJob", 60)]),
    "the first of two stays | 3.5/place": ([waiting(delay_s=30)], waiting(), [("RestartJob", 30)]),
    "another takes its place | 3.5/another action": ([waiting()], waiting("AbortJob", delay_s=90), [("AbortJob", 90)]),
    "each pod has a place | 3.5/place": (
        [waiting()], waiting(name="demo-main-1", delay_s=90), [("RestartJob", 60), ("RestartJob", 90)]),
    "at once, too": ([waiting()], waiting(delay_s=0), [("RestartJob", 60), ("RestartJob", 0)]),
})  # fmt: skip
def test_what_waits(pending, new, left):
    assert [(each.action, each.delay_ms // 1000) for each in pending_actions.add(pending, new)] == left


@pytest.mark.shows("3.5/runs again")
@cases("event, name, is_called_off", {
    "failed": (FAILED, "demo-main-0", True),
    "evicted": (EVICTED, "demo-main-0", True),
    "another pod": (FAILED, "demo-main-1", False),
    "task completed | 3.5/not called off": (COMPLETED, "demo-main-0", False),
})  # fmt: skip
def test_what_waits_is_called_off_when_the_pod_runs_again(event, name, is_called_off):
    found = answer(read(), PodEvent(JobEvent.POD_RUNNING, pod(0)), pending=(waiting(event=event, name=name),))
    assert (found == ()) is is_called_off


@pytest.mark.shows("3.5/carried out")
@cases("action, target, left, is_called_off", {
    "job: job": ("RestartJob", Target(), waiting("AbortJob"), True),
    "job: pod": ("AbortJob", Target(), waiting("RestartPod"), False),
    "nothing": ("SyncJob", Target(), waiting("AbortJob"), False),
    "pod: the same": ("RestartPod", Target("main", "demo-main-0"), waiting("RestartPod"), True),
    "pod: another": ("RestartPod", SECOND, waiting("RestartPod"), False),
    "task: the same": ("RestartTask", Target("main"), waiting("RestartTask"), True),
    "task: another": ("RestartTask", Target("other"), waiting("RestartTask"), False),
    "task: a pod of it": ("RestartTask", Target("main"), waiting("RestartPod"), False),
    "partition: the same": ("RestartPartition", SECOND, waiting("RestartPartition", partition=1), True),
    "partition: another | 3.5/partition": ("RestartPartition", SECOND, waiting("RestartPartition", partition=0), False),
    "of another task | 3.5/partition": ("RestartPartition", OTHERS, waiting("RestartPartition", partition=0), False),
})  # fmt: skip
def test_what_waits_for_the_same_part_is_called_off(action, target, left, is_called_off):
    done = Request(action=Action(action), why="", target=target)
    assert (pending_actions.after([left], [done]) == ()) is is_called_off


@cases("job_, of, is_left", {
    "runs": (read(), waiting(), True),
    "all pods were ended since": (read(version=1), waiting(), False),
    "ends": (read(phase="Terminating"), waiting(), False),
    "an earlier job of the name | 3.4/3": (read(), waiting(uid="another"), False),
})  # fmt: skip
def test_what_concerns_the_job_still(job_, of, is_left):
    assert (pending_actions.current((of,), job_) != ()) is is_left


def test_all_that_is_asked_is_read_back_from_the_timer():
    pending = (waiting("RestartPartition", partition=0, why="It failed."), waiting(delay_s=0, version=3))
    (timer,) = pending_actions.timers("default/demo", pending, NOW)
    assert pending_actions.read(msgspec.json.decode(msgspec.json.encode(timer), type=type(timer))) == pending


@pytest.mark.shows("3.1/PodPending", "3.3/pod added", "3.5/not pending", "10/Q-2")
@cases("pods, after_s, actions, look_s", {
    "for a minute": ([pod(phase="Pending")], 60, ["RestartJob"], None),
    "not yet": ([pod(phase="Pending")], 59, [], 60),
    "runs": ([pod(phase="Running")], 60, [], None),
    "is being ended": ([pod(phase="Pending", marked=True)], 60, [], None),
    "two: asked once": ([pod(0, "Pending"), pod(1, "Pending")], 60, ["RestartJob"], None),
    "another later": ([pod(0, "Pending"), pod(1, "Pending", made="2026-01-01T00:00:30Z")], 60, ["RestartJob"], 90),
})  # fmt: skip
def test_pods_that_are_pending_for_too_long(pods, after_s, actions, look_s):
    found = policy_engine.to_pending(read(policy("RestartJob", PENDING, timeout="1m")), pods, NOW + after_s * 1000)
    assert [each.action for each in found.pending_actions] == actions
    words = "PodPending: demo-main-0 was Pending for 1m0s. The policy for it is RestartJob."
    assert all(each.why == words for each in found.pending_actions)
    assert found.next == (None if look_s is None else NOW + look_s * 1000)


# ---- what happened
def started_again(number, phase="Running", field="containerStatuses"):
    return pod_fact(phase=phase, **{field: [{"name": "main", "restartCount": number}]})


RUNS, PENDS, FAILS, ENDS = (pod_fact(phase=phase) for phase in ("Running", "Pending", "Failed", "Succeeded"))
IN_INIT = started_again(2, "Pending", "initContainerStatuses")


@pytest.mark.shows("3.1/PodFailed", "3.1/PodEvicted", "3.3/pod failed", "3.3/pod deleted", "3.3/pod marked")
@cases("before, after, is_gone, expected", {
    "failed": (RUNS, FAILS, False, JobEvent.POD_FAILED),
    "failed before it ran": (PENDS, FAILS, False, JobEvent.POD_FAILED),
    "had failed already": (FAILS, FAILS, False, None),
    "made as failed": (None, FAILS, False, None),
    "ended by the controller": (RUNS, pod_fact(phase="Failed", marked=True), False, None),
    "succeeded": (RUNS, ENDS, False, JobEvent.TASK_COMPLETED),
    "had succeeded already": (ENDS, ENDS, False, None),
    "began to run": (PENDS, RUNS, False, JobEvent.POD_RUNNING),
    "container started again": (RUNS, started_again(1), False, JobEvent.TASK_FAILED),
    "container was started again before": (started_again(1), started_again(1), False, None),
    "init container started again": (PENDS, IN_INIT, False, JobEvent.TASK_FAILED),
    "failed at its last start": (RUNS, started_again(1, "Failed"), False, JobEvent.POD_FAILED),
    "its node does not answer": (RUNS, pod_fact(phase="Unknown"), False, None),
    "deleted": (None, RUNS, True, JobEvent.POD_EVICTED),
    "deleted before it ran": (None, PENDS, True, JobEvent.POD_EVICTED),
    "deleted after its end": (None, ENDS, True, JobEvent.POD_EVICTED),
    "deleted by the controller": (None, pod_fact(marked=True), True, None),
})  # fmt: skip
def test_what_happened_between_two_versions(before, after, is_gone, expected):
    assert pod_events.happened(before, after, is_deleted=is_gone) is expected


def test_of_many_pods_three_are_named():
    failed, exited = pod_fact(phase="Failed", containerStatuses=terminated(3)), "demo-main-0 exited with code 3"
    words = f"5 pods failed: {exited}, {exited}, {exited} and 2 more."
    assert pod_events.event_text(FAILED, [failed] * 5) == words
    words = "2 pods were deleted, and not by the job controller: demo-main-0, demo-main-0."
    assert pod_events.event_text(EVICTED, [failed] * 2) == words


# ---- requests, in one round, judged by what is written
def observed_job(fact, pods):
    return ObservedJob(fact, {each.name: each for each in pods}, group_fact())


def reconcile(before, *requests, **fields):
    return plan.reconcile(before, WORLD, NOW, requests=[*requests], **fields)


def request(action, why="A pod failed.", **target):
    return Request(action=Action(action), target=Target(**target), why=why)


def ended(writes):
    return [each.name.removeprefix("demo-") for each in writes if isinstance(each, Delete) and each.resource == PODS]


def status(writes):
    return next((each.object["status"] for each in writes if isinstance(each, Update)), None)


# ---- each action in each phase: the table of volcano-job §2.6, cell by cell

# A job of five pods that needs three; main has partitions of two. It was restarted once, and twice all pods were ended.
RETRIES, VERSION = 1, 2
PHASES = {"main-0": "Running", "main-1": "Succeeded", "main-2": "Failed", "main-3": "Pending", "other-0": "Running"}
FIVE = [pod_fact(*name.split("-"), phase, version=VERSION) for name, phase in PHASES.items()]
ALL = set(PHASES)
ALIVE = {"main-0", "main-3", "other-0"}
OF_TASK = {"main-0", "main-1", "main-2", "main-3"}
OF_PARTITION = {"main-0", "main-1"}
OF_POD = {"main-1"}

# action → the pods that end, whether the pod group does and all pods count as ended, the phase, further retries
IN_LINE = ("SyncJob", "EnqueueJob", "ResumeJob")
BEFORE_THE_END = {
    "RestartJob": (ALL, True, "Restarting", 1), "RestartTask": (OF_TASK, False, "Restarting", 1),
    "RestartPod": (OF_POD, False, "Restarting", 1), "RestartPartition": (OF_PARTITION, False, "Restarting", 1),
    "AbortJob": (ALIVE, True, "Aborting", 0), "TerminateJob": (ALIVE, True, "Terminating", 0),
    "CompleteJob": (ALIVE, True, "Completing", 0),
}  # fmt: skip
ACTIONS = (*BEFORE_THE_END, *IN_LINE)
WHOLE = ("RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob")
RESUMED = {"ResumeJob": (ALL, True, "Restarting", 0)}  # put right
CELLS = {
    **dict.fromkeys(("Pending", "Running"), BEFORE_THE_END | dict.fromkeys(IN_LINE, (set(), False, "Running", 0))),
    "Restarting": {
        **dict.fromkeys(IN_LINE, (set(), False, "Pending", 0)),
        **dict.fromkeys(WHOLE, (ALL, True, "Restarting", 0)),
        # Of five pods one or two end: the three that the job needs may start. Four: they may not.
        "RestartPod": (OF_POD, False, "Pending", 0),
        "RestartPartition": (OF_PARTITION, False, "Pending", 0),
        "RestartTask": (OF_TASK, False, "Restarting", 0),
    },
    **{phase: dict.fromkeys(ACTIONS, (ALIVE, True, phase, 0)) | RESUMED for phase in ("Aborting", "Aborted")},
    **{
        phase: dict.fromkeys(ACTIONS, (ALIVE, True, phase, 0))
        for phase in ("Completing", "Completed", "Terminating", "Terminated", "Failed")
    },
}


def items(phase, action):
    is_deaf = phase in ("Restarting", "Completing", "Terminating") and action in WHOLE
    return f"2.6/{phase}×{action}" + " + 10/Q-13" * is_deaf


@cases("phase, action, expected", {
    f"{phase}: {action} | {items(phase, action)}": (phase, action, row[action])
    for phase, row in CELLS.items()
    for action in ACTIONS
})  # fmt: skip
def test_action_in_a_phase(phase, action, expected):
    written = job(task("main", 4, partitionPolicy=PARTS), task("other"), minAvailable=3)
    before = observed_job(job_fact(written, phase=phase, retryCount=RETRIES, version=VERSION), FIVE)
    before.in_step = True
    writes = reconcile(before, request(action, task="main", pod="demo-main-1", partition=0)).writes
    if before.job.is_finished:
        # What is asked of a job that is over is taken, and does nothing; the next round does what any would.
        writes += reconcile(before).writes
    after = status(writes) or before.job.status
    is_whole = any(isinstance(each, Delete) and each.resource == POD_GROUPS for each in writes)
    assert ({*ended(writes)}, is_whole, after["state"]["phase"], after["retryCount"] - RETRIES) == expected
    assert after["version"] - VERSION == is_whole


# ---- parts of a job, and several requests at once
def running(*pods, phase="Running", **fields):
    """A job of two tasks, the second in partitions of two, with these pods or all of them running."""
    written = job(task("driver", 2), task("worker", 4, partitionPolicy=PARTS))
    every_pod = [pod_fact(name, index) for name, number in (("driver", 2), ("worker", 4)) for index in range(number)]
    return observed_job(job_fact(written, phase=phase, **fields), pods or every_pod)


def executed(writes):
    made = [each.object for each in writes if isinstance(each, Create) and each.resource == EVENTS]
    return [event["message"] for event in made if event["reason"] == "ExecuteAction"]


DRIVER, WORKER = request("RestartTask", task="driver"), request("RestartPod", pod="demo-worker-0")
ABORT, THIRD = request("AbortJob"), {"task": "worker", "pod": "demo-worker-2"}
FIRST_2 = request("RestartPartition", task="driver", partition=0)
STRANGERS = pod_fact("driver", 0, metadata={"ownerReferences": []})
GOING = pod_fact("driver", 0, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
ONE = pod_fact("driver", 1)
OVER = [pod_fact("driver", 0, "Failed"), pod_fact("driver", 1, "Succeeded"), pod_fact("worker", 0)]


@cases("before, requests", {
    # ---- a part of the job
    "a task | 2.3/pods + 2.3/pod group": (running(), [DRIVER]),
    "a pod | 2.3/pods + 2.3/pod group": (running(), [request("RestartPod", **THIRD)]),
    "a partition | 2.3/pods + 2.3/pod group": (running(), [request("RestartPartition", **THIRD, partition=1)]),
    "pods that ended go as well to be made again | 2.3/pods": (running(*OVER), [DRIVER]),
    "and stay for their logs when no other run follows | 2.2/3 last retry": (running(OVER[0], ONE, retryCount=2), [DRIVER]),
    "pods that are being deleted are not deleted once more | 2.2/3": (running(GOING, ONE), [DRIVER]),
    "of somebody else with a name of the task": (running(STRANGERS), [DRIVER]),
    # ---- without pods
    "a task that is not there | 2.3/no such task or pod": (running(), [request("RestartTask", task="none")]),
    "no task | 2.3/no such task or pod": (running(), [request("RestartTask")]),
    "no pod | 2.3/no such task or pod": (running(), [request("RestartPod")]),
    "no partition | 2.3/no such partition": (running(), [request("RestartPartition")]),
    "empty partition | 2.3/no such partition": (running(), [request("RestartPartition", task="worker", partition=7)]),
    "task without partitions | 2.3/no such partition": (running(), [FIRST_2]),
    # ---- several at once
    "parts together use up one retry": (running(), [request("RestartPod", pod=f"demo-worker-{n}", why=f"{n}.") for n in (0, 3)]),
    "the same twice is told once": (running(), [WORKER] * 2),
    "the whole job after its parts": (running(), [WORKER, ABORT]),
    "parts after the whole job": (running(), [ABORT, WORKER, ABORT]),
})  # fmt: skip
def test_what_is_done_at_a_request(golden, before, requests):
    outcome = reconcile(before, *requests)
    after = status(outcome.writes) or {"state": {"phase": "no change"}}
    marked = [each.name.removeprefix("demo-") for each in outcome.writes if isinstance(each, Patch)]
    assert marked == ended(outcome.writes)
    found = {"ended": marked, "group": [type(each).__name__ for each in outcome.writes if each.resource == POD_GROUPS]}
    found |= {"told": executed(outcome.writes), "phase": [after["state"]["phase"]]}
    found |= {name: [after[name]] for name in ("retryCount", "version", "running", "terminating") if name in after}
    found |= {"waiting": [each.action for each in outcome.waiting], "again": ["at once"] * outcome.again}
    golden("requests", "; ".join(f"{key} {', '.join(map(str, each))}" for key, each in found.items() if each))


def test_job_that_no_controller_has_seen_is_pending_first():
    outcome = reconcile(ObservedJob(running(phase="").job), ABORT)
    assert (status(outcome.writes)["state"]["phase"], len(outcome.waiting)) == ("Pending", 1)


def test_part_larger_than_a_round_ends_in_several_and_the_phase_changes_with_the_last():
    before, wanted = running(), request("RestartTask", task="worker")
    first = reconcile(before, wanted, room=3)
    assert ended(first.writes) == ["worker-0", "worker-1", "worker-2"]
    assert status(first.writes)["state"]["phase"] == "Running"
    assert (first.waiting, first.again, executed(first.writes)) == ([wanted], True, [])
    for name in ended(first.writes):
        del before.pods[f"demo-{name}"]
    last = reconcile(before, *first.waiting, room=3)
    after = status(last.writes)
    assert (ended(last.writes), after["state"]["phase"], after["retryCount"]) == (["worker-3"], "Restarting", 1)
    assert last.waiting == []
