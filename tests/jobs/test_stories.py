"""What comes of a job as things happen to it (reference: volcano-job §1.5, §2, §3): how to read it, says tests/jobs/story.py."""

import pytest

from cluster.store import Create, Delete, store
from kube.resources import COMMANDS, JOBS, PODS
from tests.jobs.control import Controller, command, messages, phase, state, task
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


def on(event, action="RestartJob", **fields):
    return {"event": event, "action": action, **fields}


def policy(*fields, **spec):
    return {"policies": [on(*fields)], **spec}


FAILED, IN_A_MINUTE = policy("PodFailed"), {"policies": [on("PodFailed", timeout="1m")]}
FIVE, THREE = {"replicas": 5, "minAvailable": 1}, {"replicas": 3, "minAvailable": 1}
LATE, STUCK = ({"policies": [on("PodPending", action, timeout="10m")]} for action in ("AbortJob", "ResumeJob"))
PARTS = {"totalPartitions": 2, "partitionSize": 2}
MORTAL = {"replicas": 1, "ttlSecondsAfterFinished": 100}
OF_PARTS = {"tasks": [task("main", 4, partitionPolicy=PARTS, policies=[on("PodFailed", "RestartPartition")])]}
OF_TASK = {"tasks": [task("ps", 1), task("work", 2, policies=[on("PodFailed", "RestartTask")])]}
MASTER = {"tasks": [task("master", 1, policies=[on("TaskCompleted", "CompleteJob")]), task("work", 2)]}
TWO_STARTS = {"tasks": [task("main", 2, maxRetry=2, policies=[on("TaskFailed", "TerminateJob")])]}
TWO_TASKS = {"tasks": [task("a", 3, minAvailable=1), task("b", 2, minAvailable=1)], "minAvailable": 2}
ELASTIC = {"replicas": 5, "minAvailable": 2}
NO_PART = "tells alice asked for {}, but a Command names no task or pod, so that no pod ends."
NO_ACTION = "tells alice asked for {}, which is no action of a job; nothing is done."
THROUGH = "Restarting Pending Running"
TEN = " ".join(f"main-{number}" for number in range(10))
LACK = 'Cannot start: configmap "c" not found · main-0, main-1.'


@cases("spec, story", {
    # ---- pods and their group
    "a life, from the group to the completion | 2.4/5 + 2.4/4a + 2.4/4b-d + 4.4/made + 1.5/state.reason, state.message"
    " + 2.8/normal life + 1.5/state.phase + 2.4/7 absent + 2.2/12 + 10/Q-1 + 2.2/7 + 2.4/10"
    " + 1.5/taskStatusCount after a kill + scheduler 10.1/21 + scheduler 10.2/8": ({}, """
        → phase Pending; reason WaitingForQueue; groups 1; pods
        admit → pods main-0 main-1; pending 2
        starts main-0 → says 1 of 2 pods is running, 1 pending; minAvailable is 2.
        starts main-1 → phase Running
        next → passed
        succeed → phase Completed; succeeded 2; groups 0; pods main-0 main-1; kept 0; says All 2 pods succeeded.
        → conditions Pending Running Completed"""),
    "the group that somebody deletes is made again and the pods stay | 2.4/4 later + 3.3/group otherwise": ({}, """
        run
        ungroup → groups 1; anew; phase Running"""),
    "while the group waits pods are counted and none is made | 2.4/6 + 2.4/5 + 10/Q-20": (THREE, """
        run, group Pending, succeed main-0, evict main-1 → pods main-0 main-2; succeeded 1; running 1
        group Inqueue → pods main-0 main-1 main-2"""),
    **{
        f"pods are made when the group is {phase} | 2.4/5 + 4.4/made": ({}, f"group {phase} → pods {names}")
        for phase, names in dict.fromkeys(("Inqueue", "Running", "Unknown", "Completed"), "main-0 main-1").items()
    },
    "and not when it is Pending | 2.4/5": ({}, "group Pending → pods"),
    "a pod that is being deleted holds its name | 2.4/7 terminating + 1.5/terminating + 2.4/7 absent": (
        {"minAvailable": 1}, """
        run, bind
        delete main-1 → anew; terminating 1
        evict main-1 → anew main-1; terminating 0"""),
    "a pod that failed or succeeded is not made again | 2.4/7 ended": (THREE, """
        run
        fail main-1 → anew; phase Running; failed 1
        succeed main-2 → anew; phase Running; succeeded 1"""),
    "scaled to nothing and back | 2.8/scale to 0 + 2.5/Running 1": ({}, """
        run, scale 0 0 → phase Running; reason NoReplicas; pods
        → says Every task has 0 replicas; raise a task's replicas or delete the job.
        scale 1 1 → pods main-0"""),
    "enough successes end the pods that still run | 1.1/minSuccess + 2.2/3": ({"replicas": 3, "minSuccess": 1}, """
        run, succeed main-1 → phase Completed; version 1; succeeded 1; pods main-1; terminating 0"""),
    # ---- the status
    "pods that end are terminating and nothing else | 1.5/terminating + 2.2/5": ({}, """
        run, bind, command AbortJob → terminating 2; running 0"""),
    "the version grows when all pods end, and retries with each restart | 1.5/version + 1.5/retryCount + 2.2/2"
    " + 2.3/version + 10/Q-6 + 10/Q-10": ({}, """
        run, bind, command RestartPod → version 0; retries 1
        sweep, run, bind, command RestartJob → version 1; retries 2
        sweep, run, bind, command AbortJob → version 2; retries 2"""),
    **{
        f"a job took as long as until its last pod ended: {action} | 1.5/runningDuration + 2.2/9": ({}, f"""
        run, bind, wait 60, command {action}, wait 30, sweep → phase {phase}; duration 1m30s""")
        for action, phase in (("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed"))
    },
    "a job that runs again has taken no time yet | 1.5/runningDuration + 1.5/conditions + 2.2/8": ({}, """
        run, bind, wait 60, command RestartJob, sweep → conditions Running Restarting Pending
        run → duration
        wait 60, succeed → duration 2m0s"""),
    **{
        f"the time to live of a job that is {phase} | 6.2/which + 6.2/since": (MORTAL | policies, f"""
        run, wait 1000, fail → phase {phase}
        wait 99 → going no
        wait 2 → going {goes}""")
        for phase, policies, goes in (
            ("Completed", policy("PodFailed", "CompleteJob"), "yes"), ("Failed", {}, "yes"),
            ("Terminated", policy("PodFailed", "TerminateJob"), "yes"), ("Aborted", policy("PodFailed", "AbortJob"), "no"),
        )
    },
    # ---- Commands
    "suspended and resumed, from the start and without a retry | 2.2/3 + 3.2/AbortJob + 2.8/suspend and resume"
    " + 3.7/CommandIssued + 10/Q-7 + 10/Q-22 + 3.2/ResumeJob + 4.4/made": ({}, """
        run, bind, succeed main-0, command AbortJob → says Suspended on request. Waiting for 1 pod to end.
        → phase Aborting; issued alice asked for AbortJob.
        sweep → phase Aborted; pods main-0; groups 0; commands 0
        → says 1 of 2 pods had succeeded when the job was suspended. Resume it to run it from the start.
        command ResumeJob, sweep → passed Restarting Pending; reason WaitingForQueue; pods
        run → phase Running; retries 0
        succeed → phase Completed; succeeded 2"""),
    "suspended and resumed more often than it may be retried": ({}, """
        run
        command AbortJob ResumeJob, run, command AbortJob ResumeJob, run, command AbortJob ResumeJob, run → version 3
        command AbortJob ResumeJob, run, command AbortJob ResumeJob, run → version 5; phase Running"""),
    **{
        f"stopped by {action} | 3.2/{action}": ({}, f"""
        run, succeed main-0
        command {action} → passed {way}; succeeded 1; running 0; pods main-0; groups 0
        → says 1 of 2 pods had succeeded when the job was {end}.""")
        for action, way, end in (
            ("TerminateJob", "Terminating Terminated", "terminated"), ("AbortJob", "Aborting Aborted", "suspended"),
            ("CompleteJob", "Completing Completed", "completed on request"),
        )
    },
    "stopped before it has pods": ({}, """
        command TerminateJob → passed Terminating Terminated; groups 0; says None of 2 pods had ended when"""),
    "restarted as often as it may be, with new pods | 1.1/maxRetry + 2.8/restart": ({}, """
        run, fail main-1 137 → exitCodes 137
        command RestartJob → phase Pending; retries 1; version 1; exitCodes
        run → anew main-0 main-1
        command RestartJob, run, fail main-1 3 → phase Running
        command RestartJob → phase Failed; reason RetriesUsedUp; retries 3; failed 1; pods main-1; kept 0"""),
    "a Command to a finished job is consumed": ({"ttlSecondsAfterFinished": 1000}, """
        run, succeed → kept 0
        evict main-0, command AbortJob → commands 0; phase Completed; kept 0
        command ResumeJob → commands 0; phase Completed
        command RestartJob → commands 0; phase Completed"""),
    "the next controller carries out what the last one left": ({}, """
        run, command AbortJob → phase Aborted
        next, command ResumeJob → phase Pending"""),
    # ---- policies
    "a failed pod restarts the job | 2.8/restart + 3.1/PodFailed + 3.2/RestartJob + 3.7/ExecuteAction + 1.3/action": (
        FAILED, """
        run, bind, fail main-1 3 → phase Restarting; retries 1; version 1; executed 1
        sweep, run → phase Running; pods main-0 main-1"""),
    "again and again, until its retries are used up | 1.1/maxRetry + 2.2/3 last retry": (policy("*", maxRetry=2), """
        run, bind, fail main-0, sweep, run → phase Running
        bind, fail main-0, sweep → phase Failed; retries 2; reason RetriesUsedUp; executed 2; pods main-0"""),
    "the third restart of three makes no pods | 10/Q-19 + 2.5/Restarting, no retries": (FAILED, """
        run, fail main-0, run, fail main-0, run
        fail main-0, admit → phase Failed; retries 3; anew"""),
    # All pods have ended, so that the job would be Failed.
    "a policy goes before what would come of it by itself | 10/Q-14": (FAILED, """
        run
        fail → passed Restarting Pending"""),
    "an exit code restarts the pods alone that failed with it | 1.3/exitCode + 3.2/RestartPod + 2.8/restart of a pod"
    " + 10/Q-6": ({"replicas": 4, "policies": [{"action": "RestartPod", "exitCode": 3}]}, """
        run, bind
        fail main-1 main-3 3, sweep → anew main-1 main-3; running 2; pending 2; retries 1; executed 2"""),
    "the task of the pod is restarted | 3.2/RestartTask + 3.4/target": (OF_TASK, """
        run, bind
        fail work-0, sweep → anew work-0 work-1"""),
    "the partition of the pod is restarted | 3.2/RestartPartition + 3.4/target + 1.2/partitionPolicy.partitionSize": (
        OF_PARTS, """
        run, bind
        fail main-2, sweep → anew main-2 main-3"""),
    "a task that completed completes the job | 3.1/TaskCompleted + 3.2/CompleteJob": (MASTER, """
        run, bind, succeed master-0 → phase Completing
        sweep → phase Completed; succeeded 1"""),
    "containers that are started too often fail the task | 3.1/TaskFailed + 1.2/maxRetry + 3.3/pod restarted": (
        TWO_STARTS, """
        run, bind, restarts main-0 1 → phase Running
        restarts main-0 2 → phase Terminating"""),
    "a pod that had succeeded may be evicted | 10/Q-17 + 3.1/PodEvicted + 3.3/pod deleted": (
        policy("PodEvicted", "AbortJob", minAvailable=1), "run, succeed main-0, evict main-0 → phase Aborted"),
    "a lost place is answered in every run | 10/Q-4 + 3.1/Unknown + 3.3/group Unknown": (policy("Unknown"), """
        run, group Unknown → version 1; retries 1
        run, group Unknown → version 2; retries 2"""),
    "pods that the controller ends itself lead to nothing | 10/Q-3 + 3.3/pod marked": (policy("*", replicas=3), """
        run, bind, scale 1 1, sweep → phase Running; pods main-0; executed 0"""),
    # An event alone tells of it, and the controller does not follow events.
    "the job goes on after an answer that changes nothing": (
        policy("PodEvicted", "RestartPartition", minAvailable=1), """
        run, bind, delete main-0 → terminating 1
        evict main-0 → terminating 0; pods main-0 main-1"""),
    # ---- later
    "an action that is delayed is carried out once | 1.3/timeout + 3.5/told + 3.5/due": (IN_A_MINUTE, """
        run, bind, fail main-1 3, wait 30 → phase Running; executed 1
        wait 61 → phase Restarting; retries 1
        sweep, run, wait 600 → phase Running; retries 1; executed 2"""),
    "by the next controller, too | 3.5/due": (IN_A_MINUTE, """
        run, bind, fail main-1
        next, wait 61 → phase Restarting; retries 1"""),
    **{
        f"an action that waits is carried out once whatever the clock does: {waits}": (IN_A_MINUTE, f"""
        run, bind, fail main-0, {waits} → phase Running
        wait {last} → phase Restarting
        sweep, run, wait 3600 → phase Running; retries 1""")
        for waits, last in (("wait 0", 3600), ("wait -3600", 3661), ("wait 30, wait -45", 80))
    },
    "the time to live begins though the clock is set back": ({"replicas": 1, "ttlSecondsAfterFinished": 60}, """
        run, succeed, wait -3600 → phase Completed; going no
        wait 3661 → going yes"""),
    "an evicted pod is made again meanwhile, and calls it off | 3.5/runs again + 3.5/meanwhile + 10/Q-12 + 3.1/PodEvicted": (
        {"policies": [on("PodEvicted", "AbortJob", timeout="1m")]}, """
        run, bind
        evict main-1 → executed 1; anew main-1
        starts main-1, wait 61 → phase Running"""),
    "pods that are pending for too long | 3.1/PodPending": (LATE, """
        wait 3600 → phase Pending; executed 0
        admit, wait 599 → phase Pending
        wait 2 → phase Aborted; executed 1"""),
    "pods that began in time | 3.5/not pending + 10/Q-2": (LATE, "run, wait 3600, next → phase Running"),
    "an answer that would leave a pod waiting is not given again and again": (STUCK, """
        admit, wait 601, wait 601, wait 601 → phase Pending; executed 0"""),
    # ---- what is told of pods
    "pods that fail together are told once, and one that is deleted": (FIVE, """
        run, fail main-1 main-3 2 → reported 2 pods failed: demo-main-1 exited with code 2, demo-main-3 exited with code 2.
        next → reported 2 pods failed: demo-main-1 exited with code 2, demo-main-3 exited with code 2."""),
    "a pod that somebody deletes is told": (FIVE, """
        run, evict main-2 → reported 1 pod was deleted, and not by the job controller: demo-main-2."""),
    "nothing is told of pods that the controller ends": (FIVE, """
        run, need 1, succeed main-0 → phase Completed; reported"""),
    "nor of those of a job that is deleted": (FIVE, "run, remove, evict main-0 main-1 → reported; going yes"),
    "nor of those of a finished job": (FIVE, "run, succeed, delete main-0 → phase Completed; reported"),
    # ---- Commands in a burst, without an effect, taken back
    "a restart of a job larger than a round leaves no pod of the run before": ({"replicas": 10, "minAvailable": 1}, f"""
        room 3, run, command RestartJob → pods
        run → anew {TEN}; running 10; version 1
        command AbortJob ResumeJob, admit → pods {TEN}; phase Pending"""),
    **{
        f"told and consumed without an effect on pods: {action} | {items}": ({}, f"""
        run
        command {action} → passed {way}; anew; commands 0; retries {int(bool(way))}; {words.format(action.strip("-"))}""")
        for action, items, way, words in (
            ("RestartTask", "3.4/no target", THROUGH, NO_PART), ("RestartPod", "3.4/no target", THROUGH, NO_PART),
            ("RestartPartition", "3.4/no target", "", f"warnings 0; {NO_PART}"),
            ("Jump", "2.6/any×unknown action + 6.3/action + 3.4/1", "", f"warnings 1; {NO_ACTION}"),
            ("-", "6.3/action", "", f"warnings 1; {NO_ACTION}"), ("OpenQueue", "6.3/action", "", f"warnings 1; {NO_ACTION}"),
        )
    },
    **{
        f"a pod group follows a job that changes while a part is restarted: {action}": ({}, f"""
        run, !least 1, command {action} → group 1 main=2 pods=1""")
        for action in ("RestartTask", "RestartPartition")
    },
    **{
        f"a burst in order: {words} | 2.1/one job, one worker": ({}, f"""
        run, bind
        command {actions}, sweep → phase {end}; retries {retries}; commands 0""")
        for words, actions, end, retries in (
            ("suspended and resumed", "AbortJob ResumeJob", "Pending", 0),
            ("a restarting job heeds no suspension", "AbortJob ResumeJob AbortJob", "Pending", 0),
            ("a restarting job heeds no end", "RestartJob TerminateJob", "Pending", 1),
            ("parts together", "RestartTask RestartPod", "Running", 1),
            ("the first way to end", "CompleteJob TerminateJob", "Completed", 0),
            ("an unknown one between", "AbortJob Jump ResumeJob", "Pending", 0),
        )
    },
    "who asks to look at it has not asked for its end": ({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}, """
        run, bind, fail main-1 → phase Aborting; says Suspended by its policy PodFailed → AbortJob (main). Waiting for 1 pod to end.
        command SyncJob → phase Aborting; says Suspended by its policy PodFailed → AbortJob (main). Waiting for 1 pod to end.
        sweep → phase Aborted; says when the job was suspended by its policy PodFailed → AbortJob (main)."""),
    "taken back before it is seen": ({}, "run, !command AbortJob, recall → phase Running; issued"),
    "taken back while it is planned": ({}, "run, !command AbortJob, meanwhile recall, settle → phase Running; issued"),
    "a commit that fails leaves command and job as they were | 6.3/taken": ({}, """
        run, !command AbortJob, crash → phase Running; commands 1; reasons SuccessfulCreate PodsRunning
        settle → phase Aborted; commands 0; issued alice asked for AbortJob."""),
    "to a job that is being deleted": ({}, """
        run, remove
        command AbortJob → phase Running; commands 0; tells alice asked for AbortJob; the job is being deleted, so nothing is"""),
    # ---- the pods are gone by then, so nobody else knows what kept them from running
    **{
        f"a job that is ended says what kept its pods from running: {end}": ({"maxRetry": 1}, f"""
        admit, lack → says {LACK} 0 of 2 pods are running; minAvailable is 2.
        command {action} → phase {end}; says {LACK}
        → says {rest}""")
        for action, end, rest in (
            ("RestartJob", "Failed", "The job was restarted 0 times; instead of restart 1 it failed, as maxRetry is 1."),
            ("AbortJob", "Aborted", "Resume it to run it from the start."),
            ("TerminateJob", "Terminated", "when the job was terminated."),
        )
    },
    "what kept pods from running in an earlier run is forgotten": ({}, f"""
        admit, lack → causes {LACK}
        command RestartJob, run → causes
        command AbortJob → causes; says None of 2 pods had ended when the job was suspended."""),
    # ---- limit ranges and quotas
    "a gang waits as a whole until there is room | 3.7/FailedCreate": ({"replicas": 3}, """
        quota pods=2, admit → pods; reason FailedCreate; says Waiting until the job's 3 pods may be made together: pods
        → says pods "demo-main-0" is forbidden: exceeded quota: q, requested: pods=3, used: pods=0, limited: pods=2.
        quota pods=3 → pods main-0 main-1 main-2; reason WaitingForPods"""),
    "an elastic job gets what fits beyond its minimum": (ELASTIC, """
        quota pods=3, admit → pods main-0 main-1 main-2; says More are not made: pods "demo-main-3" is forbidden: exceeded
        → says exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3."""),
    "the minimum of every task comes first": (TWO_TASKS, "quota pods=3, admit → pods a-0 a-1 b-0"),
    "a quota of other things does not bind": ({}, "quota configmaps=0, admit → pods main-0 main-1"),
    "pods out of bounds wait until the bounds change": ({}, """
        limit min=1, admit → pods; says pods "demo-main-0" is forbidden: minimum cpu usage per Container is 1.  No request is
        limit → pods main-0 main-1"""),
    "a creation in between leaves room for fewer pods of an elastic job": (ELASTIC, """
        quota pods=3, meanwhile rival, admit → pods main-0 main-1 rival"""),
    "the next job goes on when pods end": ({}, """
        other, quota pods=2, admit → pods main-0 main-1
        starts, succeed main-0 main-1 → phase Completed; pods main-0 main-1 other-main-0 other-main-1"""),
    "jobs planned together do not take the same room": ({}, "other, quota pods=3, admit → pods main-0 main-1"),
    "a new process remembers who waits, and a job that waits may be deleted": ({}, """
        other, quota pods=1, admit, alone, next, quota → pods main-0 main-1"""),
})  # fmt: skip
def test_story(tell, spec, story):
    tell(spec, story)


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
@cases("story", {
    "a creation in between does not lead beyond the quota": """
        quota pods=2, meanwhile rival, admit → pods rival; reasons FailedCreate
        → says exceeded quota: q, requested: pods=2, used: pods=1, limited: pods=2.
        evict rival → pods main-0 main-1""",
    "a quota that appears in between binds": "meanwhile quota pods=1, admit → pods",
    "of jobs planned together only those wait that lost their room": (
        "other, quota pods=4, meanwhile rival, admit → pods main-0 main-1 rival"),
})  # fmt: skip
def test_story_of_one_transaction(tell, story):
    tell({}, story)


def test_quota_that_must_know_the_request_is_told_by_the_limit_range(tell):
    steps = "quota requests.cpu=1, admit → says must specify requests.cpu for: main"
    tell({}, f"{steps}\nlimit defaultRequest=500m → pods main-0 main-1")
    made = [each.object for each in store.find(PODS)]
    assert [each["spec"]["containers"][0]["resources"]["requests"] for each in made] == [{"cpu": "500m"}] * 2
    note = "LimitRanger plugin set: cpu request for container main"
    assert made[0]["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == note


# ---- Commands
@cases("name, fields, expected, words", {
    "uid of an earlier job | 6.3/target": ("demo", {"uid": "another"}, "Running", []),
    "no such job | 6.3/target": ("gone", {"uid": "some"}, "Running", []),
    "no such job, no uid | 6.3/target": ("gone", {"uid": ""}, "Running", []),
    "no uid: whoever has the name": ("demo", {"uid": "", "by": ""}, "Aborted", ["AbortJob was asked for."]),
})  # fmt: skip
def test_command_is_for_the_job_of_its_uid(controller, name, fields, expected, words):
    controller.start()
    controller.issue("AbortJob", name=name, **fields)
    assert (store.find(COMMANDS), phase(), messages("CommandIssued")) == ([], expected, words)


@pytest.mark.shows("6.3/other targets")
def test_command_to_something_else_is_left_alone(controller):
    target = {"apiVersion": "v1", "kind": "Pod", "name": "demo", "uid": "x"}
    about = {"name": "c", "namespace": "default"}
    store.write(Create(COMMANDS, {"metadata": about, "action": "AbortJob", "target": target}))
    controller.start()
    assert [stored.name for stored in store.find(COMMANDS)] == ["c"]


def test_command_that_cannot_go_at_once_is_carried_out_once(controller):
    controller.start()
    controller.issue("RestartJob", finalizers=["example.com/kept"])
    controller.run()
    for each in (controller, Controller()):
        each.settle()
        assert (phase(), state()["retryCount"], len(store.find(COMMANDS))) == ("Running", 1, 1)


def test_job_deleted_with_its_command_leaves_nothing(controller):
    controller.start()
    command("AbortJob")
    store.write(Delete(JOBS, "default", "demo"))
    controller.settle()
    assert (store.find(COMMANDS), controller.state.entries, controller.state.commands) == ([], {}, {})
