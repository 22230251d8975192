from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, indexes, resources, schema
from kube.resource import Index
from tests.tables import cases

OWNED = {
    "ownerReferences": [{"uid": "other"}, {"uid": "u1", "controller": True}],
    "annotations": {"ui.volcano.sh/created-by": "alice", "volcano.sh/queue-name": "q1"},
}


BATCH, FLOW, SCHEDULING = "batch.volcano.sh/v1alpha1", "flow.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"


@pytest.mark.shows("coscheduling 1/group and version", "scheduler 10.1/1")
@cases("resource, api_version, plural, kind, namespaced, has_status_path", {
    "jobs | 0/Job": (resources.JOBS, BATCH, "jobs", "Job", True, True),
    "cron jobs": (resources.CRON_JOBS, BATCH, "cronjobs", "CronJob", True, True),
    "flows": (resources.JOB_FLOWS, FLOW, "jobflows", "JobFlow", True, True),
    "templates": (resources.JOB_TEMPLATES, FLOW, "jobtemplates", "JobTemplate", True, True),
    "commands | 0/Command": (resources.COMMANDS, "bus.volcano.sh/v1alpha1", "commands", "Command", True, False),
    "queues | queues 1.1/Queue": (resources.QUEUES, SCHEDULING, "queues", "Queue", False, True),
    "pod groups | groups 3.1/PodGroup": (resources.POD_GROUPS, SCHEDULING, "podgroups", "PodGroup", True, False),
    "hyper nodes": (resources.HYPER_NODES, "topology.volcano.sh/v1alpha1", "hypernodes", "HyperNode", False, True),
})  # fmt: skip
def test_volcanos_kinds_are_called_as_volcano_calls_them(
    resource, api_version, plural, kind, namespaced, has_status_path
):
    assert (resource.api_version, resource.plural, resource.kind) == (api_version, plural, kind)
    assert (resource.namespaced, resource.status_subresource) == (namespaced, has_status_path)


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda resource: resource.id)
def test_a_resource_is_found_and_its_columns_and_fields_are_what_the_kind_has(resource):
    assert resource.id == resource.plural + (f".{resource.group}" if resource.group else "")
    assert resources.by_id(resource.id) is resources.by_kind(resource.api_version, resource.kind) is resource
    assert resources.by_kind("v2", resource.kind) is None
    assert all(bool(column.path) != bool(column.cell) for column in resource.columns)
    assert len({column.name for column in resource.columns}) == len(resource.columns)
    read = [field for field in resource.fields if field not in resource.computed]
    for path in [*(column.path for column in resource.columns if column.path), *read]:
        obj = value = {}
        *above, last = path.split(".")
        for name in above:
            value = value.setdefault(name, {})
        value[last] = None
        assert schema.unknown_fields(obj, definitions.of(resource)) == []


# As the strategies of Kubernetes' registry have it; Volcano's kinds are custom ones, which all have one.
WITHOUT_GENERATION = {
    "configmaps", "endpoints", "events", "leases.coordination.k8s.io", "limitranges", "namespaces", "nodes",
    "persistentvolumeclaims", "resourcequotas", "secrets", "serviceaccounts", "services",
}  # fmt: skip


def test_some_kinds_have_what_others_have_not():
    assert {kind.id for kind in resources.ALL if not kind.has_generation} == WITHOUT_GENERATION
    assert [kind.id for kind in resources.ALL if kind.default_propagation == "Orphan"] == ["jobs.batch"]
    jobs = [resource.id for resource in resources.served() if resource.plural == "jobs"]
    assert jobs == ["jobs.batch", "jobs.batch.volcano.sh"], "without a group they are those of Kubernetes itself"
    with pytest.raises(KeyError):
        resources.by_id("deployments.apps")


def test_no_name_is_taken_twice_in_a_group_nor_a_short_name_anywhere():
    names = [(each.group, name) for each in resources.ALL for name in {each.plural, each.singular, *each.short_names}]
    assert len(names) == len(set(names))
    short = [name for resource in resources.ALL for name in resource.short_names]
    assert len(short) == len(set(short))
    assert not set(short) & {name for r in resources.ALL for name in (r.plural, r.singular)}


@cases("resource, field, obj, expected", {
    "no pod of a job has succeeded": (resources.BATCH_JOBS, "status.successful", {}, "0"),
    "three pods of a job have": (resources.BATCH_JOBS, "status.successful", {"status": {"succeeded": 3}}, "3"),
    "an absent flag is false": (resources.NODES, "spec.unschedulable", {}, "false"),
    "a flag that is set": (resources.NODES, "spec.unschedulable", {"spec": {"unschedulable": True}}, "true"),
    "a field read at its path": (resources.PODS, "spec.nodeName", {"spec": {"nodeName": "n"}}, "n"),
    "an event's source": (resources.EVENTS, "source", {"source": {"component": "a"}, "reportingComponent": "b"}, "a"),
    "an event's reporter stands in for its source": (resources.EVENTS, "source", {"reportingComponent": "b"}, "b"),
})  # fmt: skip
def test_a_field_selector_compares_texts(resource, field, obj, expected):
    assert field in resource.fields
    assert resource.field_text(obj, field) == expected


@cases("resource, obj, expected", {
    "pod, whose queue is its group's": (resources.PODS,
        {"metadata": OWNED, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
        ("Running", "", "n1", "u1", "alice")),
    "job": (resources.JOBS, {"metadata": OWNED, "spec": {"queue": "q2"}, "status": {"state": {"phase": "Failed"}}},
        ("Failed", "q2", "", "u1", "alice")),
    "cron job": (resources.CRON_JOBS, {"metadata": OWNED}, ("Scheduled", "", "", "u1", "alice")),
    "suspended cron job": (resources.CRON_JOBS, {"spec": {"suspend": True}}, ("Suspended", "", "", "", "")),
    "job flow": (resources.JOB_FLOWS, {"metadata": OWNED, "status": {"state": {"phase": "Succeed"}}},
        ("Succeed", "", "", "u1", "alice")),
    "queue": (resources.QUEUES, {"status": {"state": "Open"}}, ("Open", "", "", "", "")),
    "pod group": (resources.POD_GROUPS, {"spec": {"queue": "q"}, "status": {"phase": "Inqueue"}},
        ("Inqueue", "q", "", "", "")),
    "pod group that names no queue": (resources.POD_GROUPS, {"spec": {}}, ("", "default", "", "", "")),
    "ready node": (resources.NODES, {"status": {"conditions": [{"type": "X"}, {"type": "Ready", "status": "True"}]}},
        ("Ready", "", "", "", "")),
    "node that is not ready": (resources.NODES, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        ("NotReady", "", "", "", "")),
    "node that is silent": (resources.NODES, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        ("Unknown", "", "", "", "")),
    "node that never spoke": (resources.NODES, {}, ("Unknown", "", "", "", "")),
    "finished job of batch/v1": (resources.BATCH_JOBS,
        {"status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}},
        ("Complete", "", "", "", "")),
    "resumed job of batch/v1": (resources.BATCH_JOBS,
        {"status": {"conditions": [{"type": "Suspended", "status": "False"}]}}, ("", "", "", "", "")),
    "event": (resources.EVENTS, {"type": "Warning"}, ("Warning", "", "", "", "")),
    "config map": (resources.CONFIGMAPS, {"metadata": OWNED}, ("", "", "", "u1", "alice")),
    "nulls": (resources.PODS, {"metadata": None, "spec": None, "status": None}, ("", "", "", "", "")),
    "nulls inside": (resources.PODS,
        {"metadata": {"annotations": None, "ownerReferences": None}, "status": {"phase": None}}, ("", "", "", "", "")),
})  # fmt: skip
def test_index(resource, obj, expected):
    assert resource.index(obj) == Index(*expected)


@given(st.sampled_from(resources.ALL), st.none() | st.integers() | st.text() | st.lists(st.none()))
def test_an_index_is_made_of_texts_whatever_the_parts_are(resource, part):
    index = resource.index({"metadata": part if isinstance(part, dict) else {}, "spec": part, "status": part})
    assert all(isinstance(value, str) for value in index)


def waits(reason, kind="containerStatuses"):
    return {kind: [{"name": "a", "state": {"waiting": {"reason": reason}}}]}


@cases("status, trouble", {
    "new": ({}, ""),
    "runs": ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, ""),
    "starts": (waits("ContainerCreating"), ""),
    "is initialized": (waits("PodInitializing"), ""),
    "starts again and again": (waits("CrashLoopBackOff"), "CrashLoop"),
    "does not get initialized": (waits("CrashLoopBackOff", "initContainerStatuses"), "CrashLoop"),
    "a reason that is no word": (waits("X" * 100), "ContainerWaits"),
    "null runs": ({"phase": "Running", "containerStatuses": [{"state": {"running": None}}]}, "ContainersEnded"),
    "has ended": ({**waits("CrashLoopBackOff"), "phase": "Failed"}, ""),
    "null": ({"containerStatuses": [{"state": {"waiting": None}}]}, ""),
})  # fmt: skip
def test_trouble_of_a_pod_is_why_a_container_waits(status, trouble):
    assert indexes.pod({"metadata": {}, "status": status}).trouble == trouble
