"""Each invariant catches the histories that are wrong, and lets the right ones pass."""

import pytest

from kube.meta import parse_time, timestamp
from kube.volcano.reserved_room import Reservation
from proof.invariants import INVARIANTS, Broken, Judge, check
from proof.invariants.views import COMMANDS, CRONS, EVENTS, FLOWS, GROUPS, JOBS, NAMESPACES, NODES, PODS, QUEUES
from proof.invariants.writing import AT, Log
from scheduler.engine.cause import Reason
from scheduler.idle import judge

LATER = AT + 60_000
LONG_AGO = "2027-01-15T07:00:00Z"
SOON, LATE = "2027-01-15T09:00:00Z", "2027-01-15T10:00:00Z"
FOR_ROOM = {"message": "Waits for room.", "reason": "NotEnoughResources"}
NO_ROOM = "The pod does not fit yet: it needs 1 CPU, the most free on one node is 0 CPU (n)."


def ran(number, started, ended=""):
    """The status of a container in an attempt."""
    ident = f"process://p/c/{number}"
    state = {"running": {"startedAt": started}}
    if ended:
        state = {"terminated": {"startedAt": started, "finishedAt": ended, "exitCode": 0, "containerID": ident}}
    status = {"name": "c", "restartCount": number, "containerID": ident, "state": state}
    return {"containerStatuses": [status]}


def again(started):
    """The status of a container in its second attempt, which tells of the first."""
    (status,) = ran(1, "t3")["containerStatuses"]
    (first,) = ran(0, started, "t2")["containerStatuses"]
    return {"containerStatuses": [{**status, "lastState": first["state"]}]}


def whose(name):
    """The annotations of what somebody made, or his job."""
    return {"annotations": {"ui.volcano.sh/created-by": name}}


def counted(**phases):
    """The counters of a job's status."""
    return {name.lower(): n for name, n in phases.items()} | {"taskStatusCount": {"main": {"phase": phases}}}


def owned(uid, **fields):
    return {"ownerReferences": [{"kind": "Job", "name": "j", "uid": uid, **fields}]}


def gang(count, minimum=2, **fields):
    """A gang of pods, the first `count` of them bound."""
    log = Log().node().group(minimum=minimum, **fields)
    for n in range(2):
        log.pod(f"p{n}", group="g")
    for n in range(count):
        log.pod(f"p{n}", group="g", node="n")
    return log


VICTIM = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
WAITS = {"type": "Unschedulable", "status": "True", "reason": "WaitingForVictims", "message": "2 pods are asked to end"}


def evicting(*numbers, minimum=2, waits="h"):
    """A gang of two that runs, some pods of which are evicted, for another group or for nobody."""
    log = (
        gang(2, minimum)
        .wait(9000)
        .group("h")
        .put(GROUPS, waits, status={"conditions": [WAITS] if waits == "h" else []})
    )
    for n in numbers:
        log.pod(f"p{n}", group="g", status={"conditions": VICTIM})
    for n in numbers:
        log.pod(f"p{n}", group="g", deleted=SOON)
    return log.queue()


def reclaimed(after, *, first="2027-01-15T08:00:00Z", says=True, is_first=False):
    """A gang of two that is reclaimed so many seconds after its pods have started, whose group was evicted before, or is now."""
    started = parse_time("2027-01-15T08:00:00Z")
    noted = {"annotations": {"ui.volcano.sh/first-evicted": first} if says else {}}
    log = gang(2, meta=None if is_first else noted).wait(9000)
    if is_first:
        log.put(GROUPS, "g", meta=noted)
    log.group("h").put(GROUPS, "h", status={"conditions": [WAITS]})
    for n in range(len(after)):
        about = {"kind": "Pod", "name": f"p{n}", "uid": f"uid-pods-p{n}"}
        message = "Pod is evicted, because of reclaim: pod group d/h gets its room."
        log.put(EVENTS, f"e{n}", involvedObject=about, reason="Evict", message=message)
    for n, ran in enumerate(after):
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(started)}
        victim = {**VICTIM[0], "lastTransitionTime": timestamp(started + ran * 1000)}
        log.pod(f"p{n}", group="g", status={"conditions": [scheduled, victim]})
    for n in range(len(after)):
        log.pod(f"p{n}", group="g", deleted=SOON)
    return log.queue()


def outside(cpu="4", queue="default"):
    """A group that was kept out, which asks for two pods of two CPUs each, or more, beside nodes of four."""
    log = Log().node(cpu="2").node("m", cpu="2").queue("default", pending=int(queue == "default"))
    return log.group(minimum=2, queue=queue, phase="Pending", roles={"main": 2}, asks={"cpu": cpu}, **FOR_ROOM)


def patient():
    """A gang for which room is kept on a node where half of it is in use, beside one with three free CPUs."""
    log = Log().node(cpu="4").node("m", cpu="3")
    log.queue("default", inqueue=2, allocated={"cpu": "2", "pods": "1"})
    log.pod("r", cpu="2").pod("r", cpu="2", node="n", phase="Running")
    return log.group(reservation=Reservation(0, 3_600_000, places=((("n", 1),),)), **FOR_ROOM).pod(
        "p", group="g", cpu="4"
    )


def in_queue(capability, **pod):
    log = Log().node().queue(capability=capability).group(queue="q").pod(group="g", **pod)
    return log.pod("r", group="g", **pod)


def suspended():
    return Log().job(phase="Pending").job(phase="Aborting").job(phase="Aborted")


def failing(number=1):
    log = Log().job(phase="Running", replicas=2)
    for n in range(number):
        log.pod(f"j-main-{n}", job="j").pod(f"j-main-{n}", job="j", phase="Failed")
    return log


RESTART = {"action": "RestartJob", "event": "PodFailed"}


def answered(*policies, phase="Running", number=1, of_task=(), code=1, **status):
    """A job with policies, of which pods have failed."""
    log = Log().job(phase=phase, replicas=2, policies=policies, of_task=of_task, **status)
    ended = {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}]}
    for n in range(number):
        log.pod(f"j-main-{n}", job="j").pod(f"j-main-{n}", job="j", phase="Failed", status=ended)
    return log


def after(log, phase, *policies, of_task=(), **status):
    """The job of `answered` goes on to another phase."""
    return log.job(phase=phase, replicas=2, policies=policies, of_task=of_task, **status)


def follows(*names, **how):
    """A job whose task waits for others of one pod each."""
    others = [{"name": name, "replicas": 1} for name in names]
    tasks = [{"name": "main", "replicas": 1, "dependsOn": {"name": list(names), **how}}, *others]
    counts = {"first": {"phase": {"Running": 1}}, "main": {"phase": {"Running": 1}}}
    status = {"state": {"phase": "Running"}, "running": 2, "taskStatusCount": counts}
    return Log().put(JOBS, "j", spec={"tasks": tasks}, status=status)


def with_ssh(phase):
    return {"spec": {"tasks": [], "plugins": {"ssh": []}}, "status": {"state": {"phase": phase}}}


def plugged(phase):
    """A job that needs no pod and has a plugin that makes a Secret."""
    return Log().put(JOBS, "j", **with_ssh(phase))


MINUTES = ("2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z")


def cron(policy="Allow", **spec):
    return Log().put(CRONS, "c", spec={"concurrencyPolicy": policy, **spec})


def flow(**spec):
    """A flow of two jobs, the second of which waits for the first."""
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    return Log().put(FLOWS, "f", spec={"flows": flows, **spec})


def made(log, name, phase="", time="", deleted="", uid=""):
    """The job of a cron job or a flow; it has no pods."""
    kind, of = (CRONS, "CronJob") if time else (FLOWS, "JobFlow")
    maker = "c" if time else "f"
    owner = {"kind": of, "name": maker, "uid": f"uid-{kind}-{maker}", "controller": True}
    notes = {"volcano.sh/cronjob-scheduled-timestamp": time} if time else {}
    meta = {"ownerReferences": [owner], "annotations": notes}
    if deleted:
        meta["deletionTimestamp"] = deleted
    status = {"state": {"phase": phase}} if phase else {}
    return log.put(JOBS, name, uid=uid, meta=meta, spec={"tasks": []}, status=status)


def ran_through(log, name, end="Completed", time=""):
    for phase in ("Pending", "Running", *(("Completing",) if end == "Completed" else ()), end):
        made(log, name, phase, time)
    return log


WRONG = [
    # what makes jobs
    (
        lambda: made(ran_through(cron(), "c-0", time=MINUTES[0]).gone(JOBS, "c-0"), "c-0x", time=MINUTES[0]),
        "each time has one job",
        "is made for 2027-01-15T08:00:00Z a second time",
    ),
    (
        lambda: made(made(cron("Forbid").wait(60_000), "c-0", "Pending", MINUTES[0]), "c-1", time=MINUTES[1]),
        "jobs of a cron job meet as it allows",
        "is made beside c-0, and the policy is Forbid",
    ),
    (
        lambda: made(made(cron("Replace"), "c-0", "Pending", MINUTES[0]), "c-1", time=MINUTES[1]),
        "jobs of a cron job meet as it allows",
        "is made beside c-0, and the policy is Replace",
    ),
    (
        lambda: made(cron(suspend=True), "c-0", time=MINUTES[0]),
        "jobs of a cron job meet as it allows",
        "is made while its cron job is suspended",
    ),
    (
        lambda: made(made(flow(), "f-a", "Pending"), "f-b"),
        "jobs of a flow come in turn",
        "is made, and f-a has not completed",
    ),
    (
        lambda: made(ran_through(flow(), "f-a", "Failed"), "f-b"),
        "jobs of a flow come in turn",
        "is made, and f-a has not completed",
    ),
    (
        lambda: made(ran_through(flow(), "f-a").gone(JOBS, "f-a"), "f-a", uid="other"),
        "jobs of a flow come in turn",
        "is made again, and was Completed",
    ),
    (lambda: made(flow(), "f-x"), "jobs of a flow come in turn", "is made, and is no job of the flow f"),
    # the log
    (lambda: Log().node().row("ADDED", NODES, "m", revision=3), "log without gaps", "revision 2 is missing"),
    (lambda: Log().row("MODIFIED", NODES, "n"), "one life of each object", "no such object"),
    (lambda: Log().row("DELETED", NODES, "n"), "one life of each object", "no such object"),
    (lambda: Log().node().row("ADDED", NODES, "n", "v"), "one life of each object", "is there already"),
    (lambda: Log().node().put(NODES, "n", uid="v"), "one life of each object", "uid-nodes-n became v"),
    (lambda: Log().node().gone(NODES, "n").node(), "one life of each object", "a second time"),
    (
        lambda: Log().row("ADDED", NODES, "n", resourceVersion="9").row("MODIFIED", NODES, "n", resourceVersion="8"),
        "versions never go back",
        "resourceVersion went from 9 to 8",
    ),
    (
        lambda: Log().row("ADDED", NODES, "n", generation=2).row("MODIFIED", NODES, "n", generation=1),
        "versions never go back",
        "generation went from 2 to 1",
    ),
    (
        lambda: Log().row("ADDED", NODES, "n", deletionTimestamp=SOON).row("MODIFIED", NODES, "n"),
        "deletion is never taken back",
        "was taken back",
    ),
    (
        lambda: Log().pod(deleted=SOON).pod(deleted=LATE),
        "deletion is never taken back",
        "was put off",
    ),
    # nodes and pods
    (
        lambda: Log().node(cpu="1").pod("a").pod("b").pod("a", node="n").pod("b", node="n"),
        "node not over its allocatable",
        "n holds 2 CPU of 1 CPU",
    ),
    (lambda: Log().node().pod().pod(node="m"), "node not over its allocatable", "there is no such node"),
    (lambda: Log().node().node("m").pod().pod(node="n").pod(node="m"), "pod stays on its node", "from node n to m"),
    (
        lambda: Log().pod(status=again("t1")).pod(status=ran(1, "t3", "t4")),
        "each attempt runs once",
        "tells no more of the attempt before number 1",
    ),
    (
        lambda: Log().node().pod().pod(deleted=SOON).pod(node="n"),
        "no pod is bound while it goes",
        "was given the node n",
    ),
    (lambda: Log().pod(phase="Failed").pod(phase="Running"), "pod phase goes on", "from Failed to Running"),
    (lambda: Log().pod(phase="Running").pod(phase="Pending"), "pod phase goes on", "from Running to Pending"),
    (lambda: Log().pod(phase="Failed").pod(phase="Succeeded"), "pod phase goes on", "from Failed to Succeeded"),
    (
        lambda: Log().pod(status=ran(1, "t1"), restartPolicy="Always").pod(status=ran(0, "t0")),
        "each attempt runs once",
        "from 1 to 0 restarts",
    ),
    (lambda: Log().pod(status=ran(1, "t1"), restartPolicy="Never"), "each attempt runs once", "is Never"),
    (lambda: Log().pod(status=ran(0, "t1")).pod(status=ran(0, "t2")), "each attempt runs once", "at t1 and at t2"),
    (
        lambda: Log().pod(status=ran(0, "t1", "t2")).pod(status=ran(0, "t1", "t3")),
        "each attempt runs once",
        "ended as ('t2', 0) and then",
    ),
    (
        lambda: Log().pod(status=ran(0, "t1", "t2")).pod(status=ran(0, "t1")),
        "each attempt runs once",
        "ended as ('t2', 0) and then",
    ),
    # gangs
    (lambda: gang(1).pod("p0", group="g", phase="Running"), "gang runs whole", "1 of 2 of d/g placed"),
    (lambda: gang(1), "gang is bound whole", "leaves d/g with 1 of 2 placed"),
    (lambda: gang(1).put(GROUPS, "g", status={"phase": "Running"}), "gang is bound whole", "1 of 2 placed"),
    (lambda: gang(1).group("h").pod("o", group="h").pod("o", group="h", node="n"), "gang is bound whole", "1 of 2"),
    (
        lambda: gang(2, 2).wait(9000).pod("p0", group="g", phase="Failed").wait(9000).pod("p2", group="g")
        .group(minimum=3).wait(9000).pod("p2", group="g", node="n"),
        "gang is bound whole",
        "2 of 3 placed",
    ),
    (lambda: gang(1, 1, roles={"main": 0, "other": 1}), "gang is bound whole", "0 of 1 of other placed"),
    # evictions
    (lambda: evicting(0, waits="g"), "evicted for somebody", "no other pod group waits"),
    (lambda: evicting(0), "gang is evicted whole", "leaves d/g with 1 of 2, 1 of them on nodes"),
    (lambda: reclaimed([60, 60]), "runs before it is reclaimed again", "2 of them too soon"),
    (lambda: reclaimed([400, 400], says=False), "runs before it is reclaimed again", "nothing says so on d/g"),
    # jobs
    (lambda: Log().job(phase="Pending").job(phase="Completed"), "job phase follows the table", "to Completed"),
    (lambda: Log().job(phase="Failed").job(phase="Restarting"), "job phase follows the table", "from Failed"),
    (lambda: Log().job(phase="Running").put(JOBS, "j", status={"state": {"phase": ""}}), "job phase follows the table", "to none"),
    (lambda: Log().job(phase="Running", retryCount=2).job(phase="Restarting", retryCount=1), "retries are counted", "from 2 to 1"),
    (lambda: Log().job(phase="Running").job(phase="Restarting", retryCount=2), "retries are counted", "from 0 to 2"),
    (lambda: Log().job(phase="Pending").job(phase="Running", retryCount=1), "retries are counted", "in Running"),
    (
        lambda: Log().job(phase="Running", retryCount=3).job(phase="Restarting", retryCount=4),
        "retries are counted",
        "retryCount is 4, the job has 3",
    ),
    (lambda: after(answered(RESTART).wait(6000), "Failed", RESTART), "what happens is answered", "PodFailed of j-main-0 was to be answered with RestartJob"),
    (
        lambda: answered(number=1).job(phase="Restarting", replicas=2, retryCount=1),
        "retries have causes",
        "for the 1. time, and 0 things",
    ),
    (
        lambda: after(answered(RESTART, phase="Running", retryCount=1), "Restarting", RESTART, retryCount=2),
        "retries have causes",
        "for the 2. time, and 1 things",
    ),
    (lambda: Log().job(phase="Running", version=2).job(version=1), "job version never falls", "from 2 to 1"),
    # queues
    (lambda: Log().queue(state="Open").queue(state="Unknown"), "queue state follows the table", "Open to Unknown"),
    (lambda: Log().queue(state="Closed").queue(state="Closing"), "queue state follows the table", "Closed to Closing"),
    (
        lambda: Log().queue().group(queue="q").wait(90_000).queue(state="Closed"),
        "queue state follows the table",
        "1 pod groups in it or below it are unfinished, such as d/g",
    ),
    (
        lambda: Log().queue().queue("r", parent="q").group(queue="r").wait(90_000).queue(state="Closed"),
        "queue state follows the table",
        "1 pod groups in it or below it are unfinished, such as d/g",
    ),
    (lambda: Log().queue(state="Closing").job(queue="q"), "only open queues take in", "queue q, which is Closing"),
    (lambda: Log().queue(state="Closed").group(queue="q"), "only open queues take in", "queue q, which is Closed"),
    (
        lambda: Log().queue(state="Closed").wait(61_000).group(queue="q", meta=owned("p", controller=True)),
        "only open queues take in",
        "queue q, which is Closed",
    ),
    (lambda: Log().queue(state="Closing").gone(QUEUES, "q"), "only closed queues are deleted", "while it was Closing"),
    (lambda: Log().queue("default", "Closed").gone(QUEUES, "default"), "only closed queues are deleted", "needs it"),
    (
        lambda: Log().queue(state="Closed").queue("r", parent="q").gone(QUEUES, "q"),
        "only closed queues are deleted",
        "r is below it",
    ),
    (
        lambda: in_queue({"cpu": "1"}).wait(9000).pod(node="n").pod("r", node="n"),
        "queue within its capability",
        "queue q holds 2 CPU of 1 CPU",
    ),
    (
        lambda: Log().node().queue("above", capability={"cpu": "1"}).queue(parent="above").group(queue="q")
        .pod(group="g", cpu="2").wait(9000).pod(group="g", cpu="2", node="n"),
        "queue within its capability",
        "queue above holds 2 CPU of 1 CPU",
    ),
    # quotas
    (lambda: Log().quota(pods="1").pod("a").pod("b"), "quota is respected", "2 pods of 1"),
    (lambda: Log().pod("a").quota(requests_cpu="1500m").pod("b"), "quota is respected", "2000 requests.cpu of 1500"),
    (lambda: Log().put("resourcequotas", "quota", spec={"hard": {f"count/{JOBS}": "0"}}).job(), "quota is respected", "job 1 of 0"),
    # commands and events
    (
        lambda: Log().job(phase="Running").command("AbortJob").gone(COMMANDS, "j-AbortJob").wait(1).node(),
        "command is carried out once",
        "AbortJob was taken, and no event says so",
    ),
    (
        lambda: Log().job(phase="Running").command("AbortJob").gone(COMMANDS, "j-AbortJob")
        .event(1, "CommandIssued").wait(1).job(phase="Aborting"),
        "command is carried out once",
        "the job stayed Running",
    ),
    (
        lambda: Log().queue().command("CloseQueue", "q", "Queue").gone(COMMANDS, "q-CloseQueue")
        .event(1, "CommandIssued", name="q", kind=QUEUES),
        "command is carried out once",
        "the wish stayed",
    ),
    (
        lambda: Log().queue(wish="Closed").queue(wish="Open").command("CloseQueue", "q", "Queue").gone(COMMANDS, "q-CloseQueue")
        .event(1, "CommandIssued", name="q", kind=QUEUES),
        "command is carried out once",
        "the wish stayed",
    ),
    (lambda: Log().command("AbortJob"), "command has a target", "AbortJob of Job j, which is not there"),
    (
        lambda: Log().put(QUEUES, "q", uid="another").command("OpenQueue", "q", "Queue"),
        "command has a target",
        "OpenQueue of Queue q, which is not there",
    ),
    (
        lambda: Log().job().command("AbortJob").gone(JOBS, "j").put(JOBS, "j", uid="another").wait(1).gone(COMMANDS, "j-AbortJob")
        .put(EVENTS, "e", involvedObject={"kind": "Job", "name": "j", "uid": "another"}, reason="CommandIssued"),
        "command is carried out once",
        "Job j is told of a Command, and none was for it",
    ),
    (lambda: suspended().job(phase="Restarting"), "command is carried out once", "no Command asked for it"),
    (
        lambda: failing().event(1, "PodFailed", "2 pods failed: j-main-0 exited with code 1."),
        "failures are told once",
        "2 failures are told of j, and 1 pods failed",
    ),
    (
        lambda: failing().event(1, "PodFailed", "1 pod failed: j-main-1 exited with code 1."),
        "failures are told once",
        "j-main-1 failed, which it did not",
    ),
    (lambda: follows("first").pod(job="j"), "tasks wait for tasks", "only 0 pods of task first"),
    (
        lambda: Log().put(JOBS, "j", meta=whose("alice")).pod(job="j"),
        "pods are their submitter's",
        "is nobody's, and its job is alice's",
    ),
    (
        lambda: Log().job().put(
            PODS, "p", meta={**owned(f"uid-{JOBS}-j", controller=True), **whose("bob"), "labels": {"volcano.sh/task-spec": "main"}}
        ),
        "pods are their submitter's",
        "is bob's, and its job is nobody's",
    ),
    (
        lambda: follows("first", "second").pod("f", job="j", role="first", phase="Running").pod(job="j"),
        "tasks wait for tasks",
        "only 0 pods of task second",
    ),
]  # fmt: skip

UNSETTLED = [
    (
        lambda: ran_through(cron(successfulJobsHistoryLimit=0), "c-0", time=MINUTES[0]),
        "cron job tells of its jobs",
        "keeps 1 jobs in Completed, 0 are wished",
    ),
    (
        lambda: ran_through(cron(failedJobsHistoryLimit=0), "c-0", "Failed", MINUTES[0]),
        "cron job tells of its jobs",
        "keeps 1 jobs in Failed or Terminated, 0 are wished",
    ),
    (
        lambda: ran_through(flow(), "f-a", "Failed").put(FLOWS, "f", status={"state": {"phase": "Running"}}),
        "jobs of a flow come in turn",
        "is Running, and its jobs ended as",
    ),
    (
        lambda: ran_through(ran_through(flow(jobRetainPolicy="delete"), "f-a"), "f-b").put(
            FLOWS, "f", status={"state": {"phase": "Succeed"}}
        ),
        "jobs of a flow come in turn",
        "has succeeded, and f-a is not deleted",
    ),
    (lambda: Log().job(), "job tells of its pods", "no controller has taken it up"),
    (lambda: Log().job(phase="Pending").pod(job="j"), "job tells of its pods", "says none, its pods are 1 Pending"),
    (
        lambda: Log().job(phase="Running", **counted(Running=2)).pod(job="j", phase="Running"),
        "job tells of its pods",
        "says 2 Running of main, its pods are 1 Running",
    ),
    (
        lambda: (
            Log()
            .job(phase="Running")
            .pod(job="j")
            .pod(job="j", phase="Succeeded")
            .gone(PODS, "p")
            .wait(6000)
            .job(phase="Completed", **counted(Succeeded=1))
        ),
        "job tells of its pods",
        "says 1 Succeeded of main, its pods are none",
    ),
    (
        lambda: Log().job(phase="Running", replicas=0, minimum=0, terminating=1),
        "job tells of its pods",
        "terminating is 1, 0",
    ),
    (
        lambda: Log().job(phase="Pending").put(JOBS, "j", status={"minAvailable": 2}),
        "job tells of its pods",
        "minAvailable is 2, the spec says 1",
    ),
    (
        lambda: Log().job(phase="Running", **counted(Failed=1)).pod(job="j", phase="Failed"),
        "job tells of its pods",
        "is Running, and all its pods have ended",
    ),
    (lambda: Log().job(phase="Aborting"), "job tells of its pods", "is Aborting, and all its pods have ended"),
    (lambda: Log().job(phase="Restarting"), "job tells of its pods", "no pod is left to end"),
    (
        lambda: Log().job(phase="Running", minimum=0, replicas=0, **counted(Running=1)).pod(job="j", phase="Running"),
        "job tells of its pods",
        "has 1 pods beyond its replicas",
    ),
    (
        lambda: Log().job(phase="Running").group("j-uid-jobs.batch.volcano.sh-j", phase="Running"),
        "job has its pods",
        "is Running, and there is no pod d/j-main-0",
    ),
    (lambda: plugged("Running"), "job has what its plugins make", "is Running, and there is no secrets/d/j-ssh"),
    (
        lambda: (
            plugged("Running")
            .put("secrets", "j-ssh", meta=owned(f"uid-{JOBS}-j", controller=True))
            .job(phase="Terminating")
            .put(JOBS, "j", **with_ssh("Terminated"))
        ),
        "job has what its plugins make",
        "is Terminated, and secrets/d/j-ssh is left",
    ),
    (lambda: Log().queue(pending=1), "queue tells of its work", "status.pending is 1, there are 0"),
    (
        lambda: Log().queue("r", parent="q", inqueue=1).group(queue="r").queue(),
        "queue tells of its work",
        "status.inqueue is 0, there are 1",
    ),
    (
        lambda: Log().group(queue="q", phase="Completed").pod(group="g").queue(state="Closed", wish="Closed"),
        "queue tells of its work",
        "is Closed, and should be Closing",
    ),
    (
        lambda: Log().queue(state="Closing", wish="Closed"),
        "queue tells of its work",
        "is Closing, and should be Closed",
    ),
    (lambda: Log().queue(state="Open", wish="Closed"), "queue tells of its work", "is Open, and should be Closed"),
    (
        lambda: Log().node().queue().group(queue="q").pod(group="g", node="n").queue(inqueue=1),
        "queue tells of its work",
        "allocated is {}, its pods hold {'cpu': '1', 'pods': '1'}",
    ),
    (lambda: Log().quota(pods="3").pod(), "quota is respected", "says None pods, there are 1"),
    (lambda: Log().put(GROUPS, "g", meta=owned("nobody")), "nothing outlives its owners", "owner Job j is gone"),
    (
        lambda: Log().put(JOBS, "j", meta={"deletionTimestamp": SOON, "finalizers": ["orphan"]}),
        "nothing outlives its owners",
        "still has the finalizer orphan",
    ),
    (
        lambda: Log().put(JOBS, "j", meta={"deletionTimestamp": SOON, "finalizers": ["foregroundDeletion"]}),
        "nothing outlives its owners",
        "no dependent holds it",
    ),
    (lambda: Log().put(JOBS, "j", meta={"deletionTimestamp": SOON}), "nothing outlives its owners", "nothing holds it"),
    (
        lambda: Log().put(NAMESPACES, "d").gone(NAMESPACES, "d").put("secrets", "s"),
        "nothing in a namespace that is gone",
        "namespace d is gone",
    ),
    (
        lambda: Log().put(NAMESPACES, "d", meta={"deletionTimestamp": SOON}, spec={"finalizers": ["kubernetes"]}),
        "empty namespaces go",
        "is being deleted, and nothing is left in it",
    ),
    (
        lambda: after(answered(RESTART), "Running", RESTART, **counted(Failed=1)).event(
            1, "PodFailed", "1 pod failed: j-main-0 exited with code 1."
        ),
        "what happens is answered",
        "is Running, and PodFailed of j-main-0 was not answered with RestartJob",
    ),
    (
        lambda: failing().job(phase="Running", replicas=2, **counted(Failed=1)),
        "failures are told once",
        "1 of its pods failed, and 0 failures are told",
    ),
    (lambda: Log().group().pod(group="g"), "waiting says why", "1 pods wait, and nothing says why"),
    (lambda: Log().group(phase=""), "waiting says why", "is not let in"),
    (lambda: Log().group(phase="Pending"), "waiting says why", "is not let in"),
    (lambda: Log().node().group(message=NO_ROOM).pod(group="g"), "no room means no room", "room for 4 of 1 such pods"),
    (lambda: outside(), "idle room is given out", "there is idle room for its 2 pods"),
    (lambda: outside("2").queue("vip", guarantee={"cpu": "2"}), "idle room is given out", "idle room"),
    (lambda: patient().group("h", **FOR_ROOM).pod("h0", group="h"), "idle room is given out", "idle room for its 1"),
    (
        lambda: patient().queue("vip", guarantee={"cpu": "1"}).group("h", **FOR_ROOM).pod("h0", group="h", cpu="2"),
        "idle room is given out",
        "idle room for its 1",
    ),
    (lambda: Log().node().pod().pod(node="n", phase="Pending"), "bound pods begin", "is bound to n and Pending"),
    (lambda: Log().node().pod().pod(node="n", deleted=LONG_AGO), "deleted pods go", "is left on n"),
    (
        lambda: (
            Log()
            .node()
            .pod()
            .pod(
                node="n",
                phase="Pending",
                status={"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "RunContainerError"}}}]},
            )
        ),
        "bound pods begin",
        "is bound to n and Pending",
    ),
    (
        lambda: (
            Log().node().pod().pod(node="n", phase="Running", status={"startTime": LONG_AGO}, activeDeadlineSeconds=60)
        ),
        "pods end in time",
        "is Running, and was to end",
    ),
]

RIGHT = {
    "a gang that is evicted whole": lambda: evicting(0, 1),
    "a pod beyond a minimum that is evicted": lambda: evicting(0, minimum=1),
    "a gang that has run for long since it was evicted": lambda: reclaimed([300, 300]),
    "a gang half of which has run for long since it was evicted": lambda: reclaimed([400, 60]),
    "a gang that is evicted for the first time, in the second in which it started": lambda: reclaimed([0, 0], is_first=True),
    "a gang that was evicted for the first time": lambda: reclaimed([60, 60], first="2027-01-15T08:01:00Z"),
    "jobs of a flow, one after the other, and one that is made again before it ended": lambda: made(
        ran_through(made(flow(), "f-a", "Pending", uid="first").gone(JOBS, "f-a"), "f-a"), "f-b"
    ),
    "jobs of a cron job, one after the other": lambda: made(
        ran_through(cron("Forbid"), "c-0", time=MINUTES[0]), "c-1", time=MINUTES[1]
    ),
    "a job that is replaced": lambda: made(
        made(made(cron("Replace"), "c-0", "Pending", MINUTES[0]), "c-0", "Pending", MINUTES[0], deleted=SOON),
        "c-1",
        time=MINUTES[1],
    ),
    "a pod that ran and one that waits": lambda: gang(2).pod("p0", group="g", phase="Running")
    .pod("p0", group="g", phase="Succeeded").gone(PODS, "p0"),
    "a node that shrinks": lambda: Log().node().pod(cpu="3").pod(node="n", cpu="3").wait(9000).node(cpu="1")
    .pod(phase="Running", cpu="3"),
    "a node that shrank while the scheduler decided": lambda: Log().node().pod().node(cpu="0").pod(node="n"),
    "a pod that its maker put on a full node": lambda: Log().node(cpu="1").pod(node="n", cpu="4"),
    "a finished pod gives its node back": lambda: Log().node(cpu="1").pod("a").pod("b").pod("a", node="n")
    .pod("a", phase="Failed").pod("b", node="n"),
    "an attempt after another": lambda: Log().pod(status=ran(0, "t1"), restartPolicy="OnFailure")
    .pod(status=ran(1, "t3")),
    "a deletion that comes sooner": lambda: Log().pod(deleted=LATE).pod(deleted=SOON),
    "a minimum that is raised later": lambda: gang(2).wait(9000).group(minimum=5).wait(9000)
    .pod("p0", group="g", phase="Running"),
    "one pod of a gang is replaced": lambda: gang(2).pod("p0", group="g", phase="Failed").wait(9000)
    .pod("p2", group="g").pod("p2", group="g", node="n"),
    "a pod failed while the scheduler decided": lambda: gang(2).pod("p2", group="g")
    .pod("p0", group="g", phase="Failed").pod("p1", group="g", phase="Failed").pod("p2", group="g", node="n"),
    "what is left of a gang that has failed": lambda: gang(2).pod("p2", group="g").pod("p0", group="g", phase="Failed")
    .pod("p1", group="g", phase="Failed").wait(9000).pod("p2", group="g", node="n"),
    "roles that are more than the minimum": lambda: gang(1, 1, roles={"other": 2}),
    "a job that is restarted until it fails": lambda: after(after(
        answered(RESTART, phase="Pending", retries=1), "Restarting", RESTART, retryCount=1, retries=1), "Failed", RESTART, retryCount=1, retries=1),
    "a job without retries is restarted": lambda: after(
        answered(RESTART, retries=0), "Restarting", RESTART, retries=0, retryCount=1),
    "a Command restarts a job": lambda: Log().job(phase="Running").wait(1).command("RestartJob").wait(1)
    .gone(COMMANDS, "j-RestartJob").event(1, "CommandIssued").job(phase="Restarting", retryCount=1),
    "an exit code that a policy answers": lambda: after(
        answered({"action": "RestartJob", "exitCode": 1}), "Restarting", {"action": "RestartJob", "exitCode": 1}, retryCount=1),
    "an exit code that no policy answers": lambda: after(
        answered({"action": "RestartJob", "exitCode": 1}, code=2), "Failed", {"action": "RestartJob", "exitCode": 1}),
    "a task's policy goes before the job's": lambda: after(
        answered(RESTART, of_task=[{"action": "SyncJob", "event": "*"}]), "Failed", RESTART, of_task=[{"action": "SyncJob", "event": "*"}]),
    "a pod that fails while the job's end is written": lambda: after(answered(RESTART), "Failed", RESTART),
    "something else ends the job first": lambda: after(answered(RESTART), "Aborting", RESTART),
    "two Commands with the same words are told of once": lambda: Log().job(phase="Running").command("RestartTask")
    .put(COMMANDS, "second", action="RestartTask", target={"kind": "Job", "name": "j", "uid": f"uid-{JOBS}-j"})
    .wait(1).gone(COMMANDS, "j-RestartTask").event(1, "CommandIssued", "alice asked for RestartTask.")
    .gone(COMMANDS, "second").job(phase="Restarting", retryCount=1).wait(1).node(),
    "a suspended job is resumed": lambda: suspended().wait(1).command("ResumeJob").wait(1)
    .gone(COMMANDS, "j-ResumeJob").event(1, "CommandIssued").job(phase="Restarting"),
    "a Command for a job that is gone": lambda: Log().job().command("AbortJob").gone(JOBS, "j")
    .gone(COMMANDS, "j-AbortJob").wait(1).node(),
    "a Command that comes too late": lambda: Log().job(phase="Completed").command("AbortJob")
    .gone(COMMANDS, "j-AbortJob").event(1, "CommandIssued").wait(1).node(),
    "a queue that is opened while it is ordered once more to close": lambda: Log().queue(wish="Closed").command("CloseQueue", "q", "Queue")
    .queue(wish="Open").gone(COMMANDS, "q-CloseQueue").event(1, "CommandIssued", name="q", kind=QUEUES).wait(1).node(),
    "a queue closes and opens": lambda: Log().queue().queue(state="Closing").queue(state="Closed").queue(),
    "work comes late into a closed queue": lambda: Log().queue(state="Closed").job(queue="default")
    .group(queue="q", meta=owned(f"uid-{JOBS}-j", controller=True)).queue(state="Closing", wish="Closed"),
    "a closed queue is deleted": lambda: Log().queue(state="Closed").gone(QUEUES, "q"),
    "a ceiling that is lowered": lambda: in_queue({"cpu": "2"}).wait(9000).pod(node="n").pod("r", node="n")
    .queue(capability={"cpu": "1"}).pod("r", phase="Running"),
    "a quota that is lowered": lambda: Log().pod("a").pod("b").quota(pods="1").pod("b", phase="Running"),
    "ended pods leave room in a quota": lambda: Log().quota(pods="1").pod("a").pod("a", phase="Failed").pod("b"),
    "failures that are told together": lambda: failing(2)
    .event(1, "PodFailed", "2 pods failed: j-main-0 exited with code 1, j-main-1 exited with code 1."),
}  # fmt: skip

SETTLED = {
    "a job that runs": lambda: Log().job(phase="Running", **counted(Running=1)).pod(job="j", phase="Running"),
    "somebody else's object under the name that a plugin wants": lambda: plugged("Running").put("secrets", "j-ssh", uid="o")
    .job(phase="Terminating").put(JOBS, "j", **with_ssh("Terminated")),
    "a retained pod stays counted, also when somebody deletes it": lambda: Log()
    .job(phase="Running").pod(job="j").pod(job="j", phase="Succeeded")
    .job(phase="Completed", **counted(Succeeded=1)).gone(PODS, "p"),
    "also when it goes while the job's end is written": lambda: Log()
    .job(phase="Running").pod(job="j").pod(job="j", phase="Succeeded").gone(PODS, "p")
    .job(phase="Completed", **counted(Succeeded=1)),
    "also when it is deleted in the foreground": lambda: Log()
    .job(phase="Running").pod(job="j").pod(job="j", phase="Succeeded")
    .job(phase="Completed", **counted(Succeeded=1)).pod(job="j", deleted=SOON).gone(PODS, "p"),
    "also when it is the job's no more": lambda: Log()
    .job(phase="Running").pod(job="j").pod(job="j", phase="Succeeded")
    .job(phase="Completed", **counted(Succeeded=1)).put(PODS, "p", meta={"ownerReferences": []}),
    "a task that waits for one of two": lambda: follows("first", "second", iteration="any")
    .pod("f", job="j", role="first", phase="Running").pod("m", job="j", phase="Running"),
    "a failure before a restart may be left untold": lambda: after(
        answered(RESTART), "Restarting", RESTART, retryCount=1, terminating=1).pod("j-main-0", job="j", deleted=SOON),
    "a queue with work that was told to close": lambda: Log().queue(wish="Closed", state="Closing", inqueue=1)
    .group(queue="q", meta=owned("o", controller=True), message="no room").put("secrets", "s", uid="o"),
    "a child of a closed queue": lambda: Log().queue("above", "Closed").queue(wish="Open", state="Closed", parent="above"),
    "a pod that waits and says why": lambda: Log().node(cpu="0").group(message=NO_ROOM).pod(group="g"),
    "a node that is closed to the pod": lambda: Log().node(spec={"unschedulable": True}).group(message=NO_ROOM).pod(group="g"),
    "room for less than the minimum": lambda: Log().node(cpu="1").group(minimum=2, message=NO_ROOM)
    .pod("a", group="g").pod("b", group="g"),
    "pods beyond a minimum that runs": lambda: Log().node(cpu="1").group(phase="Running").pod("a", group="g")
    .pod("a", group="g", node="n", phase="Running")
    .pod("b", group="g", status={"conditions": [{"type": "PodScheduled", "status": "False", "message": NO_ROOM}]}),
    "a pod beyond a minimum of which what had nodes has failed": lambda: Log().node(cpu="2").group(minimum=2)
    .pod("a", group="g").pod("b", group="g").pod("a", group="g", node="n").pod("b", group="g", node="n")
    .pod("a", group="g", phase="Failed").pod("b", group="g", phase="Failed")
    .pod("c", group="g", cpu="4", status={"conditions": [{"type": "PodScheduled", "status": "False", "message": NO_ROOM}]}),
    "room that is guaranteed to others": lambda: outside().queue("vip", guarantee={"cpu": "3"}),
    "room above a queue that is full": lambda: outside(queue="q").queue("above", capability={"cpu": "1"}, pending=1).queue(parent="above", pending=1),
    "room on nodes that is too little for one pod": lambda: outside(cpu="6"),
    "room that is kept": lambda: patient().group("h", **FOR_ROOM).pod("h0", group="h", cpu="4"),
    "room that is kept on one node and guaranteed on the other": lambda: patient().queue("vip", guarantee={"cpu": "2"})
    .group("h", **FOR_ROOM).pod("h0", group="h", cpu="2"),
    "room behind one that waits for others to end": lambda: outside()
    .group("h", message="2 pods are asked to end", reason="WaitingForVictims").queue("default", pending=1, inqueue=1),
    "a pod whose container cannot be made": lambda: Log().node().pod().pod(
        node="n", phase="Pending",
        status={"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CreateContainerConfigError"}}}]},
    ),
    "a pod whose time is not over": lambda: Log().node().pod().pod(
        node="n", phase="Running", status={"startTime": LONG_AGO}, activeDeadlineSeconds=86_400
    ),
    "a pod on a node that is lost": lambda: Log().node(ready=False).pod().pod(node="n", deleted=LONG_AGO),
    "an owner that a dependent holds": lambda: Log()
    .put(JOBS, "j", meta={"deletionTimestamp": SOON, "finalizers": ["foregroundDeletion"]})
    .put(GROUPS, "g", meta={**owned(f"uid-{JOBS}-j", blockOwnerDeletion=True), "deletionTimestamp": SOON, "finalizers": ["x"]},
         status={"phase": "Running"}),
}  # fmt: skip


def cases(table):
    return [pytest.param(*case, id=f"{case[1]}: {case[2]}") for case in table]


@pytest.mark.parametrize(("history", "name", "text"), cases(WRONG))
def test_wrong_history_is_found(history, name, text):
    with pytest.raises(Broken) as caught:
        check(history().changes)
    assert (caught.value.invariant, text in caught.value.text) == (name, True), caught.value


@pytest.mark.parametrize(("history", "name", "text"), cases(UNSETTLED))
def test_wrong_end_is_found(history, name, text):
    changes = history().changes
    judge = check(changes)
    with pytest.raises(Broken) as caught:
        judge.settle(LATER)
    assert (caught.value.invariant, text in caught.value.text) == (name, True), caught.value


@pytest.mark.parametrize("history", RIGHT.values(), ids=RIGHT)
def test_right_history_passes(history):
    changes = history().changes
    assert check(changes).revision == len(changes)


@pytest.mark.parametrize("history", SETTLED.values(), ids=SETTLED)
def test_right_end_passes(history):
    check(history().changes, now=LATER)


def test_each_invariant_is_known_to_catch_something():
    assert {invariant.name for invariant in INVARIANTS} == {name for _, name, _ in (*WRONG, *UNSETTLED)}
    assert all(invariant.meaning and invariant.__doc__ for invariant in INVARIANTS)


def test_what_is_broken_says_where():
    with pytest.raises(Broken, match="pod phase goes on: revision 2, pods/d/p: went from Failed") as caught:
        check(Log().pod(phase="Failed").pod(phase="Running").changes)
    assert (caught.value.revision, caught.value.key) == (2, "pods/d/p")


def test_only_what_is_asked_for_is_judged():
    history = Log().pod(phase="Failed").pod(phase="Running").changes
    judge = Judge(only=["log without gaps"])
    for change in history:
        judge.take(change)
    assert judge.revision == 2
    with pytest.raises(ValueError, match="There is no invariant nonsense"):
        Judge(only=["nonsense"])


def test_bounds_hold_at_once_where_each_turn_is_one_step():
    history = Log().node().pod().node(cpu="0").pod(node="n").changes
    judge = Judge(lag_ms=0)
    for change in history[:-1]:
        judge.take(change)
    with pytest.raises(Broken, match="n holds 1 CPU of 0 CPU"):
        judge.take(history[-1])


def _judged(log, *, untrue):
    judge = Judge()
    judge.picture.untrue.add(untrue)
    for change in log.changes:
        judge.take(change)


def test_report_that_is_known_to_be_untrue_is_not_judged_but_what_is_made_of_it():
    ended, runs = ran(0, "8:00", "9:00"), ran(0, "8:00")
    log = Log().pod(phase="Succeeded", status=ended).pod(phase="Running", status=runs)
    with pytest.raises(Broken, match="from Succeeded to Running"):
        check(log.changes)
    _judged(log.pod(phase="Succeeded", status=ended), untrue=2)
    with pytest.raises(Broken, match="c ended as"):
        _judged(log.pod(phase="Succeeded", status=ran(0, "8:00", "9:30")), untrue=2)


def test_the_checker_of_idle_room_knows_the_scheduler_s_words():
    assert {str(reason) for reason in Reason} >= {*judge.OF_ROOM, judge.OF_ORDER, judge.OF_VICTIMS}
