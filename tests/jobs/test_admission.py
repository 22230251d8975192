"""What of a job is refused, filled in and kept: volcano-job §1, §7.1 to §7.4, a row for each rule."""

import copy
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller import facts
from jobs.lifecycle.dependencies import Dependency
from jobs.rules import additions, admission
from tests.builders import queue
from tests.campaign import examples
from tests.jobs.builders import CLUSTER, Cluster, container, defaulted, job, listed, nested, refusals, task
from tests.tables import cases

TIERS = {"highestTierAllowed": 1, "highestTierName": "a"}
ABOVE_LIMIT = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
UNKNOWN_VOLUME = {"volumeMounts": [{"name": "x", "mountPath": "/x"}]}
MPI = [task("master")]
TWO_OF_A_NAME = {"containers": [container(), container()]}
BOTH_CLAIMS = {"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {"storageClassName": "s"}}
ABSENT = object()
ON_FAILED, ON_3 = {"event": "PodFailed", "action": "AbortJob"}, {"exitCode": 3, "action": "AbortJob"}
ANY, EVENTS = {"event": "*", "action": "AbortJob"}, {"action": "RestartJob", "events": ["PodFailed"]}
LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob",
)  # fmt: skip
ONE_CLAIM_TWICE = [{"mountPath": path, "volumeClaimName": "c"} for path in ("/a", "/b")]
UNCHANGEABLE = {
    "spec.policies": [ON_FAILED], "spec.plugins": {"env": []}, "spec.minSuccess": 1, "spec.ttlSecondsAfterFinished": 60,
    "spec.schedulerName": "mine", "spec.runningEstimate": "1h", "spec.volumes": [], "spec.tasks.0.name": "other",
    "spec.tasks.0.policies": [ON_FAILED], "spec.tasks.0.dependsOn": {"name": ["b"]}, "spec.tasks.0.maxRetry": 9,
    "spec.tasks.0.topologyPolicy": "none", "spec.tasks.0.partitionPolicy": {"totalPartitions": 3, "partitionSize": 1},
}  # fmt: skip


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


# What stands at a field of a job's spec; why it is refused there, and all else: tests/golden/jobs/rows/refusals.yaml.
BOUNDS = {
    "1 no task | 7.3/1 + 1.1/tasks": ("tasks", ABSENT),
    "1 no task in the list | 1.1/tasks": ("tasks", []),
    "scheduler's name | 1.1/schedulerName": ("schedulerName", "s" * 64),
    "running estimate | 1.1/runningEstimate": ("runningEstimate", "soon"),
    "priority class | 1.1/priorityClassName": ("priorityClassName", "No Name"),
    "long priority class | 1.1/priorityClassName": ("priorityClassName", "p" * 254),
    "12 minimum | 7.3/12 + 1.1/minAvailable bounds": ("minAvailable", 3),
    "negative minimum | 1.1/minAvailable bounds + 7.1/words": ("minAvailable", -1),
    "negative retries | 1.1/maxRetry + 7.1/words": ("maxRetry", -1),
    "negative ttl | 1.1/ttlSecondsAfterFinished + 7.1/words": ("ttlSecondsAfterFinished", -1),
    "minSuccess 0 | 1.1/minSuccess": ("minSuccess", 0),
    "3 topology | 7.3/3": ("networkTopology", TIERS),
    "topology's mode | 1.1/networkTopology": ("networkTopology.mode", "firm"),
    "topology's tier | 1.1/networkTopology": ("networkTopology.highestTierAllowed", -1),
    "topology's name | 1.1/networkTopology": ("networkTopology.highestTierName", "n" * 254),
    "15 no mount path | 7.3/15 + 1.4/mountPath": ("volumes.0.mountPath", ABSENT),
    "15 empty mount path | 1.4/mountPath + 7.1/words": ("volumes.0.mountPath", ""),
    "15 two mount paths | 1.4/mountPath": ("volumes.0.mountPath", "/a:/b"),
    "15 mount path twice | 7.3/15 + 1.4/mountPath": ("volumes.1.mountPath", "/a"),
    "15 a path of the kernel's": ("volumes.0.mountPath", "/proc/self/fd"),
    "15 two claims | 7.3/15 + 1.4/volumeClaim": ("volumes.0", BOTH_CLAIMS),
    "15 claim name | 7.3/15 + 1.4/volumeClaimName": ("volumes.0.volumeClaimName", "C_"),
    "15 long claim name | 1.4/volumeClaimName": ("volumes.0.volumeClaimName", "c" * 254),
    "16 queue | 7.3/16 + queues 4/missing": ("queue", "none"),
    "queue's name | 1.1/queue": ("queue", "Not_A_Name"),
    "long queue's name | 1.1/queue": ("queue", "q" * 254),
    "18 root | 7.3/18 + queues 4/root": ("queue", "root"),
    "4 task minimum | 7.3/4 + 1.2/minAvailable": ("tasks.0.minAvailable", 2),
    "negative task minimum | 1.2/minAvailable + 7.1/words": ("tasks.0.minAvailable", -1),
    "negative replicas | 1.2/replicas + 7.1/words": ("tasks.0.replicas", -1),
    "negative retries of a task | 1.2/maxRetry": ("tasks.0.maxRetry", -1),
    "task name | 1.2/name + 7.1/words": ("tasks.0.name", "No Good"),
    "long task name | 1.2/name": ("tasks.0.name", "t" * 64),
    "5 task names | 7.3/5": ("tasks.1.name", "main"),
    "topology policy | 1.2/topologyPolicy": ("tasks.0.topologyPolicy", "tight"),
    "20 twice | 7.3/20": ("tasks.1.dependsOn.name", ["main", "main"]),
    "20 unknown task | 7.3/20": ("tasks.0.dependsOn.name", ["x"]),
    "8 no containers | 1.2/template": ("tasks.0.template.spec.containers", ABSENT),
    "8 no container | 7.3/8": ("tasks.0.template.spec.containers", []),
    "8 restart policy | 7.3/8": ("tasks.0.template.spec.restartPolicy", "Maybe"),
}  # fmt: skip
# The same of the partitions of a task.
PARTITIONS = {
    "no number | 1.2/partitionPolicy.totalPartitions": ("totalPartitions", ABSENT),
    "none | 1.2/partitionPolicy.totalPartitions": ("totalPartitions", 0),
    "no size | 1.2/partitionPolicy.partitionSize": ("partitionSize", ABSENT),
    "empty ones | 1.2/partitionPolicy.partitionSize": ("partitionSize", 0),
    "fewer than none | 1.2/partitionPolicy.minPartitions": ("minPartitions", -1),
    "mode | 1.2/partitionPolicy.networkTopology": ("networkTopology.mode", "firm"),
    "topology | 7.3/10 + 1.2/partitionPolicy.networkTopology": ("networkTopology", TIERS),
}  # fmt: skip
LEAST_PARTS = changed(partitioned(4, 2, 2, minPartitions=1), "spec.tasks.0.minAvailable", 1)
# Whole jobs.
JOBS = {
    "2 mpi master | 7.3/2": job(plugins={"mpi": ["--master=boss"]}),
    "14 | 7.3/14 + 1.1/plugins + 5.1/unknown": job(plugins={"x": []}),
    "too many pods": job(task(replicas=2_000_000_000)),
    "7 pod names | 7.3/7 + 10/Q-15": job(task("t" * 55, 1000), name="j123"),
    "8 container names | 7.3/8": pod(**TWO_OF_A_NAME),
    "10 partitions | 7.3/10": partitioned(5, 2, 2),
    "10 minimum | 7.3/10": LEAST_PARTS,
    "20 circle | 7.3/20": job(after("a", "b"), after("b", "a")),
    "20 itself | 7.3/20": job(after("a", "a")),
    "20 behind a tail | 7.3/20": job(after("a", "b"), after("b", "c"), after("c", "b")),
}  # fmt: skip
# What is written in a container.
CONTAINERS = {
    "8 container name": {"name": "A b"},
    "8 variable": {"env": [{"name": "1=", "value": "x"}]},
    "8 command is a list": {"command": "python"},
    "8 arguments are texts": {"args": [1]},
    "8 negative | 7.3/8": {"requests": {"cpu": "-1"}},
    "8 quantity | 7.3/8": {"requests": {"memory": "lots"}},
    "8 no quantity": {"requests": {"cpu": ""}},
    "8 NUL in a command": {"command": ["echo", "a\0b"]},
    "8 NUL in an argument": {"args": ["\0"]},
    "8 NUL in a directory": {"workingDir": "/a\0"},
    "8 NUL in a variable": {"env": [{"name": "A", "value": "x\0y"}]},
    "8 above the limit | 7.3/8": ABOVE_LIMIT,
    "8 half a device | 7.3/8": {"limits": {"a.b/gpu": "500m"}},
    "8 unknown volume | 7.3/8": UNKNOWN_VOLUME,
}  # fmt: skip
# Policies: the same of a job as of a task.
POLICIES = {
    "action | 1.3/action": [{"event": "PodFailed", "action": "Dance"}],
    "no action | 7.3 policies/action": [{"event": "PodFailed"}],
    "exit code alone | 7.3 policies/action + 10/Q-16": [{"exitCode": 3}],
    "no such action | 7.3 policies/action + 10/Q-16": [ON_3 | {"action": "Dance"}],
    "both | 7.3/13 + 7.3 policies/event and exit code + 1.3/exitCode": [ON_FAILED | ON_3],
    "neither | 7.3/13 + 7.3 policies/neither": [{"action": "AbortJob"}],
    "event | 1.3/event + 7.3 policies/event": [ON_FAILED | {"event": "Earthquake"}],
    "one of the events | 1.3/events": [ON_FAILED | {"events": ["Earthquake"]}],
    "event twice | 7.3 policies/event twice": [ON_FAILED, EVENTS],
    "0 | 7.3 policies/exit code 0 + 1.3/exitCode": [ON_3 | {"exitCode": 0}],
    "exit code twice | 7.3 policies/exit code twice": [ON_3, ON_3],
    "star beside another | 7.3 policies/star alone": [ANY, ON_FAILED],
    "star in a list": [{"action": "AbortJob", "events": ["*", "PodFailed"]}],
    "timeout | 1.3/timeout": [ON_FAILED | {"timeout": "soon"}],
    **{
        f"internal event {event} | 3.1/{event}": [ON_FAILED | {"event": event}]
        for event in ("PodRunning", "OutOfSync", "CommandIssued")
    },
    **{
        f"internal action {action} | 3.2/{item}": [ON_FAILED | {"action": action}]
        for item in ("SyncJob", "EnqueueJob", "SyncQueue, OpenQueue, CloseQueue")
        for action in item.split(", ")
    },
}  # fmt: skip


def of_container(requests=None, limits=None, **fields):
    return pod(containers=[container(requests=requests, limits=limits, **fields)])


def numa(kind="containers", policy="restricted", **resources):
    """A job whose task has a topology policy, which needs whole CPUs of every container."""
    spec = {"containers": [container(requests={"cpu": "1"})]} | {kind: [container("own", **resources)]}
    return job(task(topologyPolicy=policy, pod=spec))


def disrupted(of_job, of_task, **spec):
    """A job that says with annotations what a disruption must leave of it."""
    made = job(task(), annotations=of_job, **spec)
    made["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": of_task}
    return made


WHOLE = job(task(), task("other"), volumes=[{"mountPath": "/a"}, {"mountPath": "/b"}])
PARTED_0, OF_PARTS = partitioned(0), "spec.tasks.0.partitionPolicy."
REFUSED = {
    "11 job name | 7.3/11": job(name="Bad_Name"),
    "11 long job name | 7.3/11": job(name="a" * 64),
    **{words: changed(WHOLE, f"spec.{path}", value) for words, (path, value) in BOUNDS.items()},
    **{f"10 {words}": changed(PARTED_0, OF_PARTS + name, value) for words, (name, value) in PARTITIONS.items()},
    **JOBS,
    **{words: of_container(**fields) for words, fields in CONTAINERS.items()},
    **{f"13 {words}": job(policies=written) for words, written in POLICIES.items()},
    **{
        f"9 {words} | 1.2/topologyPolicy + 7.3/9": obj
        for words, obj in {
            "requests of whole CPUs": numa(requests={"cpu": "2"}), "limits of whole CPUs": numa(limits={"cpu": "2"}),
            "requests that leave the limit out": numa(limits={"cpu": "2"}, requests={"memory": "1Gi"}),
            "none": numa(requests={"cpu": "0"}), "one and a half": numa(requests={"cpu": "1500m"}), "nothing": numa(),
            "nothing in an init container": numa("initContainers"), "no policy": numa(policy="none"),
        }.items()
    },
    "a disruption: a number": disrupted({LEAST: "2"}, {}),
    "a disruption: a share": disrupted({MOST: "50%"}, {}),
    "a disruption: none of the job": disrupted({LEAST: "0"}, {}),
    "a disruption: all of the template": disrupted({}, {MOST: "100%"}),
    "a disruption: the job's second, which its pods do not get": disrupted({LEAST: "1", MOST: "x"}, {}),
    "a disruption: both on the template": disrupted({}, {LEAST: "1", MOST: "1"}),
    "a disruption: one here and one there": disrupted({LEAST: "1"}, {MOST: "1"}),
    "a disruption: the job's in place of the template's": disrupted({LEAST: "1"}, {LEAST: "2"}),
    "a disruption: another's scheduler": disrupted({LEAST: "0"}, {MOST: "100%"}, schedulerName="another"),
}  # fmt: skip


@cases("obj", REFUSED)
def test_refused_at_its_field(golden, obj):
    golden("refusals", listed(refusals(obj)))


@pytest.mark.shows("7.3/6")
@cases("policies", {words.partition(" | ")[0]: written for words, written in POLICIES.items()})
def test_policies_of_a_task_are_refused_like_those_of_a_job(policies):
    of_job = refusals(job(policies=policies))
    expected = {path.replace("spec.policies", "spec.tasks[0].policies"): text for path, text in of_job.items()}
    assert refusals(job(task(policies=policies))) == expected != {}


@cases("queues", {
    "closed | 7.3/17 + queues 4/Closed, Closing + queue state 3/not Open": [queue("team", "Closed")],
    "closing | queues 4/Closed, Closing + queue state 3/not Open": [queue("team", "Closing")],
    "unknown | queue state 3/not Open": [queue("team", "Unknown")],
    "not seen by its controller | 7.3/17 + queues 4/no state yet": [queue("team", "")],
    "with children | 7.3/19 + queues 4/with children": [queue("team"), queue("sub", parent="team")],
})  # fmt: skip
def test_17_19_which_queue_takes_jobs(golden, queues):
    golden("refusals", listed(refusals(job(queue="team"), Cluster(*queues))))


@pytest.mark.shows("7.3/all at once")
def test_all_problems_are_told_at_once():
    bad = job(task("a", minAvailable=5), task("a"), queue="none", minAvailable=99)
    assert set(refusals(bad)) == {"spec.tasks[0].minAvailable", "spec.tasks[1].name", "spec.queue", "spec.minAvailable"}


@cases("obj", {
    "plain": job(),
    "a diamond of dependencies": job(task("a"), after("b", "a"), after("c", "a"), after("d", "b", "c")),
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


@cases("obj", {
    "a plain job | 1.1/schedulerName + 7.2/2 + 1.1/queue + 7.1/queue + 7.2/1 + queues 4/none + queue state 3/no queue"
    " + 1.1/maxRetry + 7.1/maxRetry + 7.2/3 + 1.1/ttlSecondsAfterFinished + 1.1/minSuccess + 1.2/maxRetry + 7.2/7": job(),
    "minimum of the tasks | 1.1/minAvailable + 7.2/8": job(task("a", 3), task("b", 2, minAvailable=1)),
    "minimum 0 | 1.1/minAvailable + 7.2/8": job(task(replicas=3), minAvailable=0),
    "minimum without replicas | 1.2/replicas": job({"name": "a", "template": task()["template"]}),
    "0 retries | 1.1/maxRetry + 7.2/3": job(maxRetry=0),
    "0 retries of a task | 1.2/maxRetry + 7.2/7": job(task(maxRetry=0)),
    "mode | 1.1/networkTopology + 7.1/networkTopology.mode": job(networkTopology={}),
    "a written mode | 1.1/networkTopology": job(networkTopology={"mode": "soft"}),
    "name of a task | 1.2/name + 7.2/4": job(task(), task(name="")),
    "minimum of a task | 1.2/minAvailable + 7.2/6": job(task(replicas=3)),
    "minimum of partitions | 1.2/minAvailable + 7.2/6": partitioned(6, 3, 2, minPartitions=2),
    "partitions | 1.2/minAvailable + 7.2/6 + 1.2/partitionPolicy.minPartitions + 7.1/partitionPolicy.minPartitions"
    " + 1.2/partitionPolicy.networkTopology + 7.1/networkTopology.mode": partitioned(4, 2, 2, networkTopology={}),
    "DNS of the host | 7.2/5": pod(hostNetwork=True),
    "a written DNS | 7.2/5": pod(hostNetwork=True, dnsPolicy="Default"),
    "plugins of tensorflow | 7.2/9": job(plugins={"tensorflow": []}),
    "plugins of pytorch | 7.2/9": job(plugins={"pytorch": []}),
    "plugins of ray | 7.2/9": job(task("head"), plugins={"ray": []}),
    "plugins of mpi | 7.2/9 + 7.2/10": job(*MPI, plugins={"mpi": []}),
})  # fmt: skip
def test_what_is_left_open_is_filled_in(golden, obj):
    made = defaulted(obj)
    golden("defaults", "; ".join(f"{each.name}: {each.after}" for each in additions.of(obj, made)))
    assert admission.validate(made, None, CLUSTER) == []
    assert refusals(obj, old=made) == {}, "the same file is applied again"


@pytest.mark.shows("9.1/1", "9.1/2", "9.1/25")
def test_spellings_of_the_seed_are_stored_as_todays_also_over_a_stored_job():
    volume = {"mountPath": "/a", "claim": {"spec": {"accessModes": []}}}
    written = job(task(pod={"priorityClass": "master-pri"}), volumes=[volume])
    written["spec"]["taskSpecs"] = written["spec"].pop("tasks")
    spec = defaulted(written)["spec"]
    assert ("taskSpecs" in spec, spec["volumes"]) == (False, [{"mountPath": "/a", "volumeClaim": {"accessModes": []}}])
    assert spec["tasks"][0]["template"]["spec"]["priorityClassName"] == "master-pri"
    old = defaulted(job(task(replicas=2)))
    new = defaulted(changed(old, "spec.taskSpecs", [task(replicas=5)]), old=old)["spec"]
    assert ("taskSpecs" in new, new["tasks"][0]["replicas"]) == (False, 5)


@pytest.mark.shows("1.2/dependsOn.iteration", "4.2/any", "4.2/all")
@cases("names, iteration, is_any", {
    "any of two": (["a", "c"], "any", True), "any of one": (["a"], "any", False), "all": (["a", "c"], "all", False),
    "left out": (["a", "c"], "", False), "unknown": (["a", "c"], "some", False),
})  # fmt: skip
def test_any_of_two_tasks_is_enough_where_that_is_written(names, iteration, is_any):
    made = job(task("a"), task("b", dependsOn={"name": names, "iteration": iteration}), task("c"))
    assert refusals(made) == {}
    found = facts.read_job(msgspec.json.encode(defaulted(made))).dependencies
    assert found == {"b": Dependency(tuple(names), any=is_any)}


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


@cases("path, value", {
    "minAvailable | 1.6/spec.minAvailable": ("spec.minAvailable", 1),
    "priorityClassName | 1.6/spec.priorityClassName": ("spec.priorityClassName", "high"),
    "replicas | 1.6/spec.tasks[].replicas": ("spec.tasks.0.replicas", 9),
    "labels | 1.6/metadata": ("metadata.labels", {"a": "b"}),
    "name of a made claim | 1.6/spec.volumes[].volumeClaimName": ("spec.volumes.1.volumeClaimName", "made"),
    "1 negative replicas | 7.4/1 + 1.6/spec.tasks[].replicas": ("spec.tasks.0.replicas", -1),
    "1 task minimum | 7.4/1 + 1.6/spec.tasks[].minAvailable": ("spec.tasks.0.minAvailable", 4),
    "2 minimum above replicas | 7.4/2 + 1.6/spec.minAvailable": ("spec.minAvailable", 9),
    "2 negative minimum | 7.4/2 + 1.6/spec.minAvailable": ("spec.minAvailable", -1),
    "3 topology | 7.4/3": ("spec.networkTopology", TIERS),
    "4 task added | 7.4/4 + 1.6/number of tasks": ("spec.tasks", [task(), task("b")]),
    "5 queue | 7.4/5 + 1.6/everything else + queues 4/later": ("spec.queue", "team"),
    "5 maxRetry | 7.4/5 + 1.6/everything else": ("spec.maxRetry", 9),
    "5 template | 7.4/5 + 1.6/everything else": ("spec.tasks.0.template", {}),
    "5 claim | 7.4/5 + 1.6/spec.volumes[].volumeClaimName": ("spec.volumes.0.volumeClaimName", "x"),
    **{f"5 {path}": (path, value) for path, value in UNCHANGEABLE.items()},
})  # fmt: skip
def test_what_of_a_job_may_change(golden, path, value):
    claims = [{"volumeClaimName": "c"}, {"volumeClaim": {"storageClassName": "s"}}]
    volumes = [{"mountPath": path, **claim} for path, claim in zip(("/a", "/b"), claims, strict=True)]
    old = defaulted(job(task(replicas=3), volumes=volumes))
    found = admission.validate(changed(old, path, value), old, CLUSTER)
    golden("changes", listed({cause.field: cause.message for cause in found}))


@cases("metadata, resources, is_unchanged", {
    "as Go's types write it": ({"creationTimestamp": None}, {}, True),
    "as Volcano's webhook writes it": ({}, {}, True),
    "a label": ({"labels": {"a": "b"}}, {}, False),
    "a request": ({}, {"requests": {"cpu": "1"}}, False),
})  # fmt: skip
def test_a_typed_client_may_send_back_the_template_that_it_read(metadata, resources, is_unchanged):
    old = defaulted(job(task(replicas=3)))
    new = changed(old, "spec.tasks.0.template.metadata", metadata)
    put(new, "spec.tasks.0.template.spec.containers.0.resources", resources)
    made = defaulted(new, old=old)
    assert (made["spec"] == old["spec"]) is is_unchanged
    assert (admission.validate(made, old, CLUSTER) == []) is is_unchanged


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
    assert admission.validate(new, old, Cluster(queue("team", "Closed"))) == []


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
FIELDS = {
    "": "metadata metadata.name spec",
    "spec.": "tasks tasks.0 policies plugins volumes queue minAvailable networkTopology taskSpecs",
    "spec.tasks.0.": "name replicas minAvailable template policies dependsOn partitionPolicy topologyPolicy",
    "spec.tasks.0.template.spec.": "containers volumes restartPolicy priorityClass initContainers",
    "spec.tasks.0.template.spec.containers.0.": "name env resources volumeMounts command",
}
PATHS = [f"{at}{field}" for at, fields in FIELDS.items() for field in fields.split()]


@examples(300)
@given(st.sampled_from(PATHS), nested(VALUES, st.text(max_size=8)))
def test_hostile_input_is_refused_and_never_raises(path, value):
    obj = job(task(minAvailable=1))
    put(obj, path, value)
    made = defaulted(obj)
    assert all(cause.message for cause in admission.validate(made, None, CLUSTER))
    assert isinstance(admission.warn(made, None, CLUSTER), list)
    admission.validate(made, defaulted(job()), CLUSTER)
