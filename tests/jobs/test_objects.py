"""The pods and the pod group of a job, key by key (reference: volcano-job §4); whole ones are in tests/golden/jobs."""

from __future__ import annotations

import msgspec
import pytest

from cluster.writes import Create
from jobs.controller import facts, plan, pod_group
from jobs.controller.plan import Known, World
from kube.intake_times import JOB_MADE
from kube.kept_room import RELEASED
from kube.priorities import PriorityClass, PriorityClasses
from kube.resources import POD_GROUPS, PODS
from tests.jobs.builders import container, defaulted, job, task
from tests.tables import cases

NOW = 1_767_225_600_000
UID = "5a1f7f2e-0000-4000-8000-000000000001"
WORLD = World(PriorityClasses(PriorityClass("master-pri", 1000)), {"default": {"data"}})
VOLCANO = "volcano.sh/"

PARTS = {
    "totalPartitions": 2,
    "partitionSize": 2,
    "minPartitions": 1,
    "networkTopology": {"mode": "soft", "highestTierName": "rack"},
}
OF_TEMPLATE = {
    "name": "ignored",
    "labels": {"app": "demo", f"{VOLCANO}job-name": "other"},
    "annotations": {"note": "kept", f"{VOLCANO}task-index": "9"},
}
OF_JOB = {
    "labels": {"team": "a", f"{VOLCANO}preemptable": "true", f"{VOLCANO}cooldown-time": "60s"},
    "annotations": {
        f"{VOLCANO}preemptable": "false",
        f"{VOLCANO}cooldown-time": "90s",
        f"{VOLCANO}revocable-zone": "*",
        f"{VOLCANO}jdb-max-unavailable": "1",
        f"{VOLCANO}jdb-min-available": "2",
    },
}


def stored(written, **status):
    """A job as the store would hold it after admission, and after two runs and a retry."""
    obj = defaulted(written)
    obj["metadata"] |= {"uid": UID, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    obj["status"] = {"state": {"phase": "Pending"}, "version": 2, "retryCount": 1, **status}
    return facts.read_job(msgspec.json.encode(obj))


def made(written, resource=PODS):
    """What is made for a job, by name; pods when the scheduler has let the group in."""
    job_ = stored(written)
    known = Known(job_)
    first = plan.reconcile(known, WORLD, NOW).writes
    group = next(each.object for each in first if isinstance(each, Create) and each.resource == POD_GROUPS)
    known.group = facts.read_group(msgspec.json.encode({**group, "status": {"phase": "Inqueue"}}))
    writes = [*first, *plan.reconcile(known, WORLD, NOW).writes]
    found = [each.object for each in writes if isinstance(each, Create) and each.resource == resource]
    return {each["metadata"]["name"]: each for each in found}


def everything():
    """A job that says all that its pods and its group may take from it."""
    fields = {"topologyPolicy": "best-effort", "partitionPolicy": PARTS}
    main = task("main", 4, **fields)
    main["template"]["metadata"] = OF_TEMPLATE
    topology = {"highestTierAllowed": 2}
    written = job(main, queue="team", priorityClassName="master-pri", networkTopology=topology)
    written["metadata"] |= OF_JOB
    return written


POD = made(everything())["demo-main-3"]
GROUP = next(iter(made(everything(), POD_GROUPS).values()))
OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "demo",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}


def annotation(key, value):
    return pytest.param(key, value, id=key, marks=pytest.mark.shows(f"4.1/annotation {key}"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        annotation(f"{VOLCANO}task-index", "3"),
        annotation(f"{VOLCANO}task-spec", "main"),
        annotation("scheduling.k8s.io/group-name", f"demo-{UID}"),
        annotation(f"{VOLCANO}job-name", "demo"),
        annotation(f"{VOLCANO}queue-name", "team"),
        annotation(f"{VOLCANO}job-version", "2"),
        annotation(f"{VOLCANO}template-uid", "demo-main"),
        annotation(f"{VOLCANO}job-retry-count", "1"),
        annotation(f"{VOLCANO}numa-topology-policy", "best-effort"),
        annotation(f"{VOLCANO}preemptable", "false"),
        annotation(f"{VOLCANO}cooldown-time", "90s"),
        annotation(f"{VOLCANO}revocable-zone", "*"),
        annotation(f"{VOLCANO}jdb-min-available", "2"),
    ],
)
def test_annotation_of_a_pod(key, value):
    assert POD["metadata"]["annotations"][key] == value


def label(key, value):
    return pytest.param(key, value, id=key, marks=pytest.mark.shows(f"4.1/label {key}"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        label(f"{VOLCANO}task-index", "3"),
        label(f"{VOLCANO}job-name", "demo"),
        label(f"{VOLCANO}task-spec", "main"),
        label(f"{VOLCANO}job-namespace", "default"),
        label(f"{VOLCANO}queue-name", "team"),
        label(f"{VOLCANO}preemptable", "true"),
        label(f"{VOLCANO}cooldown-time", "60s"),
        label(f"{VOLCANO}partition-id", "1"),
    ],
)
def test_label_of_a_pod(key, value):
    assert POD["metadata"]["labels"][key] == value


@pytest.mark.shows("4.1/name", "4.1/owner", "1.2/template")
def test_a_pod_has_its_place_in_its_name_and_belongs_to_its_job():
    metadata = POD["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("demo-main-3", "default")
    assert metadata["ownerReferences"] == [OWNER]


@pytest.mark.shows("1.2/template", "4.1/template", "4.1/over the template's")
def test_a_pod_keeps_what_its_template_says_and_its_job_does_not():
    metadata = POD["metadata"]
    assert (metadata["labels"]["app"], metadata["annotations"]["note"]) == ("demo", "kept")
    assert metadata["labels"][f"{VOLCANO}job-name"] == "demo"
    assert metadata["annotations"][f"{VOLCANO}task-index"] == "3"
    assert "team" not in metadata["labels"]


@pytest.mark.shows("4.1/annotation volcano.sh/jdb-min-available")
def test_of_a_jobs_two_bounds_of_disruption_its_pods_get_the_first():
    assert f"{VOLCANO}jdb-max-unavailable" not in POD["metadata"]["annotations"]
    alone = job()
    alone["metadata"]["annotations"] = {f"{VOLCANO}jdb-max-unavailable": "1"}
    assert made(alone)["demo-main-0"]["metadata"]["annotations"][f"{VOLCANO}jdb-max-unavailable"] == "1"


@pytest.mark.shows(
    "4.1/label volcano.sh/partition-id",
    "4.1/annotation volcano.sh/numa-topology-policy",
    "4.1/annotation volcano.sh/preemptable",
    "4.1/label volcano.sh/preemptable",
    "4.1/hostname, subdomain",
)
def test_a_plain_pod_has_nothing_of_this():
    pod = made(job())["demo-main-0"]
    keys = {*pod["metadata"]["labels"], *pod["metadata"]["annotations"]}
    assert keys == {
        "scheduling.k8s.io/group-name",
        *(
            f"{VOLCANO}{name}"
            for name in (
                "job-name", "job-namespace", "job-retry-count", "job-version", "queue-name", "task-index", "task-spec", "template-uid",
            )
        ),
    }  # fmt: skip
    assert not {"hostname", "subdomain", "volumes"} & pod["spec"].keys()


@cases("of_template, of_job, expected", {
    "left out": ({}, {}, ("volcano", None)),
    "the job's": ({}, {"schedulerName": "mine", "priorityClassName": "a"}, ("mine", "a")),
    "the template's": ({"schedulerName": "own", "priorityClassName": "b"},
        {"schedulerName": "mine", "priorityClassName": "a"}, ("own", "b")),
})  # fmt: skip
@pytest.mark.shows("1.1/schedulerName", "4.1/schedulerName", "1.1/priorityClassName", "4.1/priorityClassName")
def test_scheduler_and_priority_class_are_the_templates_or_the_jobs(of_template, of_job, expected):
    spec = made(job(task(pod=of_template), **of_job))["demo-main-0"]["spec"]
    assert (spec["schedulerName"], spec.get("priorityClassName")) == expected


def test_ports_in_the_network_of_the_machine_are_those_of_the_machine():
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    pod = {"hostNetwork": True, "containers": [{**container("a"), "ports": ports}]}
    found = made(job(task(pod=pod)))["demo-main-0"]["spec"]["containers"][0]["ports"]
    assert [each["hostPort"] for each in found] == [80, 81]


@pytest.mark.shows("4.1/hostname, subdomain")
def test_a_hostname_that_is_written_stays():
    spec = made(job(task(pod={"hostname": "h", "subdomain": "s"})))["demo-main-0"]["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("h", "s")


@pytest.mark.shows(
    "1.1/volumes", "1.4/mountPath", "1.4/volumeClaimName", "4.1/volumes", "4.1/one claim twice", "10/Q-23"
)
def test_volumes_are_mounted_in_containers_and_not_in_init_containers():
    pod = {"containers": [container("a"), container("b")], "initContainers": [container("first")]}
    volumes = [{"mountPath": path, "volumeClaimName": "data"} for path in ("/a", "/b")]
    spec = made(job(task(pod=pod), volumes=volumes))["demo-main-0"]["spec"]
    names = [each["name"] for each in spec["volumes"]]
    assert [each["persistentVolumeClaim"] for each in spec["volumes"]] == [{"claimName": "data"}] * 2
    assert all(name.startswith("demo-") and len(name) == len("demo-") + 12 for name in names)
    mounts = [{"name": name, "mountPath": path} for name, path in zip(names, ("/a", "/b"), strict=True)]
    assert [each["volumeMounts"] for each in spec["containers"]] == [mounts, mounts]
    assert "volumeMounts" not in spec["initContainers"][0]


def of_group(key, value, *items):
    return pytest.param(key, value, id=key, marks=pytest.mark.shows(f"4.4/{key}", *items))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        of_group("minMember", 2, "1.1/minAvailable"),
        of_group("minTaskMember", {"main": 2}, "1.2/minAvailable"),
        of_group("minResources", {"count/pods": "2", "pods": "2"}),
        of_group("queue", "team", "1.1/queue"),
        of_group("priorityClassName", "master-pri", "1.1/priorityClassName"),
        of_group("networkTopology", {"mode": "hard", "highestTierAllowed": 2}, "1.1/networkTopology"),
        of_group(
            "subGroupPolicy",
            [
                {
                    "name": "main",
                    "subGroupSize": 2,
                    "minSubGroups": 1,
                    "labelSelector": {"matchLabels": {f"{VOLCANO}task-spec": "main"}},
                    "matchLabelKeys": [f"{VOLCANO}partition-id"],
                    "networkTopology": {"mode": "soft", "highestTierName": "rack"},
                }
            ],
            "1.2/partitionPolicy.partitionSize",
            "1.2/partitionPolicy.minPartitions",
            "1.2/partitionPolicy.networkTopology",
        ),
    ],
)
def test_field_of_the_pod_group(key, value):
    assert GROUP["spec"][key] == value


@pytest.mark.shows("4.4/name", "4.4/labels, annotations")
def test_the_pod_group_has_the_name_and_uid_of_its_job_and_its_labels():
    metadata = GROUP["metadata"]
    assert (metadata["name"], metadata["ownerReferences"]) == (f"demo-{UID}", [OWNER])
    said = {JOB_MADE: metadata["annotations"][JOB_MADE], **OF_JOB["annotations"]}
    assert (metadata["labels"], metadata["annotations"]) == (OF_JOB["labels"], said)


@pytest.mark.shows("1.1/runningEstimate")
def test_the_group_says_how_long_the_job_will_run():
    written = job(runningEstimate="1h30m")
    written["metadata"]["annotations"] = {"a": "b", RELEASED: "said of a group, and not of the next one"}
    (group,) = made(written, POD_GROUPS).values()
    assert group["metadata"]["annotations"] == {
        "a": "b",
        "ui.volcano.sh/running-estimate": "1h30m",
        JOB_MADE: "2026-01-01T00:00:00Z",
    }


@pytest.mark.shows("4.4/networkTopology")
@cases("written, expected", {
    "no tier": ({"mode": "soft"}, {"mode": "soft"}),
    "by name": ({"highestTierName": "rack"}, {"mode": "hard", "highestTierName": "rack"}),
    "by number": ({"highestTierAllowed": 0}, {"mode": "hard", "highestTierAllowed": 0}),
})  # fmt: skip
def test_the_tier_is_named_or_numbered(written, expected):
    (group,) = made(job(networkTopology=written), POD_GROUPS).values()
    assert group["spec"]["networkTopology"] == expected


def asking(name, replicas, cpu, minimum, **pod):
    pod |= {"containers": [container(resources={"requests": {"cpu": str(cpu)}})]}
    return task(name, replicas, pod, minAvailable=minimum)


@cases("tasks, least, cpu", {
    "below: all of the first, then of the next | 4.5/below the tasks' minimums": (
        [asking("a", 3, 1, 3), asking("b", 3, 10, 3)], 4, 13_000),
    "otherwise: each minimum | 4.5/otherwise": ([asking("a", 3, 1, 1), asking("b", 3, 10, 1)], 2, 11_000),
    "otherwise: then the rest in order | 4.5/otherwise": ([asking("a", 3, 1, 1), asking("b", 3, 10, 1)], 5, 23_000),
    "the higher priority first | 4.5/order": ([asking("a", 3, 1, 3), asking("b", 3, 10, 3, priorityClassName="high")],
        4, 31_000),
    "an unknown class is none | 4.5/order": ([asking("a", 3, 1, 3, priorityClassName="none"), asking("b", 3, 10, 3)], 4,
        13_000),
})  # fmt: skip
def test_which_pods_make_the_minimum(tasks, least, cpu):
    assert pod_group.min_resources({"tasks": tasks}, least, PriorityClasses(PriorityClass("high", 10)))["cpu"] == cpu


def test_a_task_without_a_class_has_the_jobs_in_the_minimum_as_its_pods_do():
    spec = {
        "tasks": [asking("a", 1, 1, 0, priorityClassName="low"), asking("b", 1, 10, 0)],
        "priorityClassName": "high",
    }
    classes = PriorityClasses(PriorityClass("low", 1), PriorityClass("high", 10))
    assert pod_group.min_resources(spec, 1, classes)["cpu"] == 10_000


@pytest.mark.shows("4.5/pod")
def test_what_a_pod_is_charged():
    first = container("first", resources={"requests": {"cpu": "4"}})
    asked = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "2"}
    main = container(
        resources={"requests": asked, "limits": {"cpu": "2", **{k: v for k, v in asked.items() if "cpu" not in k}}}
    )
    spec = {"containers": [main], "initContainers": [first], "overhead": {"cpu": "500m"}}
    (group,) = made(job(task(pod=spec)), POD_GROUPS).values()
    assert group["spec"]["minResources"] == {
        "count/pods": "1", "pods": "1",
        "cpu": "4500m", "requests.cpu": "4500m", "limits.cpu": "2500m",
        "memory": "1Gi", "requests.memory": "1Gi", "limits.memory": "1Gi",
        "ephemeral-storage": "2Gi", "requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "2Gi",
        "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
        "nvidia.com/gpu": "2", "requests.nvidia.com/gpu": "2",
    }  # fmt: skip
