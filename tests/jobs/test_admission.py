"""What of a job is refused, filled in and kept: volcano-job §1, §7.1 to §7.4, a row for each rule."""

from __future__ import annotations

import copy
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller import facts
from jobs.controller.facts import Dependency
from jobs.rules import admission
from tests.campaign import examples
from tests.jobs.builders import CLUSTER, Cluster, container, defaulted, job, refusals, task
from tests.tables import cases

NOT_NEGATIVE, ONE = "should be greater than or equal to 0", "greater than or equal to 1"
TIERS = {"highestTierAllowed": 1, "highestTierName": "a"}
ABOVE_LIMIT = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
UNKNOWN_VOLUME = {"volumeMounts": [{"name": "x", "mountPath": "/x"}]}
MPI, OF_TEAM = [task("master")], {"spec": {"parent": "team"}}
TWO_OF_A_NAME = {"containers": [container(), container()]}
BOTH_CLAIMS = {"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {"storageClassName": "s"}}
ABSENT = object()
ON_FAILED, ON_3 = {"event": "PodFailed", "action": "AbortJob"}, {"exitCode": 3, "action": "AbortJob"}
ANY, EVENTS = {"event": "*", "action": "AbortJob"}, {"action": "RestartJob", "events": ["PodFailed"]}


def pod(**fields):
    return job(task(pod=fields))


def partitioned(replicas=1, total=1, size=1, **fields):
    return job(task(replicas=replicas, partitionPolicy={"totalPartitions": total, "partitionSize": size, **fields}))


def put(obj, path, value):
    """Write a value at a path of an object, or take away what stands there."""
    *parents, last = (int(key) if key.isdigit() else key for key in path.split("."))
    for key in parents:
        obj = obj.setdefault(key, {}) if isinstance(obj, dict) else obj[key]
    if value is ABSENT:
        del obj[last]
    else:
        obj[last] = value


def changed(old, path, value):
    new = copy.deepcopy(old)
    put(new, path, value)
    return new


def field(path):
    """The name of a field by its path: `tasks.0.name` is `tasks[0].name`."""
    return re.sub(r"\.(\d+)", r"[\1]", path)


def after(name, *others):
    return task(name, dependsOn={"name": [*others]})


# What stands at a field of a job's spec, and why it is refused there.
BOUNDS = {
    "1 no task | 7.3/1 + 1.1/tasks": ("tasks", ABSENT, "No task specified in job spec"),
    "1 no task in the list | 1.1/tasks": ("tasks", [], "at least 1 items"),
    "scheduler's name | 1.1/schedulerName": ("schedulerName", "s" * 64, "63"),
    "running estimate | 1.1/runningEstimate": ("runningEstimate", "soon", "duration"),
    "priority class | 1.1/priorityClassName": ("priorityClassName", "No Name", "should match"),
    "long priority class | 1.1/priorityClassName": ("priorityClassName", "p" * 254, "253"),
    "12 minimum | 7.3/12 + 1.1/minAvailable bounds": ("minAvailable", 3, "not be greater than total replicas"),
    "negative minimum | 1.1/minAvailable bounds + 7.1/words": ("minAvailable", -1, NOT_NEGATIVE),
    "negative retries | 1.1/maxRetry + 7.1/words": ("maxRetry", -1, NOT_NEGATIVE),
    "negative ttl | 1.1/ttlSecondsAfterFinished + 7.1/words": ("ttlSecondsAfterFinished", -1, NOT_NEGATIVE),
    "minSuccess 0 | 1.1/minSuccess": ("minSuccess", 0, ONE),
    "3 topology | 7.3/3": ("networkTopology", TIERS, "must not be specified at the same time"),
    "topology's mode | 1.1/networkTopology": ("networkTopology.mode", "firm", "soft"),
    "topology's tier | 1.1/networkTopology": ("networkTopology.highestTierAllowed", -1, NOT_NEGATIVE),
    "topology's name | 1.1/networkTopology": ("networkTopology.highestTierName", "n" * 254, "253"),
    "15 no mount path | 7.3/15 + 1.4/mountPath": ("volumes.0.mountPath", ABSENT, "Required"),
    "15 empty mount path | 1.4/mountPath + 7.1/words": ("volumes.0.mountPath", "", "at least 1 chars long"),
    "15 two mount paths | 1.4/mountPath": ("volumes.0.mountPath", "/a:/b", "should match"),
    "15 mount path twice | 7.3/15 + 1.4/mountPath": ("volumes.1.mountPath", "/a", "duplicated mountPath"),
    "15 two claims | 7.3/15 + 1.4/volumeClaim": ("volumes.0", BOTH_CLAIMS, "not both"),
    "15 claim name | 7.3/15 + 1.4/volumeClaimName": ("volumes.0.volumeClaimName", "C_", "RFC 1123"),
    "15 long claim name | 1.4/volumeClaimName": ("volumes.0.volumeClaimName", "c" * 254, "253"),
    "16 queue | 7.3/16 + queues 4/missing": ("queue", "none", "unable to find job queue: queue none not found"),
    "queue's name | 1.1/queue": ("queue", "Not_A_Name", "should match"),
    "long queue's name | 1.1/queue": ("queue", "q" * 254, "253"),
    "18 root | 7.3/18 + queues 4/root": ("queue", "root", "can not submit job to root queue"),
    "4 task minimum | 7.3/4 + 1.2/minAvailable": ("tasks.0.minAvailable", 2, "greater than 'replicas' in task main"),
    "negative task minimum | 1.2/minAvailable + 7.1/words": ("tasks.0.minAvailable", -1, NOT_NEGATIVE),
    "negative replicas | 1.2/replicas + 7.1/words": ("tasks.0.replicas", -1, NOT_NEGATIVE),
    "negative retries of a task | 1.2/maxRetry": ("tasks.0.maxRetry", -1, NOT_NEGATIVE),
    "task name | 1.2/name + 7.1/words": ("tasks.0.name", "No Good", "should match"),
    "long task name | 1.2/name": ("tasks.0.name", "t" * 64, "63"),
    "5 task names | 7.3/5": ("tasks.1.name", "main", "duplicated task name"),
    "topology policy | 1.2/topologyPolicy": ("tasks.0.topologyPolicy", "tight", "single-numa-node"),
    "20 twice | 7.3/20": ("tasks.1.dependsOn.name", ["main", "main"], "Duplicate"),
    "20 unknown task | 7.3/20": ("tasks.0.dependsOn.name", ["x"], "no task is named x"),
    "8 no containers | 1.2/template": ("tasks.0.template.spec.containers", ABSENT, "Required"),
    "8 no container | 7.3/8": ("tasks.0.template.spec.containers", [], "at least 1"),
    "8 restart policy | 7.3/8": ("tasks.0.template.spec.restartPolicy", "Maybe", "OnFailure"),
}  # fmt: skip
# The same of the partitions of a task.
PARTITIONS = {
    "no number | 1.2/partitionPolicy.totalPartitions": ("totalPartitions", ABSENT, "Required"),
    "none | 1.2/partitionPolicy.totalPartitions": ("totalPartitions", 0, ONE),
    "no size | 1.2/partitionPolicy.partitionSize": ("partitionSize", ABSENT, "Required"),
    "empty ones | 1.2/partitionPolicy.partitionSize": ("partitionSize", 0, ONE),
    "fewer than none | 1.2/partitionPolicy.minPartitions": ("minPartitions", -1, NOT_NEGATIVE),
    "mode | 1.2/partitionPolicy.networkTopology": ("networkTopology.mode", "firm", "soft"),
    "topology | 7.3/10 + 1.2/partitionPolicy.networkTopology": ("networkTopology", TIERS, "at the same time"),
}
# Jobs, the field at which they are refused, and why.
JOBS = {
    "2 mpi master | 7.3/2": (job(plugins={"mpi": ["--master=boss"]}), "plugins[mpi]", "mpi master task not found"),
    "14 plugin | 7.3/14 + 1.1/plugins + 5.1/unknown": (
        job(plugins={"x": []}), "plugins[x]", "unable to find job plugin"),
    "too many pods": (job(task(replicas=2_000_000_000)), "tasks", "100,000 pods at most"),
    "7 pod names | 7.3/7 + 10/Q-15": (job(task("t" * 55, 1000), name="j123"), "tasks[0].name", "64 characters long"),
    "8 container names | 7.3/8": (pod(**TWO_OF_A_NAME), "tasks[0].template.spec.containers[1].name", "Duplicate"),
    "10 partitions | 7.3/10": (partitioned(5, 2, 2), "tasks[0].replicas", "totalPartitions times partitionSize, 4"),
    "10 minimum of partitions | 7.3/10": (
        changed(partitioned(4, 2, 2, minPartitions=1), "spec.tasks.0.minAvailable", 1), "tasks[0].minAvailable",
        "minPartitions times partitionSize, 2"),
    "20 circle | 7.3/20": (job(after("a", "b"), after("b", "a")), "tasks", "directed acyclic graph"),
    "20 itself | 7.3/20": (job(after("a", "a")), "tasks", "directed acyclic graph"),
}  # fmt: skip
# What is written in a container, at which of its fields that is refused, and why.
CONTAINERS = {
    "8 container name": ({"name": "A b"}, "name", "should match"),
    "8 variable": ({"env": [{"name": "1=", "value": "x"}]}, "env[0].name", "environment variable"),
    "8 command is a list": ({"command": "python"}, "command", ""),
    "8 arguments are texts": ({"args": [1]}, "args[0]", ""),
    "8 negative | 7.3/8": ({"requests": {"cpu": "-1"}}, "resources.requests[cpu]", "equal to 0"),
    "8 quantity | 7.3/8": ({"requests": {"memory": "lots"}}, "resources.requests[memory]", ""),
    "8 no quantity": ({"requests": {"cpu": ""}}, "resources.requests[cpu]", "is not a quantity"),
    "8 NUL in a command": ({"command": ["echo", "a\0b"]}, "command[1]", "NUL character"),
    "8 NUL in an argument": ({"args": ["\0"]}, "args[0]", "NUL character"),
    "8 NUL in a directory": ({"workingDir": "/a\0"}, "workingDir", "NUL character"),
    "8 NUL in a variable": ({"env": [{"name": "A", "value": "x\0y"}]}, "env[0].value", "NUL character"),
    "8 above the limit | 7.3/8": (ABOVE_LIMIT, "resources.requests[cpu]", "less than or equal to the cpu limit of 1"),
    "8 half a device | 7.3/8": ({"limits": {"a.b/gpu": "500m"}}, "resources.limits[a.b/gpu]", "must be an integer"),
    "8 unknown volume | 7.3/8": (UNKNOWN_VOLUME, "volumeMounts[0].name", "no volume of the pod"),
}  # fmt: skip
# Policies, at which of their fields they are refused, and why: the same of a job as of a task.
POLICIES = {
    "action | 1.3/action": ([{"event": "PodFailed", "action": "Dance"}], "[0].action", "RestartJob"),
    "no action | 7.3 policies/action": ([{"event": "PodFailed"}], "[0].action", "invalid policy action"),
    "exit code alone | 7.3 policies/action + 10/Q-16": ([{"exitCode": 3}], "[0].action", "invalid policy action"),
    "no such action | 7.3 policies/action + 10/Q-16": ([ON_3 | {"action": "Dance"}], "[0].action", "Unsupported value"),
    "event and exit code | 7.3/13 + 7.3 policies/event and exit code + 1.3/exitCode": (
        [ON_FAILED | {"exitCode": 3}], "[0]", "must not specify event and exitCode simultaneously"),
    "neither | 7.3/13 + 7.3 policies/neither": ([{"action": "AbortJob"}], "[0]", "either event and exitCode should"),
    "event | 1.3/event + 7.3 policies/event": ([ON_FAILED | {"event": "Earthquake"}], "[0].event", "PodEvicted"),
    "one of the events | 1.3/events": ([ON_FAILED | {"events": ["Earthquake"]}], "[0].events[0]", "PodEvicted"),
    "event twice | 7.3 policies/event twice": ([ON_FAILED, EVENTS], "[1].events[0]", "Duplicate"),
    "exit code 0 | 7.3 policies/exit code 0 + 1.3/exitCode": (
        [ON_3 | {"exitCode": 0}], "[0].exitCode", "0 is not a valid"),
    "exit code twice | 7.3 policies/exit code twice": ([ON_3, ON_3], "[1].exitCode", "one policy answers it"),
    "star beside another | 7.3 policies/star alone": ([ANY, ON_FAILED], "", "no other policy should be here"),
    "star in a list": ([{"action": "AbortJob", "events": ["*", "PodFailed"]}], "", "if there's * here"),
    "timeout | 1.3/timeout": ([ON_FAILED | {"timeout": "soon"}], "[0].timeout", "is not a duration"),
    **{
        f"internal event {event} | 3.1/{event}": ([ON_FAILED | {"event": event}], "[0].event", "supported values")
        for event in ("PodRunning", "OutOfSync", "CommandIssued")
    },
    **{
        f"internal action {action} | 3.2/{item}": ([ON_FAILED | {"action": action}], "[0].action", "supported values")
        for item in ("SyncJob", "EnqueueJob", "SyncQueue, OpenQueue, CloseQueue")
        for action in item.split(", ")
    },
}  # fmt: skip


def of_container(requests=None, limits=None, **fields):
    return pod(containers=[container(requests=requests, limits=limits, **fields)])


WHOLE = job(task(), task("other"), volumes=[{"mountPath": "/a"}, {"mountPath": "/b"}])
REFUSED = {
    "11 job name | 7.3/11": (job(name="Bad_Name"), "metadata.name", "RFC 1123"),
    "11 long job name | 7.3/11": (job(name="a" * 64), "metadata.name", "shorten"),
    **{
        words: (changed(WHOLE, f"spec.{path}", value), field(f"spec.{path}"), text)
        for words, (path, value, text) in BOUNDS.items()
    },
    **{
        f"10 {words}": (changed(partitioned(0), path, value), field(path), text)
        for words, (name, value, text) in PARTITIONS.items()
        for path in [f"spec.tasks.0.partitionPolicy.{name}"]
    },
    **{words: (obj, f"spec.{at}", text) for words, (obj, at, text) in JOBS.items()},
    **{
        words: (of_container(**fields), f"spec.tasks[0].template.spec.containers[0].{at}", text)
        for words, (fields, at, text) in CONTAINERS.items()
    },
    **{
        f"13 {words}": (job(policies=written), f"spec.policies{at}", text)
        for words, (written, at, text) in POLICIES.items()
    },
}


@cases("obj, field, text", REFUSED)
def test_refused_at_its_field(obj, field, text):
    assert text in refusals(obj)[field]


def test_no_volume_lies_over_what_the_kernel_makes_for_a_container():
    found = refusals(job(volumes=[{"mountPath": "/proc/self/fd"}]))
    assert "each container's own" in found["spec.volumes[0].mountPath"]


@pytest.mark.shows("7.3/6")
@cases("policies, at, text", {words.partition(" | ")[0]: row for words, row in POLICIES.items()})
def test_policies_of_a_task_are_refused_like_those_of_a_job(policies, at, text):
    assert text in refusals(job(task(policies=policies)))[f"spec.tasks[0].policies{at}"]


@pytest.mark.shows("1.2/topologyPolicy", "7.3/9")
@cases("kind, resources, is_refused", {
    "requests of whole CPUs": ("containers", {"requests": {"cpu": "2"}}, False),
    "limits of whole CPUs": ("containers", {"limits": {"cpu": "2"}}, False),
    "requests that leave the limit out": ("containers", {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}, True),
    "none": ("containers", {"requests": {"cpu": "0"}}, True),
    "one and a half": ("containers", {"requests": {"cpu": "1500m"}}, True),
    "nothing": ("containers", {}, True),
    "nothing in an init container": ("initContainers", {}, True),
})  # fmt: skip
def test_9_a_topology_policy_needs_whole_cpus_of_every_container(kind, resources, is_refused):
    spec = {"containers": [container(requests={"cpu": "1"})]} | {kind: [container("own", **resources)]}
    found = refusals(job(task(topologyPolicy="restricted", pod=spec)))
    assert [*found] == [f"spec.tasks[0].template.spec.{kind}[0].resources.requests[cpu]"] * is_refused
    assert all("whole number of CPUs" in text for text in found.values())
    assert refusals(job(task(topologyPolicy="none", pod=spec))) == {}


@cases("state, children, text", {
    "closed | 7.3/17 + queues 4/Closed, Closing + queue state 3/not Open": ({"state": "Closed"}, {}, "is `Closed`"),
    "closing | queues 4/Closed, Closing + queue state 3/not Open": ({"state": "Closing"}, {}, "status is `Closing`"),
    "unknown | queue state 3/not Open": ({"state": "Unknown"}, {}, "queue `team` status is `Unknown`"),
    "not seen by its controller | 7.3/17 + queues 4/no state yet": ({}, {}, ""),
    "with children | 7.3/19 + queues 4/with children": ({"state": "Open"}, {"sub": OF_TEAM}, "leaf queue"),
})  # fmt: skip
def test_17_19_which_queue_takes_jobs(state, children, text):
    found = refusals(job(queue="team"), Cluster(team={"status": state}, **children))
    assert [*found] == ["spec.queue"] * bool(text)
    assert text in found.get("spec.queue", "")


LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
ON_JOB, ON_TASK = "metadata.annotations", "spec.tasks[0].template.metadata.annotations"


@cases("of_job, of_task, fields", {
    "a number": ({LEAST: "2"}, {}, []),
    "a share": ({MOST: "50%"}, {}, []),
    "of the job": ({LEAST: "0"}, {}, [f"{ON_JOB}[{LEAST}]"]),
    "of the template": ({}, {MOST: "100%"}, [f"{ON_TASK}[{MOST}]"]),
    "the job's second, which its pods do not get": ({LEAST: "1", MOST: "x"}, {}, []),
    "both on the template": ({}, {LEAST: "1", MOST: "1"}, [f"{ON_TASK}[{MOST}]"]),
    "one here and one there": ({LEAST: "1"}, {MOST: "1"}, [f"{ON_TASK}[{MOST}]"]),
    "the job's in place of the template's": ({LEAST: "1"}, {LEAST: "2"}, []),
})  # fmt: skip
def test_what_a_disruption_must_leave_is_said_in_one_way(of_job, of_task, fields):
    made = job(task(), annotations=of_job)
    made["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": of_task}
    assert [*refusals(made)] == fields
    made["spec"]["schedulerName"] = "another's"
    assert refusals(made) == {}


@pytest.mark.shows("7.3/all at once")
def test_all_problems_are_told_at_once():
    bad = job(task("a", minAvailable=5), task("a"), queue="none", minAvailable=99)
    assert set(refusals(bad)) == {"spec.tasks[0].minAvailable", "spec.tasks[1].name", "spec.queue", "spec.minAvailable"}


ACTIONS = [
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
]
ONE_CLAIM_TWICE = [{"mountPath": path, "volumeClaimName": "c"} for path in ("/a", "/b")]


@cases("obj", {
    "plain": job(),
    "dependency": job(task("a"), after("b", "a")),
    "volume without claim | 7.3/15 no claim + 1.4/a claim": job(volumes=[{"mountPath": "/a"}]),
    "one claim twice | 10/Q-23 + 4.1/one claim twice": job(volumes=ONE_CLAIM_TWICE),
    "more than any node has": of_container(requests={"cpu": "1000000"}),
    "repeat inside one policy | 7.3 policies/event twice": job(policies=[ON_FAILED | {"events": ["PodFailed"]}]),
    "star beside exit code | 7.3 policies/star alone": job(
        policies=[ON_FAILED | {"event": "*"}, {"action": "AbortJob", "exitCode": 3}]),
    "no replicas": job(task(replicas=0), minAvailable=0),
    "replicas left out | 1.2/replicas": job({"name": "a", "template": task()["template"]}),
    **{f"{action} | 3.2/{action}": job(policies=[ON_FAILED | {"action": action}]) for action in ACTIONS},
})  # fmt: skip
def test_accepted(obj):
    assert refusals(obj) == {}


# ---- defaults

PARTED = partitioned(4, 2, 2, networkTopology={})


@cases("obj, path, value", {
    "scheduler | 1.1/schedulerName + 7.2/2": (job(), "schedulerName", "volcano"),
    "minimum of the tasks | 1.1/minAvailable + 7.2/8": (
        job(task("a", 3), task("b", 2, minAvailable=1)), "minAvailable", 4),
    "minimum 0 | 1.1/minAvailable + 7.2/8": (job(task(replicas=3), minAvailable=0), "minAvailable", 3),
    "minimum without replicas | 1.2/replicas": (job({"name": "a", "template": task()["template"]}), "minAvailable", 0),
    "queue | 1.1/queue + 7.1/queue + 7.2/1 + queues 4/none + queue state 3/no queue": (job(), "queue", "default"),
    "retries | 1.1/maxRetry + 7.1/maxRetry + 7.2/3": (job(), "maxRetry", 3),
    "0 retries | 1.1/maxRetry + 7.2/3": (job(maxRetry=0), "maxRetry", 3),
    "no ttl | 1.1/ttlSecondsAfterFinished": (job(), "ttlSecondsAfterFinished", None),
    "no minSuccess | 1.1/minSuccess": (job(), "minSuccess", None),
    "mode | 1.1/networkTopology + 7.1/networkTopology.mode": (job(networkTopology={}), "networkTopology.mode", "hard"),
    "a written mode | 1.1/networkTopology": (job(networkTopology={"mode": "soft"}), "networkTopology.mode", "soft"),
    "name of a task | 1.2/name + 7.2/4": (job(task(), task(name="")), "tasks.1.name", "default1"),
    "minimum of a task | 1.2/minAvailable + 7.2/6": (job(task(replicas=3)), "tasks.0.minAvailable", 3),
    "minimum of partitions | 1.2/minAvailable + 7.2/6": (
        partitioned(6, 3, 2, minPartitions=2), "tasks.0.minAvailable", 4),
    "minimum of all partitions | 1.2/minAvailable + 7.2/6": (PARTED, "tasks.0.minAvailable", 4),
    "DNS of the host | 7.2/5": (pod(hostNetwork=True), "tasks.0.template.spec.dnsPolicy", "ClusterFirstWithHostNet"),
    "a written DNS | 7.2/5": (pod(hostNetwork=True, dnsPolicy="Default"), "tasks.0.template.spec.dnsPolicy", "Default"),
    "no DNS | 7.2/5": (job(), "tasks.0.template.spec.dnsPolicy", None),
    "retries of a task | 1.2/maxRetry + 7.2/7": (job(), "tasks.0.maxRetry", 3),
    "0 retries of a task | 1.2/maxRetry + 7.2/7": (job(task(maxRetry=0)), "tasks.0.maxRetry", 3),
    "partitions | 1.2/partitionPolicy.minPartitions + 7.1/partitionPolicy.minPartitions": (
        PARTED, "tasks.0.partitionPolicy.minPartitions", 0),
    "mode of partitions | 1.2/partitionPolicy.networkTopology + 7.1/networkTopology.mode": (
        PARTED, "tasks.0.partitionPolicy.networkTopology.mode", "hard"),
    "plugins of tensorflow | 7.2/9": (job(plugins={"tensorflow": []}), "plugins", {"tensorflow": [], "svc": []}),
    "plugins of pytorch | 7.2/9": (job(plugins={"pytorch": []}), "plugins", {"pytorch": [], "svc": []}),
    "plugins of ray | 7.2/9": (job(task("head"), plugins={"ray": []}), "plugins", {"ray": [], "svc": []}),
    "plugins of mpi | 7.2/9 + 7.2/10": (job(*MPI, plugins={"mpi": []}), "plugins", {"mpi": [], "svc": [], "ssh": []}),
})  # fmt: skip
def test_what_is_left_open_is_filled_in(obj, path, value):
    made = defaulted(obj)
    found = made["spec"]
    for key in path.split("."):
        found = found[int(key)] if isinstance(found, list) else found.get(key)
    assert found == value
    assert admission.validate(made, None, CLUSTER) == []
    assert refusals(obj, old=made) == {}, "the same file is applied again"


@pytest.mark.shows("9.1/1", "9.1/2", "9.1/25")
def test_spellings_of_the_seed_are_stored_as_todays():
    volume = {"mountPath": "/a", "claim": {"spec": {"accessModes": []}}}
    written = job(task(pod={"priorityClass": "master-pri"}), volumes=[volume])
    written["spec"]["taskSpecs"] = written["spec"].pop("tasks")
    spec = defaulted(written)["spec"]
    assert "taskSpecs" not in spec
    assert spec["tasks"][0]["template"]["spec"]["priorityClassName"] == "master-pri"
    assert spec["volumes"] == [{"mountPath": "/a", "volumeClaim": {"accessModes": []}}]


@pytest.mark.shows("1.2/dependsOn.iteration", "4.2/any", "4.2/all")
@cases("names, iteration, is_any", {
    "any of two": (["a", "c"], "any", True),
    "any of one": (["a"], "any", False),
    "all": (["a", "c"], "all", False),
    "left out": (["a", "c"], "", False),
    "unknown": (["a", "c"], "some", False),
})  # fmt: skip
def test_any_of_two_tasks_is_enough_where_that_is_written(names, iteration, is_any):
    made = job(task("a"), task("b", dependsOn={"name": names, "iteration": iteration}), task("c"))
    assert refusals(made) == {}
    found = facts.read_job(msgspec.json.encode(defaulted(made))).dependencies
    assert found == {"b": Dependency(tuple(names), any=is_any)}


# ---- changes


def test_the_seeds_spelling_can_be_laid_over_a_stored_job():
    old = defaulted(job(task(replicas=2)))
    new = defaulted(changed(old, "spec.taskSpecs", [task(replicas=5)]), old=old)
    assert "taskSpecs" not in new["spec"]
    assert new["spec"]["tasks"][0]["replicas"] == 5


@pytest.mark.shows("1.6/defaults")
@cases("written", {
    "a plain job": job(),
    "a task without a name": job({"replicas": 2, "template": task()["template"]}),
    "plugins that bring others": job(plugins={"mpi": ["--master=main"]}),
    "the network of the host": pod(hostNetwork=True),
    "a made claim": job(volumes=[{"mountPath": "/b", "volumeClaim": {"storageClassName": "s"}}]),
})  # fmt: skip
def test_a_job_can_be_sent_again_as_it_was_written(written):
    old = defaulted(written)
    for volume in old["spec"].get("volumes", ()):
        volume["volumeClaimName"] = "made"
    assert defaulted(written, old=old)["spec"] == old["spec"]


@pytest.mark.shows("1.6/defaults")
def test_the_same_file_applied_again_with_more_replicas_is_accepted():
    written = job({**task(replicas=2), "name": ""}, plugins={"mpi": []})
    old = defaulted(written)
    written["spec"]["tasks"][0]["replicas"] = 3
    assert refusals(written, old=old) == {}
    assert defaulted(written, old=old)["spec"]["tasks"][0]["minAvailable"] == 3


@pytest.mark.shows("7.1/networkTopology.mode", "7.1/partitionPolicy.minPartitions", "1.6/minAvailable 0")
def test_a_job_that_was_stored_without_a_default_keeps_being_without_it():
    old = defaulted(partitioned(4, 2, 2) | {"metadata": {"name": "demo", "namespace": "default"}})
    old["spec"] |= {"minAvailable": 0, "networkTopology": {"highestTierAllowed": 1}}
    del old["spec"]["tasks"][0]["partitionPolicy"]["minPartitions"]
    assert defaulted(old, old=old) == old


UNCHANGEABLE = {
    "spec.policies": [ON_FAILED],
    "spec.plugins": {"env": []},
    "spec.minSuccess": 1,
    "spec.ttlSecondsAfterFinished": 60,
    "spec.schedulerName": "mine",
    "spec.runningEstimate": "1h",
    "spec.volumes": [],
    "spec.tasks.0.name": "other",
    "spec.tasks.0.policies": [ON_FAILED],
    "spec.tasks.0.dependsOn": {"name": ["b"]},
    "spec.tasks.0.maxRetry": 9,
    "spec.tasks.0.topologyPolicy": "none",
    "spec.tasks.0.partitionPolicy": {"totalPartitions": 3, "partitionSize": 1},
}


@cases("path, value, text", {
    "minAvailable | 1.6/spec.minAvailable": ("spec.minAvailable", 1, ""),
    "priorityClassName | 1.6/spec.priorityClassName": ("spec.priorityClassName", "high", ""),
    "replicas | 1.6/spec.tasks[].replicas": ("spec.tasks.0.replicas", 9, ""),
    "labels | 1.6/metadata": ("metadata.labels", {"a": "b"}, ""),
    "name of a made claim | 1.6/spec.volumes[].volumeClaimName": ("spec.volumes.1.volumeClaimName", "made", ""),
    "1 negative replicas | 7.4/1 + 1.6/spec.tasks[].replicas": ("spec.tasks.0.replicas", -1, NOT_NEGATIVE),
    "1 task minimum | 7.4/1 + 1.6/spec.tasks[].minAvailable": ("spec.tasks.0.minAvailable", 4, "than 'replicas'"),
    "2 minimum above replicas | 7.4/2 + 1.6/spec.minAvailable": ("spec.minAvailable", 9, "greater than total replicas"),
    "2 negative minimum | 7.4/2 + 1.6/spec.minAvailable": ("spec.minAvailable", -1, NOT_NEGATIVE),
    "3 topology | 7.4/3": ("spec.networkTopology", TIERS, "may not change"),
    "4 task added | 7.4/4 + 1.6/number of tasks": ("spec.tasks", [task(), task("b")], "may not add or remove tasks"),
    "5 queue | 7.4/5 + 1.6/everything else + queues 4/later": ("spec.queue", "team", "may not change fields other"),
    "5 maxRetry | 7.4/5 + 1.6/everything else": ("spec.maxRetry", 9, "may not change fields other than"),
    "5 template | 7.4/5 + 1.6/everything else": ("spec.tasks.0.template", {}, "may not change"),
    "5 claim | 7.4/5 + 1.6/spec.volumes[].volumeClaimName": ("spec.volumes.0.volumeClaimName", "x", "may not change"),
    **{f"5 {path}": (path, value, "may not change") for path, value in UNCHANGEABLE.items()},
})  # fmt: skip
def test_what_of_a_job_may_change(path, value, text):
    claims = [{"volumeClaimName": "c"}, {"volumeClaim": {"storageClassName": "s"}}]
    volumes = [{"mountPath": path, **claim} for path, claim in zip(("/a", "/b"), claims, strict=True)]
    old = defaulted(job(task(replicas=3), volumes=volumes))
    found = {cause.field: cause.message for cause in admission.validate(changed(old, path, value), old, CLUSTER)}
    assert bool(found) == bool(text)
    assert not text or text in found[field(path)]


@pytest.mark.shows("1.6/spec.tasks[].replicas", "7.4/1")
def test_1_partitions_bound_the_replicas_of_a_change():
    old = defaulted(partitioned(4, 2, 2))
    found = admission.validate(changed(old, "spec.tasks.0.replicas", 6), old, CLUSTER)
    assert [cause.field for cause in found] == ["spec.tasks[0].replicas"]
    assert "totalPartitions times partitionSize, 4" in found[0].message


@pytest.mark.shows("7.4/not checked", "queues 4/closed in between")
def test_a_closed_queue_takes_changes_of_the_jobs_it_has():
    old = defaulted(job(task(replicas=3), queue="team"))
    new = changed(old, "spec.minAvailable", 2)
    new["spec"]["tasks"][0] |= {"replicas": 2, "minAvailable": 2}
    assert admission.validate(new, old, Cluster(team={"status": {"state": "Closed"}})) == []


# ---- anything

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = {
    "": "metadata metadata.name spec",
    "spec.": "tasks tasks.0 policies plugins volumes queue minAvailable networkTopology taskSpecs",
    "spec.tasks.0.": "name replicas minAvailable template policies dependsOn partitionPolicy topologyPolicy",
    "spec.tasks.0.template.spec.": "containers volumes restartPolicy priorityClass initContainers",
    "spec.tasks.0.template.spec.containers.0.": "name env resources volumeMounts command",
}
PATHS = [f"{at}{field}" for at, fields in FIELDS.items() for field in fields.split()]


@examples(300)
@given(st.sampled_from(PATHS), JSON)
def test_hostile_input_is_refused_and_never_raises(path, value):
    obj = job(task(minAvailable=1))
    put(obj, path, value)
    made = defaulted(obj)
    assert all(cause.message for cause in admission.validate(made, None, CLUSTER))
    assert isinstance(admission.warn(made, None, CLUSTER), list)
    admission.validate(made, defaulted(job()), CLUSTER)
