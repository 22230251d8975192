"""Kinds that users define: stored, changed, collected, and gone with their definition."""

from __future__ import annotations

from copy import deepcopy

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.api import custom_kinds
from cluster.controllers import namespaces
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Group, Patch, store
from kube import conversion, resources
from kube.errors import Invalid, MethodNotAllowed, NotFound
from kube.resources import CONFIGMAPS, EVENTS, NAMESPACES
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from tests import builders
from tests.kube.custom import samples

ID = "crontabs.stable.example.com"


def define(crd=samples.CRON_TAB):
    return api.create(SYSTEM, DEFINITIONS, deepcopy(crd))


def cron_tabs():
    return resources.by_path("stable.example.com", "v1", "crontabs")


def cron_tab(name="a", *, metadata=None, **spec):
    obj = samples.cron_tab(name, **spec)
    return {**obj, "metadata": {**obj["metadata"], **(metadata or {})}}


def create(name="a", **fields):
    return api.create(SYSTEM, cron_tabs(), cron_tab(name, **fields))


def patch(change, **options):
    return api.patch(SYSTEM, cron_tabs(), "default", "a", change, **options)


def forget():
    """Be a process that has not heard of any definition."""
    custom_kinds._known.clear()
    resources.set_custom(())


def conditions(name=ID):
    status = store.get(DEFINITIONS, "", name).object["status"]
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


def is_gone(name=ID):
    with pytest.raises(NotFound):
        store.get(DEFINITIONS, "", name)
    return True


def test_definition_is_served_at_once_also_by_another_process():
    stored = define()
    assert conditions() == {"NamesAccepted": "True", "Established": "True"}
    assert stored.object["status"]["storedVersions"] == ["v1"]
    assert cron_tabs() in resources.served()
    assert resources.by_kind("stable.example.com/v1", "CronTab") == cron_tabs()
    forget()
    assert resources.by_id(ID).kind == "CronTab"
    with pytest.raises(KeyError):
        resources.by_id("things.example.com")


@pytest.mark.parametrize("name", samples.ALL)
def test_every_definition_of_the_samples_is_served(name):
    assert resources.by_id(define(samples.ALL[name]).name).served


def test_object_gets_defaults_loses_unknown_fields_and_is_refused_where_it_breaks_its_schema():
    define()
    sent = {**cron_tab(hue="green"), "status": {"replicas": "many"}}
    found = api.create(SYSTEM, cron_tabs(), sent).object
    assert found["spec"] == {"cronSpec": "* * * * */5", "image": "busybox", "replicas": 1}
    assert "status" not in found
    with pytest.raises(Invalid) as refusal:
        create(cronSpec=5, replicas=20)
    assert refusal.value.message == (
        'CronTab.stable.example.com "a" is invalid: [spec.cronSpec: Invalid value: "integer": spec.cronSpec in body'
        ' must be of type string: "integer", spec.replicas: Invalid value: 20: spec.replicas in body should be less'
        " than or equal to 10]"
    )


def test_generation_counts_changes_outside_metadata_and_status_which_has_a_path_of_its_own():
    define()
    created = create()
    labelled = patch({"metadata": {"labels": {"a": "b"}}})
    changed = patch({"status": {"replicas": 3}, "spec": {"replicas": 3}})
    assert "status" not in changed.object
    found = patch({"status": {"replicas": 3}, "spec": {"replicas": 9}}, subresource="status")
    assert [one.object["metadata"]["generation"] for one in (labelled, changed, found)] == [1, 2, 2]
    assert (found.object["status"], found.object["spec"]["replicas"]) == ({"replicas": 3}, 3)
    assert found.uid == created.uid
    with pytest.raises(Invalid, match=r"status.replicas in body must be of type integer"):
        patch({"status": {"replicas": "x"}}, subresource="status")


def test_versions_share_one_content():
    define(
        samples.definition(versions=[samples.version("v1"), samples.version("v2", storage=False)], scope="Namespaced")
    )
    second = resources.by_path("stable.example.com", "v2", "crontabs")
    stored = api.create(SYSTEM, second, {**cron_tab(), "apiVersion": "stable.example.com/v2"})
    assert stored.object["apiVersion"] == "stable.example.com/v1"
    changed = api.patch(SYSTEM, second, "default", "a", {"spec": {"x": 1}})
    assert (changed.object["apiVersion"], changed.object["metadata"]["generation"]) == ("stable.example.com/v1", 2)
    assert api.update(SYSTEM, second, conversion.shown(second, changed.object)).revision == changed.revision


def test_definition_takes_its_objects_with_it_when_they_are_let_go(controllers):
    define()
    create("free")
    create("a", metadata={"finalizers": ["example.com/hold"]})
    api.delete(SYSTEM, DEFINITIONS, "", ID)
    with pytest.raises(MethodNotAllowed, match="create not allowed while custom resource definition is terminating"):
        create("c")
    for runner in controllers.runners:
        for _ in range(4):
            runner.step()
    assert conditions()["Terminating"] == "True"
    assert [stored.name for stored in store.find(cron_tabs())] == ["a"]
    patch({"metadata": {"finalizers": None}})
    controllers.settle()
    assert is_gone()
    assert cron_tabs() is None
    assert store.changes(0)[-1].verb == "DELETED"


def test_what_a_definition_leaves_behind_goes_after_it(controllers):
    define()
    create()
    kind = cron_tabs()
    store.commit([Group([Delete(DEFINITIONS, "", ID), Patch(DEFINITIONS, "", ID, {"metadata": {"finalizers": None}})])])
    controllers.settle()
    assert store.find(kind) == []


def test_new_version_becomes_the_one_in_which_objects_lie(controllers):
    new = deepcopy(define(samples.definition()).object)
    new["spec"]["versions"] = [samples.version("v1", storage=False), samples.version("v2")]
    api.update(SYSTEM, DEFINITIONS, new)
    controllers.settle()
    assert store.get(DEFINITIONS, "", ID).object["status"]["storedVersions"] == ["v1", "v2"]
    assert resources.by_id(ID).version == "v2"


def test_name_that_becomes_free_is_given_to_who_waits_for_it(controllers):
    def others():
        return resources.by_path("stable.example.com", "v1", "others")

    define(samples.definition(shortNames=["ct"]))
    define(samples.definition("others", kind="Other", shortNames=["ct"]))
    assert conditions("others.stable.example.com")["NamesAccepted"] == "False"
    assert others() is None
    api.delete(SYSTEM, DEFINITIONS, "", ID)
    controllers.settle()
    assert conditions("others.stable.example.com")["Established"] == "True"
    assert others().short_names == ("ct",)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_dependents_of_a_custom_object_go_with_it(controllers, propagation):
    define()
    owner = create("owner")
    owners = {"ownerReferences": [builders.owner(owner.object)]}
    api.create(SYSTEM, CONFIGMAPS, builders.of(CONFIGMAPS, "m", **owners))
    create("child", metadata=owners)
    controllers.settle()
    api.delete(SYSTEM, cron_tabs(), "default", "owner", propagation=propagation)
    left = [stored.name for stored in store.find(cron_tabs())]
    assert left == (["child", "owner"] if propagation == "Foreground" else ["child"])
    controllers.settle()
    assert store.find(CONFIGMAPS) == store.find(cron_tabs()) == []


def test_objects_of_a_kind_that_nobody_knows_are_collected_too(controllers):
    define()
    kind = cron_tabs()
    owner = api.create(SYSTEM, CONFIGMAPS, builders.config_map("m"))
    create("child", metadata={"ownerReferences": [builders.owner(owner.object)]})
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


def test_custom_objects_go_with_their_namespace():
    define()
    api.create(SYSTEM, NAMESPACES, {"metadata": {"name": "work"}})
    create("inside", metadata={"namespace": "work"})
    create("outside")
    api.delete(SYSTEM, NAMESPACES, "", "work")
    forget()
    runner = Runner(registry.get("namespaces"), 0, namespaces.NamespaceController())
    while runner.step():
        pass
    assert [found.name for found in store.find(cron_tabs())] == ["outside"]
    assert "work" not in [found.name for found in store.find(NAMESPACES)]


def test_definitions_that_cannot_be_read_or_are_built_in_harm_nobody():
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    broken, crd = deepcopy(samples.CRON_TAB), samples.definition("jobs", "batch.volcano.sh", "Job")
    broken["spec"]["versions"] = [{"name": 5, "served": True, "storage": True, "schema": 7, "subresources": []}]
    with pytest.raises(Invalid, match="built into the cluster"):
        define(crd)
    store.write(Create(DEFINITIONS, {**broken, "status": {**established, "acceptedNames": 3}}))
    store.write(Create(DEFINITIONS, {**crd, "status": {**established, "acceptedNames": crd["spec"]["names"]}}))
    define(samples.TASK_FLOW)
    custom_kinds.reload()
    assert resources.by_path("flow.example.com", "v1alpha1", "taskflows") is not None
    assert resources.by_id("jobs.batch.volcano.sh") is resources.JOBS


def test_events_may_be_about_custom_objects():
    define()
    found = create()
    about = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "name": "a", "uid": found.uid}
    what = {"involvedObject": about, "reason": "Ran", "message": "it ran", "type": "Normal"}
    made = api.create(SYSTEM, EVENTS, builders.of(EVENTS, "e", what))
    assert made.object["involvedObject"]["kind"] == "CronTab"
