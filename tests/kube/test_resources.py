from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, indexes, resources, schema
from tests.tables import cases, parts

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


@parts("kube/indexes")
def test_a_stored_object_is_found_by(part):
    """Columns of its own, the texts of fields in a selector, and of a pod its trouble."""

    def found(text):
        if part.title == "trouble of pods":
            return indexes.pod({"metadata": {}, "status": yaml.safe_load(text)}).trouble
        name, text = text.split(" ", 1)
        resource = resources.by_id(name)
        if part.title == "indexes":
            return list(resource.index(yaml.safe_load(text)))
        field, text = text.split(" ", 1)
        assert field in resource.fields
        return resource.field_text(yaml.safe_load(text), field)

    part.check(found)


@given(st.sampled_from(resources.ALL), st.none() | st.integers() | st.text() | st.lists(st.none()))
def test_an_index_is_made_of_texts_whatever_the_parts_are(resource, part):
    index = resource.index({"metadata": part if isinstance(part, dict) else {}, "spec": part, "status": part})
    assert all(isinstance(value, str) for value in index)
