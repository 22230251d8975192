"""Every rule of volcano-job §7.3 and §7.4 has a row here."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules import admission
from tests.campaign import examples
from tests.jobs.builders import CLUSTER, Cluster, container, defaulted, job, refusals, task

TEMPLATE = "spec.tasks[0].template.spec"


def policies(*written):
    return job(policies=list(written))


def resources(**fields):
    return job(task(pod={"containers": [container(resources=fields)]}))


def pod(**fields):
    return job(task(pod=fields))


REFUSED = [
    pytest.param(job() | {"spec": {}}, "spec.tasks", "No task specified in job spec", id="1 no task", marks=pytest.mark.shows("7.3/1", "1.1/tasks")),
    pytest.param(job(plugins={"mpi": ["--master=boss"]}), "spec.plugins[mpi]", "mpi master task not found", id="2 mpi master", marks=pytest.mark.shows("7.3/2")),
    pytest.param(
        job(networkTopology={"highestTierAllowed": 1, "highestTierName": "a"}),
        "spec.networkTopology", "must not be specified at the same time", id="3 topology", marks=pytest.mark.shows("7.3/3"),
    ),
    pytest.param(
        job(task(minAvailable=2)), "spec.tasks[0].minAvailable",
        "'minAvailable' is greater than 'replicas' in task main", id="4 task minimum", marks=pytest.mark.shows("7.3/4"),
    ),
    pytest.param(job(task(), task()), "spec.tasks[1].name", "duplicated task name", id="5 task names", marks=pytest.mark.shows("7.3/5")),
    pytest.param(
        job(task(policies=[{"event": "PodFailed", "action": "Dance"}])),
        "spec.tasks[0].policies[0].action", "RestartJob", id="6 task policies", marks=pytest.mark.shows("7.3/6"),
    ),
    *(
        pytest.param(job(task(policies=written)), f"spec.tasks[0].policies{path}", text, id=f"6 {name}")
        for name, written, path, text in (
            ("event and exit code", [{"action": "AbortJob", "event": "PodFailed", "exitCode": 3}], "[0]", "simultaneously"),
            ("neither", [{"action": "AbortJob"}], "[0]", "either event and exitCode should be specified"),
            ("internal event", [{"action": "AbortJob", "events": ["PodFailed", "OutOfSync"]}], "[0].events[1]", "Unsupported value"),
            ("event twice", [{"action": "AbortJob", "event": "Unknown"}, {"action": "RestartJob", "event": "Unknown"}], "[1].event", "Duplicate"),
            ("exit code 0", [{"action": "AbortJob", "exitCode": 0}], "[0].exitCode", "0 is not a valid error code"),
            ("star alone", [{"action": "AbortJob", "events": ["*", "PodFailed"]}], "", "if there's * here"),
        )
    ),
    pytest.param(
        job(task(name="t" * 55, replicas=1000), name="j123"), "spec.tasks[0].name", "64 characters long", id="7 pod names", marks=pytest.mark.shows("7.3/7", "10/Q-15"),
    ),
    pytest.param(pod(containers=[]), f"{TEMPLATE}.containers", "at least 1", id="8 no container", marks=pytest.mark.shows("7.3/8")),
    pytest.param(
        pod(containers=[container(), container()]), f"{TEMPLATE}.containers[1].name", "Duplicate", id="8 container names", marks=pytest.mark.shows("7.3/8"),
    ),
    pytest.param(pod(containers=[container("A b")]), f"{TEMPLATE}.containers[0].name", "", id="8 container name"),
    pytest.param(pod(restartPolicy="Maybe"), f"{TEMPLATE}.restartPolicy", "OnFailure", id="8 restart policy", marks=pytest.mark.shows("7.3/8")),
    pytest.param(
        pod(containers=[container(env=[{"name": "1=", "value": "x"}])]),
        f"{TEMPLATE}.containers[0].env[0].name", "environment variable", id="8 variable",
    ),
    pytest.param(
        pod(containers=[container(command="python")]), f"{TEMPLATE}.containers[0].command", "", id="8 command is a list",
    ),
    pytest.param(
        pod(containers=[container(args=[1])]), f"{TEMPLATE}.containers[0].args[0]", "", id="8 arguments are texts",
    ),
    pytest.param(
        resources(requests={"cpu": "-1"}), f"{TEMPLATE}.containers[0].resources.requests[cpu]",
        "must be greater than or equal to 0", id="8 negative", marks=pytest.mark.shows("7.3/8"),
    ),
    pytest.param(
        resources(requests={"memory": "lots"}), f"{TEMPLATE}.containers[0].resources.requests[memory]", "", id="8 quantity", marks=pytest.mark.shows("7.3/8"),
    ),
    pytest.param(
        resources(requests={"cpu": ""}), f"{TEMPLATE}.containers[0].resources.requests[cpu]", "is not a quantity", id="8 no quantity",
    ),
    *(
        pytest.param(pod(containers=[container(**fields)]), f"{TEMPLATE}.containers[0].{field}", "NUL character", id=f"8 NUL in {field}")
        for field, fields in {
            "command[1]": {"command": ["echo", "a\0b"]},
            "args[0]": {"args": ["\0"]},
            "workingDir": {"workingDir": "/a\0"},
            "env[0].value": {"env": [{"name": "A", "value": "x\0y"}]},
        }.items()
    ),
    pytest.param(
        resources(requests={"cpu": "2"}, limits={"cpu": "1"}), f"{TEMPLATE}.containers[0].resources.requests[cpu]",
        "must be less than or equal to the cpu limit of 1", id="8 request above limit", marks=pytest.mark.shows("7.3/8"),
    ),
    pytest.param(
        resources(limits={"nvidia.com/gpu": "500m"}), f"{TEMPLATE}.containers[0].resources.limits[nvidia.com/gpu]",
        "must be an integer", id="8 half a device", marks=pytest.mark.shows("7.3/8"),
    ),
    pytest.param(
        pod(containers=[container(volumeMounts=[{"name": "x", "mountPath": "/x"}])]),
        f"{TEMPLATE}.containers[0].volumeMounts[0].name", "no volume of the pod", id="8 unknown volume", marks=pytest.mark.shows("7.3/8"),
    ),
    pytest.param(
        job(task(topologyPolicy="restricted", pod={"containers": [container(resources={"requests": {"cpu": "1500m"}})]})),
        f"{TEMPLATE}.containers[0].resources.requests[cpu]", "whole number of CPUs", id="9 topology policy", marks=pytest.mark.shows("7.3/9"),
    ),
    pytest.param(
        job(task(replicas=5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})),
        "spec.tasks[0].replicas", "totalPartitions times partitionSize, 4", id="10 partitions", marks=pytest.mark.shows("7.3/10"),
    ),
    pytest.param(
        job(task(replicas=4, minAvailable=1, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})),
        "spec.tasks[0].minAvailable", "minPartitions times partitionSize, 2", id="10 minimum of partitions", marks=pytest.mark.shows("7.3/10"),
    ),
    *(
        pytest.param(
            job(task(replicas=0, partitionPolicy={"totalPartitions": 1, "partitionSize": 1, field: 0})),
            f"spec.tasks[0].partitionPolicy.{field}", "greater than or equal to 1", id=f"10 no {field}",
        )
        for field in ("totalPartitions", "partitionSize")
    ),
    pytest.param(
        job(task(replicas=1, partitionPolicy={"totalPartitions": 1, "partitionSize": 1,
                 "networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"}})),
        "spec.tasks[0].partitionPolicy.networkTopology", "must not be specified at the same time", id="10 topology of partitions", marks=pytest.mark.shows("7.3/10", "1.2/partitionPolicy.networkTopology"),
    ),
    pytest.param(job(name="Bad_Name"), "metadata.name", "RFC 1123", id="11 job name", marks=pytest.mark.shows("7.3/11")),
    pytest.param(job(name="a" * 64), "metadata.name", "shorten", id="11 long job name", marks=pytest.mark.shows("7.3/11")),
    pytest.param(
        job(minAvailable=2), "spec.minAvailable",
        "job 'minAvailable' should not be greater than total replicas", id="12 minimum", marks=pytest.mark.shows("7.3/12"),
    ),
    pytest.param(policies({"action": "AbortJob", "event": "PodFailed", "exitCode": 3}), "spec.policies[0]",
                 "must not specify event and exitCode simultaneously", id="13 event and exit code", marks=pytest.mark.shows("7.3/13", "7.3 policies/event and exit code")),
    pytest.param(policies({"action": "AbortJob"}), "spec.policies[0]",
                 "either event and exitCode should be specified", id="13 neither", marks=pytest.mark.shows("7.3/13", "7.3 policies/neither")),
    pytest.param(policies({"action": "AbortJob", "event": "PodRunning"}), "spec.policies[0].event",
                 "Unsupported value", id="13 internal event", marks=pytest.mark.shows("7.3 policies/event", "3.1/PodRunning")),
    pytest.param(policies({"action": "SyncJob", "event": "PodFailed"}), "spec.policies[0].action",
                 "invalid policy action", id="13 internal action", marks=pytest.mark.shows("7.3 policies/action", "3.2/SyncJob")),
    pytest.param(policies({"action": "AbortJob", "event": "PodVanished"}), "spec.policies[0].event",
                 "supported values", id="13 event that is none", marks=pytest.mark.shows("7.3 policies/event")),
    pytest.param(policies({"event": "PodFailed"}), "spec.policies[0].action", "invalid policy action", id="13 no action", marks=pytest.mark.shows("7.3 policies/action")),
    pytest.param(policies({"exitCode": 3, "action": "Dance"}), "spec.policies[0].action", "Unsupported value", id="13 exit code, no such action (Q-16)", marks=pytest.mark.shows("7.3 policies/action", "10/Q-16")),
    pytest.param(policies({"action": "AbortJob", "event": "PodFailed", "timeout": "soon"}), "spec.policies[0].timeout",
                 "is not a duration", id="13 timeout"),
    pytest.param(policies({"exitCode": 3}), "spec.policies[0].action", "invalid policy action", id="13 exit code without action (Q-16)", marks=pytest.mark.shows("7.3 policies/action", "10/Q-16")),
    pytest.param(
        policies({"action": "AbortJob", "event": "PodFailed"}, {"action": "RestartJob", "events": ["PodFailed"]}),
        "spec.policies[1].events[0]", "Duplicate", id="13 event twice", marks=pytest.mark.shows("7.3 policies/event twice"),
    ),
    pytest.param(policies({"action": "AbortJob", "exitCode": 0}), "spec.policies[0].exitCode",
                 "0 is not a valid error code", id="13 exit code 0", marks=pytest.mark.shows("7.3 policies/exit code 0")),
    pytest.param(
        policies({"action": "AbortJob", "exitCode": 3}, {"action": "RestartJob", "exitCode": 3}),
        "spec.policies[1].exitCode", "duplicate exitCode; one policy answers it", id="13 exit code twice", marks=pytest.mark.shows("7.3 policies/exit code twice"),
    ),
    pytest.param(
        policies({"action": "AbortJob", "event": "*"}, {"action": "RestartJob", "event": "PodFailed"}),
        "spec.policies", "if there's * here, no other policy should be here", id="13 star alone", marks=pytest.mark.shows("7.3 policies/star alone"),
    ),
    pytest.param(job(plugins={"nope": []}), "spec.plugins[nope]", "unable to find job plugin nope", id="14 plugin", marks=pytest.mark.shows("7.3/14")),
    pytest.param(job(volumes=[{"volumeClaimName": "a"}]), "spec.volumes[0].mountPath", "", id="15 mount path", marks=pytest.mark.shows("7.3/15")),
    pytest.param(
        job(volumes=[{"mountPath": "/a"}, {"mountPath": "/a"}]), "spec.volumes[1].mountPath", "duplicated mountPath", id="15 mount path twice", marks=pytest.mark.shows("7.3/15", "1.4/mountPath"),
    ),
    pytest.param(
        job(volumes=[{"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {"storageClassName": "s"}}]),
        "spec.volumes[0]", "conflict", id="15 two claims", marks=pytest.mark.shows("7.3/15"),
    ),
    pytest.param(
        job(volumes=[{"mountPath": "/a", "volumeClaimName": "C_"}]), "spec.volumes[0].volumeClaimName", "RFC 1123", id="15 claim name", marks=pytest.mark.shows("7.3/15"),
    ),
    pytest.param(job(queue="none"), "spec.queue", "unable to find job queue: queue none not found", id="16 queue", marks=pytest.mark.shows("7.3/16", "queues 4/missing")),
    pytest.param(job(queue="root"), "spec.queue", "can not submit job to root queue", id="18 root", marks=pytest.mark.shows("7.3/18", "queues 4/root")),
    pytest.param(
        job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
        "spec.tasks", "directed acyclic graph", id="20 circle", marks=pytest.mark.shows("7.3/20"),
    ),
    pytest.param(
        job(task("a"), task("b", dependsOn={"name": ["a", "a"]})),
        "spec.tasks[1].dependsOn.name", "Duplicate", id="20 twice", marks=pytest.mark.shows("7.3/20"),
    ),
    pytest.param(
        job(task("a", dependsOn={"name": ["a"]})), "spec.tasks", "directed acyclic graph", id="20 itself", marks=pytest.mark.shows("7.3/20"),
    ),
    pytest.param(job(task("a", dependsOn={"name": ["x"]})), "spec.tasks[0].dependsOn.name", "no task is named x", id="20 unknown task", marks=pytest.mark.shows("7.3/20")),
    pytest.param(job(task(replicas=-1)), "spec.tasks[0].replicas", "greater than or equal to 0", id="negative replicas"),
    pytest.param(job(task(replicas=2_000_000_000)), "spec.tasks", "100,000 pods at most", id="too many pods"),
    pytest.param(job(maxRetry=-1), "spec.maxRetry", "greater than or equal to 0", id="negative retries"),
    pytest.param(job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished", "greater than or equal to 0", id="negative ttl"),
    pytest.param(job(task(name="No Good")), "spec.tasks[0].name", "", id="task name"),
]  # fmt: skip


def test_no_volume_lies_over_what_the_kernel_makes_for_a_container():
    found = refusals(job(volumes=[{"mountPath": "/proc/self/fd"}]))
    assert "each container's own" in found["spec.volumes[0].mountPath"]


@pytest.mark.parametrize(("obj", "field", "text"), REFUSED)
def test_refused_at_its_field(obj, field, text):
    found = refusals(obj)
    assert field in found
    assert text in found[field]


INTERNAL = [
    *(pytest.param({"event": event, "action": "AbortJob"}, "event", id=event, marks=pytest.mark.shows(f"3.1/{event}"))
      for event in ("PodRunning", "OutOfSync", "CommandIssued")),
    *(pytest.param({"event": "PodFailed", "action": action}, "action", id=action, marks=pytest.mark.shows(item))
      for action, item in {
          "SyncJob": "3.2/SyncJob",
          "EnqueueJob": "3.2/EnqueueJob",
          **dict.fromkeys(("SyncQueue", "OpenQueue", "CloseQueue"), "3.2/SyncQueue, OpenQueue, CloseQueue"),
      }.items()),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "field"), INTERNAL)
def test_what_is_internal_is_no_policy(policy, field):
    assert "supported values" in refusals(policies(policy))[f"spec.policies[0].{field}"]


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(name, marks=pytest.mark.shows(f"3.2/{name}"))
        for name in (
            "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob",
        )
    ],
)  # fmt: skip
def test_what_may_be_a_policy(action):
    assert refusals(policies({"event": "PodFailed", "action": action})) == {}


@pytest.mark.shows("7.3/17", "queues 4/Closed, Closing", "queue state 3/not Open")
@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
def test_17_only_an_open_queue_takes_jobs(state):
    cluster = Cluster(team={"status": {"state": state}})
    assert f"queue `team` status is `{state}`" in refusals(job(queue="team"), cluster)["spec.queue"]


@pytest.mark.shows("7.3/17", "queues 4/no state yet")
def test_17_queue_that_its_controller_has_not_seen_is_open_as_wished():
    assert refusals(job(queue="team"), Cluster(team={"status": {}})) == {}


@pytest.mark.shows("7.3/19", "queues 4/with children")
def test_19_queue_with_children_takes_no_jobs():
    cluster = Cluster(team={}, sub={"spec": {"parent": "team"}})
    assert "leaf queue" in refusals(job(queue="team"), cluster)["spec.queue"]


LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
OF_JOB, OF_TASK = "metadata.annotations", "spec.tasks[0].template.metadata.annotations"


def annotated(of_job, of_task=(), **spec):
    made = job(task(), **spec)
    made["metadata"]["annotations"] = dict(of_job)
    made["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": dict(of_task)}
    return made


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        pytest.param(annotated({LEAST: "2"}), [], id="a number"),
        pytest.param(annotated({MOST: "50%"}), [], id="a share"),
        pytest.param(annotated({LEAST: "0"}), [f"{OF_JOB}[{LEAST}]"], id="of the job"),
        pytest.param(annotated({}, {MOST: "100%"}), [f"{OF_TASK}[{MOST}]"], id="of the template"),
        pytest.param(annotated({LEAST: "1", MOST: "x"}), [], id="the job's second, which its pods do not get"),
        pytest.param(annotated({}, {LEAST: "1", MOST: "1"}), [f"{OF_TASK}[{MOST}]"], id="both on the template"),
        pytest.param(annotated({LEAST: "1"}, {MOST: "1"}), [f"{OF_TASK}[{MOST}]"], id="one here and one there"),
        pytest.param(annotated({LEAST: "1"}, {LEAST: "2"}), [], id="the job's in place of the template's"),
        pytest.param(annotated({LEAST: "0"}, {MOST: "0"}, schedulerName="mine"), [], id="another scheduler's"),
    ],
)
def test_what_a_disruption_must_leave_is_said_in_one_way(obj, fields):
    assert list(refusals(obj)) == fields


@pytest.mark.shows("7.3/all at once")
def test_all_problems_are_told_at_once():
    bad = job(task("a", minAvailable=5), task("a"), queue="none", minAvailable=99)
    assert set(refusals(bad)) == {"spec.tasks[0].minAvailable", "spec.tasks[1].name", "spec.queue", "spec.minAvailable"}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(job(), id="plain"),
        pytest.param(job(task("a"), task("b", dependsOn={"name": ["a"]})), id="dependency"),
        pytest.param(job(volumes=[{"mountPath": "/a"}]), id="volume without claim", marks=pytest.mark.shows("7.3/15 no claim", "1.4/a claim")),
        pytest.param(job(volumes=[{"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/b", "volumeClaimName": "c"}]), id="one claim twice (Q-23)", marks=pytest.mark.shows("10/Q-23", "4.1/one claim twice")),
        pytest.param(resources(requests={"cpu": "1000000"}), id="more than any node has"),
        pytest.param(policies({"action": "RestartJob", "events": ["PodFailed", "PodFailed"]}), id="repeat inside one policy", marks=pytest.mark.shows("7.3 policies/event twice")),
        pytest.param(policies({"action": "RestartJob", "event": "*"}, {"action": "AbortJob", "exitCode": 3}), id="star beside exit code", marks=pytest.mark.shows("7.3 policies/star alone")),
        pytest.param(job(task(replicas=0), minAvailable=0), id="no replicas"),
    ],
)  # fmt: skip
def test_accepted(obj):
    assert refusals(obj) == {}


@pytest.mark.shows("7.2/4", "7.2/8", "queues 4/none", "queue state 3/no queue")
def test_defaults_are_filled_in_order():
    spec = defaulted(job(task(name="", replicas=2), task(name="", replicas=3, pod={"hostNetwork": True})))["spec"]
    assert [t["name"] for t in spec["tasks"]] == ["default0", "default1"]
    assert [t["minAvailable"] for t in spec["tasks"]] == [2, 3]
    assert [t["maxRetry"] for t in spec["tasks"]] == [3, 3]
    assert spec["tasks"][1]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        5,
    )


@pytest.mark.shows("7.2/6")
def test_minimum_of_partitions_is_the_default():
    partitions = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    assert defaulted(job(task(replicas=8, partitionPolicy=partitions)))["spec"]["minAvailable"] == 6


@pytest.mark.shows("7.2/9", "7.2/10")
@pytest.mark.parametrize("plugin", ["tensorflow", "mpi", "pytorch", "ray"])
def test_frameworks_bring_their_services(plugin):
    wanted = defaulted(job(plugins={plugin: ["--master=main"]}))["spec"]["plugins"]
    assert wanted["svc"] == []
    assert ("ssh" in wanted) == (plugin == "mpi")


@pytest.mark.shows("9.1/1", "9.1/2", "9.1/25")
def test_spellings_of_the_seed_are_stored_as_todays():
    written = job(
        task(pod={"priorityClass": "master-pri"}), volumes=[{"mountPath": "/a", "claim": {"spec": {"accessModes": []}}}]
    )
    written["spec"]["taskSpecs"] = written["spec"].pop("tasks")
    spec = defaulted(written)["spec"]
    assert "taskSpecs" not in spec
    assert spec["tasks"][0]["template"]["spec"]["priorityClassName"] == "master-pri"
    assert spec["volumes"] == [{"mountPath": "/a", "volumeClaim": {"accessModes": []}}]


def test_the_seeds_spelling_can_be_laid_over_a_stored_job():
    old = defaulted(job(task(replicas=2)))
    new = copy.deepcopy(old)
    new["spec"]["taskSpecs"] = [task(replicas=5)]
    admission.default(new, old, CLUSTER)
    assert "taskSpecs" not in new["spec"]
    assert new["spec"]["tasks"][0]["replicas"] == 5


@pytest.mark.shows("1.6/defaults")
def test_the_same_file_applied_again_with_more_replicas_is_accepted():
    written = job({**task(replicas=2), "name": ""}, plugins={"mpi": []})
    old = defaulted(written)
    again = copy.deepcopy(written)
    again["spec"]["tasks"][0]["replicas"] = 3
    admission.default(again, old, CLUSTER)
    assert admission.validate(again, old, CLUSTER) == []
    assert again["spec"]["tasks"][0]["minAvailable"] == 3


@pytest.mark.shows("1.6/defaults")
@pytest.mark.parametrize(
    "written",
    [
        pytest.param(job(), id="a plain job"),
        pytest.param(job({"replicas": 2, "template": task()["template"]}), id="a task without a name"),
        pytest.param(job(task(), plugins={"mpi": ["--master=main"]}), id="plugins that bring others"),
        pytest.param(pod(hostNetwork=True), id="the network of the host"),
        pytest.param(job(volumes=[{"mountPath": "/b", "volumeClaim": {"storageClassName": "s"}}]), id="a made claim"),
    ],
)
def test_a_job_can_be_sent_again_as_it_was_written(written):
    old = defaulted(copy.deepcopy(written))
    for volume in old["spec"].get("volumes", ()):
        volume["volumeClaimName"] = "made"
    again = copy.deepcopy(written)
    admission.default(again, old, CLUSTER)
    assert again["spec"] == old["spec"]


@pytest.mark.shows("1.6/minAvailable 0")
def test_nothing_is_filled_in_on_update():
    old = defaulted(job(task(replicas=3)))
    new = copy.deepcopy(old)
    new["spec"]["minAvailable"] = 0
    admission.default(new, old, CLUSTER)
    assert new["spec"]["minAvailable"] == 0


def change(path, value):
    def apply(obj):
        target = obj
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return apply


UPDATES = [
    pytest.param(change(["spec", "minAvailable"], 1), {}, id="minAvailable may change", marks=pytest.mark.shows("1.6/spec.minAvailable")),
    pytest.param(change(["spec", "priorityClassName"], "high"), {}, id="priorityClassName may change", marks=pytest.mark.shows("1.6/spec.priorityClassName")),
    pytest.param(change(["spec", "tasks", 0, "replicas"], 9), {}, id="replicas may change", marks=pytest.mark.shows("1.6/spec.tasks[].replicas")),
    pytest.param(change(["metadata", "labels"], {"a": "b"}), {}, id="labels may change", marks=pytest.mark.shows("1.6/metadata")),
    pytest.param(change(["spec", "volumes", 1, "volumeClaimName"], "made"), {}, id="name of a made claim may be stored", marks=pytest.mark.shows("1.6/spec.volumes[].volumeClaimName")),
    pytest.param(change(["spec", "tasks", 0, "replicas"], -1), {"spec.tasks[0].replicas": "greater than or equal to 0"}, id="1 negative replicas", marks=pytest.mark.shows("7.4/1", "1.6/spec.tasks[].replicas")),
    pytest.param(change(["spec", "tasks", 0, "minAvailable"], 4), {"spec.tasks[0].minAvailable": "greater than 'replicas'"}, id="1 task minimum", marks=pytest.mark.shows("7.4/1", "1.6/spec.tasks[].minAvailable")),
    pytest.param(change(["spec", "minAvailable"], 9), {"spec.minAvailable": "not be greater than total replicas"}, id="2 minimum above replicas", marks=pytest.mark.shows("7.4/2", "1.6/spec.minAvailable")),
    pytest.param(change(["spec", "minAvailable"], -1), {"spec.minAvailable": "greater than or equal to 0"}, id="2 negative minimum", marks=pytest.mark.shows("7.4/2", "1.6/spec.minAvailable")),
    pytest.param(change(["spec", "networkTopology"], {"highestTierAllowed": 1, "highestTierName": "a"}), {"spec.networkTopology": "may not change"}, id="3 topology", marks=pytest.mark.shows("7.4/3")),
    pytest.param(change(["spec", "tasks"], [task(replicas=3), task("b")]), {"spec.tasks": "job updates may not add or remove tasks"}, id="4 task added", marks=pytest.mark.shows("7.4/4", "1.6/number of tasks")),
    *(
        pytest.param(change(["spec", field], value), {f"spec.{field}": "may not change"}, id=f"5 {field}")
        for field, value in {
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "plugins": {"env": []},
            "minSuccess": 1,
            "ttlSecondsAfterFinished": 60,
            "schedulerName": "mine",
            "runningEstimate": "1h",
            "volumes": [],
        }.items()
    ),
    *(
        pytest.param(change(["spec", "tasks", 0, field], value), {f"spec.tasks[0].{field}": "may not change"}, id=f"5 {field} of a task")
        for field, value in {
            "name": "other",
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "dependsOn": {"name": ["b"]},
            "maxRetry": 9,
            "topologyPolicy": "none",
            "partitionPolicy": {"totalPartitions": 3, "partitionSize": 1},
        }.items()
    ),
    pytest.param(change(["spec", "queue"], "team"), {"spec.queue": "job updates may not change fields other than"}, id="5 queue", marks=pytest.mark.shows("7.4/5", "1.6/everything else", "queues 4/later")),
    pytest.param(change(["spec", "maxRetry"], 9), {"spec.maxRetry": "job updates may not change fields other than"}, id="5 maxRetry", marks=pytest.mark.shows("7.4/5", "1.6/everything else")),
    pytest.param(change(["spec", "tasks", 0, "template"], {}), {"spec.tasks[0].template": "may not change"}, id="5 template", marks=pytest.mark.shows("7.4/5", "1.6/everything else")),
    pytest.param(change(["spec", "volumes", 0, "volumeClaimName"], "x"), {"spec.volumes[0].volumeClaimName": "may not change"}, id="5 claim", marks=pytest.mark.shows("7.4/5", "1.6/spec.volumes[].volumeClaimName")),
]  # fmt: skip


@pytest.mark.parametrize(("apply", "expected"), UPDATES)
def test_update(apply, expected):
    volumes = [
        {"mountPath": "/a", "volumeClaimName": "c"},
        {"mountPath": "/b", "volumeClaim": {"storageClassName": "s"}},
    ]
    old = defaulted(job(task(replicas=3), volumes=volumes))
    new = copy.deepcopy(old)
    apply(new)
    found = {cause.field: cause.message for cause in admission.validate(new, old, CLUSTER)}
    assert bool(found) == bool(expected)
    for field, text in expected.items():
        assert text in found[field]


@pytest.mark.shows("1.6/spec.tasks[].replicas", "7.4/1")
def test_1_partitions_bound_the_replicas_of_a_change():
    old = defaulted(job(task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})))
    new = copy.deepcopy(old)
    new["spec"]["tasks"][0]["replicas"] = 6
    found = {cause.field: cause.message for cause in admission.validate(new, old, CLUSTER)}
    assert "totalPartitions times partitionSize, 4" in found["spec.tasks[0].replicas"]


@pytest.mark.shows("7.4/not checked", "queues 4/closed in between")
def test_a_closed_queue_takes_changes_of_the_jobs_it_has():
    old = defaulted(job(task(replicas=3), queue="team"))
    new = copy.deepcopy(old)
    new["spec"]["tasks"][0]["replicas"] = 2
    new["spec"]["tasks"][0]["minAvailable"] = 2
    new["spec"]["minAvailable"] = 2
    assert admission.validate(new, old, Cluster(team={"status": {"state": "Closed"}})) == []


def test_annotations_for_simulated_nodes_need_a_pod_that_asks_for_them():
    def warned(**pod):
        annotations = {"ui.volcano.sh/duration-seconds": "6", "ui.volcano.sh/note": "x"}
        given = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["true"]}], **pod}
        template = {"metadata": {"annotations": annotations}, "spec": given}
        return admission.warn(defaulted(job({**task(), "template": template})), None, CLUSTER)

    (warning,) = warned()
    assert warning.startswith("spec.tasks[0].template.metadata.annotations[ui.volcano.sh/duration-seconds]: ")
    assert 'nodeSelector ui.volcano.sh/simulated: "true"' in warning
    asking = {"nodeSelector": {"ui.volcano.sh/simulated": "true"}}
    assert warned(**asking) == []
    assert warned(tolerations=[{"key": "ui.volcano.sh/simulated", "operator": "Exists"}]) == []
    assert warned(**asking, containers=[{"name": "c", "image": "i"}]) == [], "no command is needed there"


def test_a_demand_that_keeps_pods_waiting_is_told_when_the_job_is_written():
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    assert admission.warn(defaulted(job(task(pod={"topologySpreadConstraints": [spread]}))), None, CLUSTER) == []
    spread["whenUnsatisfiable"] = "Perhaps"
    demanding = defaulted(job(task(pod={"topologySpreadConstraints": [spread]})))
    (warning,) = admission.warn(demanding, None, CLUSTER)
    assert warning.startswith("spec.tasks[0].template.spec.topologySpreadConstraints: the pods will wait: ")
    assert "whenUnsatisfiable (DoNotSchedule or ScheduleAnyway)" in warning


def test_warnings_say_what_is_odd_and_nothing_else():
    odd = defaulted(
        job(
            task(pod={"restartPolicy": "", "containers": [{"name": "c"}], "priorityClassName": "none"}),
            plugins={"ssh": ["--no-root"]},
        )
    )
    found = "\n".join(admission.warn(odd, None, CLUSTER))
    for part in (
        "restartPolicy: containers start again",
        "give container c a command",
        "no priority class none",
        "plugins[ssh]",
    ):
        assert part in found
    assert admission.warn(defaulted(job()), None, CLUSTER) == []


BARE = {"name": "head", "image": "img"}
SIMULATED = "ui.volcano.sh/simulated"


@pytest.mark.parametrize(
    ("pod", "plugins", "named"),
    [
        pytest.param({}, {}, ["containers[0]"], id="a container"),
        pytest.param({"initContainers": [BARE]}, {}, ["initContainers[0]", "containers[0]"], id="an init container"),
        pytest.param({"containers": [{**BARE, "args": ["-v"]}]}, {}, ["containers[0]"], id="options are no command"),
        pytest.param({"containers": [{**BARE, "args": ["sh", "-c", "true"]}]}, {}, [], id="arguments that are one"),
        pytest.param({"nodeSelector": {SIMULATED: "true"}}, {}, [], id="of a pod to be simulated"),
        pytest.param({"tolerations": [{"key": SIMULATED, "operator": "Exists"}]}, {}, [], id="of a pod that may be simulated"),
        pytest.param({}, {"ray": []}, [], id="whose command a plugin gives"),
        pytest.param({}, {"ray": ["--headContainer=main"]}, ["containers[0]"], id="beside one whose command a plugin gives"),
    ],
)  # fmt: skip
def test_containers_that_nothing_gives_a_command_are_named(pod, plugins, named):
    obj = defaulted(job(task("head", pod={"containers": [BARE], **pod}), plugins=plugins))
    told = [text for text in admission.warn(obj, None, CLUSTER) if ".command: " in text]
    paths = [f"spec.tasks[0].template.spec.{each}.command" for each in named]
    assert [text.split(": ")[0] for text in told] == paths
    assert all("give container head a command" in text for text in told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PATHS = [
    ["metadata"], ["metadata", "name"], ["spec"], ["spec", "tasks"], ["spec", "tasks", 0], ["spec", "policies"], ["spec", "plugins"],
    ["spec", "volumes"], ["spec", "queue"], ["spec", "minAvailable"], ["spec", "networkTopology"], ["spec", "taskSpecs"],
    *(["spec", "tasks", 0, field] for field in ("name", "replicas", "minAvailable", "template", "policies", "dependsOn", "partitionPolicy", "topologyPolicy")),
    *(["spec", "tasks", 0, "template", "spec", field] for field in ("containers", "volumes", "restartPolicy", "priorityClass", "initContainers")),
    *(["spec", "tasks", 0, "template", "spec", "containers", 0, field] for field in ("name", "env", "resources", "volumeMounts", "command")),
]  # fmt: skip


@examples(300)
@given(st.sampled_from(PATHS), JSON)
def test_hostile_input_is_refused_and_never_raises(path, value):
    obj = job(task(minAvailable=1))
    change(path, value)(obj)
    copied = copy.deepcopy(obj)
    admission.default(copied, None, CLUSTER)
    assert all(cause.message for cause in admission.validate(copied, None, CLUSTER))
    assert isinstance(admission.warn(copied, None, CLUSTER), list)
    admission.validate(copied, defaulted(job()), CLUSTER)
