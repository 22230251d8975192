"""Kinds that users define: stored, changed, collected, and gone with their definition (tests/golden/cluster/custom.txt)."""

from copy import deepcopy

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.api import custom_kinds
from cluster.consumers.consumer import Runner
from cluster.controllers import definitions, garbage, namespaces
from cluster.runtime import registry
from cluster.store import Create, Delete, Group, Patch, store
from kube import conversion, resources
from kube.errors import Invalid
from kube.resources import CONFIGMAPS
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from tests import builders
from tests.blocks import blocks
from tests.cluster.story import Story
from tests.kube import samples

ID = "crontabs.stable.example.com"
CONTROLLERS = {
    "definitions": definitions.Definitions, "garbage": garbage.GarbageCollector, "namespaces": namespaces.NamespaceController,
}  # fmt: skip


def forget():
    """Be a process that has not heard of any definition."""
    custom_kinds._definitions.clear()
    resources.set_custom(())


@pytest.fixture(autouse=True)
def cluster(transactional_db):
    """The namespace default; afterwards nobody knows the kinds that the test defined."""
    store.write(Create(resources.NAMESPACES, builders.namespace()))
    custom_kinds.reload()
    yield
    forget()


class Forgetful(Story):
    """In which those who take the places of others have not heard of any definition."""

    def restart(self):
        forget()
        super().restart()


@pytest.fixture
def story(monkeypatch, moved_clock):
    """With the controllers, of which no timer waits, at a moment that is always the same."""
    monkeypatch.setattr(definitions, "RECHECK_MS", 0)
    moved_clock.us = 1_800_000_000_000_000
    return Forgetful(moved_clock, lambda: [Runner(registry.get(name), 0, made()) for name, made in CONTROLLERS.items()])


def define(crd=samples.CRON_TAB):
    return api.create(SYSTEM, DEFINITIONS, deepcopy(crd))


def cron_tabs():
    return resources.by_path("stable.example.com", "v1", "crontabs")


def create(name="a", **metadata):
    obj = samples.cron_tab(name)
    return api.create(SYSTEM, cron_tabs(), {**obj, "metadata": {**obj["metadata"], **metadata}})


@blocks("custom", folder="cluster")
def test_what_is_done_to_objects_of_custom_kinds_and_what_comes_of_it(block, golden, story):
    golden(block, story.tell)


def test_definitions_are_served_at_once_also_by_another_process():
    define()
    assert cron_tabs() in resources.served()
    assert resources.by_kind("stable.example.com/v1", "CronTab") == cron_tabs()
    forget()
    assert resources.by_id(ID).kind == "CronTab"
    with pytest.raises(KeyError):
        resources.by_id("things.example.com")
    api.delete(SYSTEM, DEFINITIONS, "", ID)
    for sample in samples.ALL.values():
        if sample is not samples.CRON_TAB:
            assert resources.by_id(define(sample).name).served


def test_versions_share_one_content():
    versions = [samples.version("v1"), samples.version("v2", storage=False)]
    define(samples.definition(versions=versions, scope="Namespaced"))
    second = resources.by_path("stable.example.com", "v2", "crontabs")
    stored = api.create(SYSTEM, second, {**samples.cron_tab("a"), "apiVersion": "stable.example.com/v2"})
    assert stored.object["apiVersion"] == "stable.example.com/v1"
    changed = api.patch(SYSTEM, second, "default", "a", {"spec": {"x": 1}})
    assert (changed.object["apiVersion"], changed.object["metadata"]["generation"]) == ("stable.example.com/v1", 2)
    assert api.update(SYSTEM, second, conversion.converted(second, changed.object)).revision == changed.revision


def test_what_a_definition_leaves_behind_goes_after_it(story):
    define()
    create()
    kind = cron_tabs()
    store.commit([Group([Delete(DEFINITIONS, "", ID), Patch(DEFINITIONS, "", ID, {"metadata": {"finalizers": None}})])])
    story.settle()
    assert store.find(kind) == []


def test_objects_of_a_kind_that_nobody_knows_are_collected_too(story):
    define()
    kind = cron_tabs()
    owner = api.create(SYSTEM, CONFIGMAPS, builders.config_map("m"))
    create("child", ownerReferences=[builders.owner(owner.object)])
    story.settle()
    resources.set_source(lambda: None)
    resources.set_custom(())
    try:
        api.delete(SYSTEM, CONFIGMAPS, "default", "m")
        story.runners[1].step()
        story.runners[1].step()
    finally:
        resources.set_source(custom_kinds.look_again)
    assert store.find(kind) == []


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
