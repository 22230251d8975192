from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, resources, schema
from kube.kinds import core
from kube.resource import Index
from tests.tables import cases

OWNED = {
    "ownerReferences": [{"uid": "other"}, {"uid": "u1", "controller": True}],
    "annotations": {"ui.volcano.sh/created-by": "alice", "volcano.sh/queue-name": "q1"},
}


@pytest.mark.shows("coscheduling 1/group and version", "scheduler 10.1/1")
@pytest.mark.parametrize(
    ("resource", "name", "api_version", "kind"),
    [
        (resources.PODS, "pods", "v1", "Pod"),
        (resources.NODES, "nodes", "v1", "Node"),
        (resources.NAMESPACES, "namespaces", "v1", "Namespace"),
        (resources.EVENTS, "events", "v1", "Event"),
        (resources.CONFIGMAPS, "configmaps", "v1", "ConfigMap"),
        (resources.SECRETS, "secrets", "v1", "Secret"),
        (resources.SERVICES, "services", "v1", "Service"),
        (resources.CLAIMS, "persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
        (resources.PRIORITY_CLASSES, "priorityclasses.scheduling.k8s.io", "scheduling.k8s.io/v1", "PriorityClass"),
        (resources.ENDPOINTS, "endpoints", "v1", "Endpoints"),
        (resources.SERVICE_ACCOUNTS, "serviceaccounts", "v1", "ServiceAccount"),
        (resources.RESOURCE_QUOTAS, "resourcequotas", "v1", "ResourceQuota"),
        (resources.LIMIT_RANGES, "limitranges", "v1", "LimitRange"),
        (resources.NETWORK_POLICIES, "networkpolicies.networking.k8s.io", "networking.k8s.io/v1", "NetworkPolicy"),
        (resources.DISRUPTION_BUDGETS, "poddisruptionbudgets.policy", "policy/v1", "PodDisruptionBudget"),
        (resources.BATCH_JOBS, "jobs.batch", "batch/v1", "Job"),
        (
            resources.CUSTOM_RESOURCE_DEFINITIONS,
            "customresourcedefinitions.apiextensions.k8s.io",
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
        ),
        (resources.LEASES, "leases.coordination.k8s.io", "coordination.k8s.io/v1", "Lease"),
        (resources.JOBS, "jobs.batch.volcano.sh", "batch.volcano.sh/v1alpha1", "Job"),
        (resources.CRON_JOBS, "cronjobs.batch.volcano.sh", "batch.volcano.sh/v1alpha1", "CronJob"),
        (resources.JOB_FLOWS, "jobflows.flow.volcano.sh", "flow.volcano.sh/v1alpha1", "JobFlow"),
        (resources.JOB_TEMPLATES, "jobtemplates.flow.volcano.sh", "flow.volcano.sh/v1alpha1", "JobTemplate"),
        (resources.COMMANDS, "commands.bus.volcano.sh", "bus.volcano.sh/v1alpha1", "Command"),
        (resources.QUEUES, "queues.scheduling.volcano.sh", "scheduling.volcano.sh/v1beta1", "Queue"),
        (resources.POD_GROUPS, "podgroups.scheduling.volcano.sh", "scheduling.volcano.sh/v1beta1", "PodGroup"),
        (resources.HYPER_NODES, "hypernodes.topology.volcano.sh", "topology.volcano.sh/v1alpha1", "HyperNode"),
    ],
)
def test_a_resource_is_found_by_id_and_by_kind(resource, name, api_version, kind):
    assert resources.by_id(name) is resource
    assert resources.by_kind(api_version, kind) is resource
    assert (resource.id, resource.api_version, resource.kind) == (name, api_version, kind)


def test_what_is_not_there_is_not_found():
    assert resources.by_kind("v2", "Pod") is None
    with pytest.raises(KeyError):
        resources.by_id("deployments.apps")


def test_no_name_is_taken_twice_in_a_group_nor_a_short_name_anywhere():
    names = [
        (resource.group, name)
        for resource in resources.ALL
        for name in {resource.plural, resource.singular, *resource.short_names}
    ]
    assert len(names) == len(set(names))
    short = [name for resource in resources.ALL for name in resource.short_names]
    assert len(short) == len(set(short))
    assert not set(short) & {name for r in resources.ALL for name in (r.plural, r.singular)}


def test_jobs_without_a_group_are_those_of_kubernetes_itself():
    jobs = [resource.id for resource in resources.served() if resource.plural == "jobs"]
    assert jobs == ["jobs.batch", "jobs.batch.volcano.sh"]


@pytest.mark.shows("0/Job", "0/Command")
def test_jobs_and_commands_are_called_as_volcano_calls_them():
    told = [(each.kind, each.plural, each.api_version) for each in (resources.JOBS, resources.COMMANDS)]
    assert told == [("Job", "jobs", "batch.volcano.sh/v1alpha1"), ("Command", "commands", "bus.volcano.sh/v1alpha1")]
    assert {"vcjob", "vj"} <= {*resources.JOBS.short_names}
    assert [(each.namespaced, each.status_subresource) for each in (resources.JOBS, resources.COMMANDS)] == [
        (True, True),
        (True, False),
    ]


@pytest.mark.shows("queues 1.1/Queue", "groups 3.1/PodGroup")
def test_a_pod_group_has_no_status_subresource_and_a_queue_no_namespace():
    assert not resources.POD_GROUPS.status_subresource
    assert not resources.QUEUES.namespaced
    assert resources.JOBS.status_subresource


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda resource: resource.id)
def test_columns_and_fields_name_what_the_kind_has(resource):
    read = [field for field in resource.fields if field not in resource.computed]
    for path in [*(column.path for column in resource.columns if column.path), *read]:
        obj = value = {}
        *above, last = path.split(".")
        for name in above:
            value = value.setdefault(name, {})
        value[last] = None
        assert schema.unknown_fields(obj, definitions.of(resource)) == []


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


def test_a_deleted_job_of_kubernetes_leaves_its_pods_and_others_take_them_along():
    orphaning = [resource.id for resource in resources.ALL if resource.default_propagation == "Orphan"]
    assert orphaning == ["jobs.batch"]


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda resource: resource.id)
def test_each_column_has_a_path_or_a_cell(resource):
    assert all(bool(column.path) != bool(column.cell) for column in resource.columns)
    assert len({column.name for column in resource.columns}) == len(resource.columns)


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


def test_acronyms_are_written_as_kubernetes_does():
    status = core.PodStatus(pod_ip="a", host_ip="b")
    assert msgspec.to_builtins(status) == {"podIP": "a", "hostIP": "b"}


# As the strategies of Kubernetes' registry have it; Volcano's kinds are custom ones, which all have one.
WITHOUT_GENERATION = {
    "configmaps", "endpoints", "events", "leases.coordination.k8s.io", "limitranges", "namespaces", "nodes",
    "persistentvolumeclaims", "resourcequotas", "secrets", "serviceaccounts", "services",
}  # fmt: skip


def test_kinds_without_a_generation_are_those_of_kubernetes():
    assert {kind.id for kind in resources.ALL if not kind.has_generation} == WITHOUT_GENERATION
