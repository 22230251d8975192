"""Kinds that users define: stored, changed, collected, and gone with their definition."""

from __future__ import annotations

from copy import deepcopy

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.api import custom_kinds
from cluster.store import Create, Delete, Group, Patch, store
from kube import conversion, resources
from kube.errors import Invalid, MethodNotAllowed, NotFound
from kube.resources import CONFIGMAPS, EVENTS
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from tests.kube.custom import samples

CRON_TABS = ("stable.example.com", "v1", "crontabs")
ID = "crontabs.stable.example.com"


def define(crd=samples.CRON_TAB):
    return api.create(SYSTEM, DEFINITIONS, deepcopy(crd))


def cron_tabs():
    found = resources.by_path(*CRON_TABS)
    assert found is not None
    return found


def create(name="a", **spec):
    return api.create(SYSTEM, cron_tabs(), samples.cron_tab(name, **spec))


def conditions(name=ID):
    status = store.get(DEFINITIONS, "", name).object["status"]
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


def test_definition_is_served_at_once():
    stored = define()
    assert conditions() == {"NamesAccepted": "True", "Established": "True"}
    assert stored.object["status"]["storedVersions"] == ["v1"]
    assert cron_tabs() in resources.served()
    assert resources.by_kind("stable.example.com/v1", "CronTab") == cron_tabs()


@pytest.mark.parametrize("name", samples.ALL)
def test_every_definition_of_the_samples_is_served(name):
    stored = define(samples.ALL[name])
    assert resources.by_id(stored.name).served


def test_object_gets_defaults_and_loses_unknown_fields():
    define()
    found = create(hue="green").object
    assert found["spec"] == {"cronSpec": "* * * * */5", "image": "busybox", "replicas": 1}


def test_object_that_breaks_its_schema_is_refused():
    define()
    with pytest.raises(Invalid) as refusal:
        create(cronSpec=5, replicas=20)
    assert refusal.value.message == (
        'CronTab.stable.example.com "a" is invalid: [spec.cronSpec: Invalid value: "integer": spec.cronSpec in body'
        ' must be of type string: "integer", spec.replicas: Invalid value: 20: spec.replicas in body should be less'
        " than or equal to 10]"
    )


def test_update_says_which_version_it_replaces():
    define()
    found = deepcopy(create().object)
    del found["metadata"]["resourceVersion"]
    with pytest.raises(Invalid, match="resourceVersion: Invalid value: 0x0: must be specified for an update"):
        api.update(SYSTEM, cron_tabs(), found)


def test_generation_counts_changes_outside_metadata_and_status():
    define()
    create()
    labelled = api.patch(SYSTEM, cron_tabs(), "default", "a", {"metadata": {"labels": {"a": "b"}}})
    changed = api.patch(SYSTEM, cron_tabs(), "default", "a", {"spec": {"replicas": 2}})
    assert [one.object["metadata"]["generation"] for one in (labelled, changed)] == [1, 2]


def test_status_has_a_path_of_its_own():
    define()
    change = {"status": {"replicas": 3}, "spec": {"replicas": 3}}
    created = create()
    assert "status" not in api.patch(SYSTEM, cron_tabs(), "default", "a", change).object
    found = api.patch(SYSTEM, cron_tabs(), "default", "a", {**change, "spec": {"replicas": 9}}, subresource="status")
    assert (found.object["status"], found.object["spec"]["replicas"]) == ({"replicas": 3}, 3)
    assert found.uid == created.uid
    with pytest.raises(Invalid, match=r"status.replicas in body must be of type integer"):
        api.patch(SYSTEM, cron_tabs(), "default", "a", {"status": {"replicas": "x"}}, subresource="status")


def test_new_object_brings_no_status():
    define()
    obj = {**samples.cron_tab("a"), "status": {"replicas": "many"}}
    found = api.create(SYSTEM, cron_tabs(), obj)
    assert "status" not in found.object


def test_versions_share_one_content():
    crd = samples.definition(versions=[samples.version("v1"), samples.version("v2", storage=False)], scope="Namespaced")
    define(crd)
    second = resources.by_path("stable.example.com", "v2", "crontabs")
    obj = {**samples.cron_tab("a"), "apiVersion": "stable.example.com/v2"}
    stored = api.create(SYSTEM, second, obj)
    assert stored.object["apiVersion"] == "stable.example.com/v1"
    changed = api.patch(SYSTEM, second, "default", "a", {"spec": {"x": 1}})
    assert (changed.object["apiVersion"], changed.object["metadata"]["generation"]) == ("stable.example.com/v1", 2)
    read = conversion.shown(second, changed.object)
    assert api.update(SYSTEM, second, read).revision == changed.revision


def test_definition_takes_its_objects_with_it(controllers):
    define()
    create("a")
    create("b")
    api.delete(SYSTEM, DEFINITIONS, "", ID)
    with pytest.raises(MethodNotAllowed, match="create not allowed while custom resource definition is terminating"):
        create("c")
    controllers.settle()
    with pytest.raises(NotFound):
        store.get(DEFINITIONS, "", ID)
    assert resources.by_path(*CRON_TABS) is None
    assert store.changes(0)[-1].verb == "DELETED"


def test_definition_waits_for_objects_that_wait(controllers):
    define()
    held = samples.cron_tab("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(SYSTEM, cron_tabs(), held)
    api.delete(SYSTEM, DEFINITIONS, "", ID)
    for runner in controllers.runners:
        for _ in range(4):
            runner.step()
    assert conditions()["Terminating"] == "True"
    api.patch(SYSTEM, cron_tabs(), "default", "a", {"metadata": {"finalizers": None}})
    controllers.settle()
    with pytest.raises(NotFound):
        store.get(DEFINITIONS, "", ID)


def test_what_a_definition_leaves_behind_goes_after_it(controllers):
    define()
    create("a")
    kind = cron_tabs()
    store.commit([Group([Delete(DEFINITIONS, "", ID), Patch(DEFINITIONS, "", ID, {"metadata": {"finalizers": None}})])])
    controllers.settle()
    assert store.find(kind) == []


def test_new_version_becomes_the_one_in_which_objects_lie(controllers):
    stored = define(samples.definition())
    new = deepcopy(stored.object)
    new["spec"]["versions"] = [samples.version("v1", storage=False), samples.version("v2")]
    api.update(SYSTEM, DEFINITIONS, new)
    controllers.settle()
    assert store.get(DEFINITIONS, "", ID).object["status"]["storedVersions"] == ["v1", "v2"]
    assert resources.by_id(ID).version == "v2"


def test_name_that_becomes_free_is_given_to_who_waits_for_it(controllers):
    define(samples.definition(shortNames=["ct"]))
    other = samples.definition("others", kind="Other", shortNames=["ct"])
    define(other)
    assert conditions("others.stable.example.com")["NamesAccepted"] == "False"
    assert resources.by_path("stable.example.com", "v1", "others") is None
    api.delete(SYSTEM, DEFINITIONS, "", ID)
    controllers.settle()
    assert conditions("others.stable.example.com")["Established"] == "True"
    assert resources.by_path("stable.example.com", "v1", "others").short_names == ("ct",)


def reference(owner):
    return {
        "apiVersion": owner.object["apiVersion"],
        "kind": owner.object["kind"],
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


def test_dependents_of_a_custom_object_go_after_it(controllers):
    define()
    owner = create("owner")
    metadata = {"name": "m", "namespace": "default", "ownerReferences": [reference(owner)]}
    api.create(SYSTEM, CONFIGMAPS, {"metadata": metadata})
    dependent = samples.cron_tab("child")
    dependent["metadata"]["ownerReferences"] = [reference(owner)]
    api.create(SYSTEM, cron_tabs(), dependent)
    controllers.settle()
    api.delete(SYSTEM, cron_tabs(), "default", "owner")
    controllers.settle()
    assert store.find(CONFIGMAPS) == []
    assert store.find(cron_tabs()) == []


def test_owner_that_waits_for_its_dependents_may_be_custom(controllers):
    define()
    owner = create("owner")
    metadata = {"name": "m", "namespace": "default", "ownerReferences": [reference(owner)]}
    api.create(SYSTEM, CONFIGMAPS, {"metadata": metadata})
    api.delete(SYSTEM, cron_tabs(), "default", "owner", propagation="Foreground")
    assert store.find(cron_tabs()) != []
    controllers.settle()
    assert (store.find(CONFIGMAPS), store.find(cron_tabs())) == ([], [])


def test_objects_of_a_kind_that_nobody_knows_are_collected_too(controllers):
    define()
    kind = cron_tabs()
    owner = api.create(SYSTEM, CONFIGMAPS, {"metadata": {"name": "m", "namespace": "default"}})
    child = samples.cron_tab("child")
    child["metadata"]["ownerReferences"] = [reference(owner)]
    api.create(SYSTEM, kind, child)
    controllers.settle()
    resources.set_source(lambda: None)
    resources.set_custom(())
    try:
        api.delete(SYSTEM, CONFIGMAPS, "default", "m")
        controllers.runners[1].step()
        controllers.runners[1].step()
    finally:
        resources.set_source(custom_kinds.look_again)
    assert store.find(kind) == []


def test_another_process_finds_a_new_kind_when_it_meets_it():
    define()
    custom_kinds._known.clear()
    resources.set_custom(())
    assert resources.by_id(ID).kind == "CronTab"
    with pytest.raises(KeyError):
        resources.by_id("things.example.com")


def test_definition_that_cannot_be_read_harms_nobody():
    broken = deepcopy(samples.CRON_TAB)
    broken["spec"]["versions"] = [{"name": 5, "served": True, "storage": True, "schema": 7, "subresources": []}]
    broken["status"] = {"conditions": [{"type": "Established", "status": "True"}], "acceptedNames": 3}
    store.write(Create(DEFINITIONS, broken))
    define(samples.TASK_FLOW)
    assert resources.by_path("flow.example.com", "v1alpha1", "taskflows") is not None


def test_built_in_kinds_stay_whatever_is_defined():
    crd = samples.definition("jobs", "batch.volcano.sh", "Job")
    with pytest.raises(Invalid, match="built into the cluster"):
        define(crd)
    crd["status"] = {"conditions": [{"type": "Established", "status": "True"}], "acceptedNames": crd["spec"]["names"]}
    store.write(Create(DEFINITIONS, crd))
    custom_kinds.reload()
    assert resources.by_id("jobs.batch.volcano.sh") is resources.JOBS


def test_flow_is_checked_by_its_schema():
    define(samples.TASK_FLOW)
    kind = resources.by_path("flow.example.com", "v1alpha1", "taskflows")
    flow = {
        "metadata": {"name": "f", "namespace": "default"},
        "spec": {"jobRetainPolicy": "keep", "flows": [{"name": ""}, {}]},
    }
    with pytest.raises(Invalid) as refusal:
        api.create(SYSTEM, kind, flow)
    assert [cause.field for cause in refusal.value.causes] == [
        "spec.jobRetainPolicy",
        "spec.flows[0].name",
        "spec.flows[1].name",
    ]


def test_events_may_be_about_custom_objects():
    define()
    found = create()
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "name": "a", "uid": found.uid},
        "reason": "Ran",
        "message": "it ran",
        "type": "Normal",
    }
    assert api.create(SYSTEM, EVENTS, event).object["involvedObject"]["kind"] == "CronTab"


def test_warning_tells_of_rules_that_are_not_evaluated():
    told = []
    api.create(SYSTEM, DEFINITIONS, deepcopy(samples.WORKLOAD), warn=told.append)
    assert len(told) == 1
    assert "not evaluated" in told[0]
