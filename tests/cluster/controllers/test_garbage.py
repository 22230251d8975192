"""What belongs to something that is gone is deleted, and nothing else."""

from __future__ import annotations

import pytest

from cluster.controllers import garbage
from cluster.store import Create, Delete, Group, Patch, store
from kube.resources import CONFIGMAPS, EVENTS, JOBS, NODES, PODS, QUEUES
from tests import builders
from tests.tables import cases

from . import running
from .running import settle

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def collector():
    return started()


def started(consumer=None):
    return running.started("garbage", consumer or garbage.GarbageCollector())


def job(name="owner"):
    return store.write(Create(JOBS, builders.job(name)))[0]


def family():
    """Make two owners, and return them by their names."""
    return {name: job(name) for name in ("owner", "other")}


def references(text, owners):
    """Read "owner* other!" as references to two owners: * is the controller, ! blocks its owner's deletion."""
    return [
        {
            **builders.owner(owners[word.strip("*!")].object),
            "controller": "*" in word,
            "blockOwnerDeletion": "!" in word,
        }
        for word in text.split()
    ]


def dependent(name, owners, text="owner*", kind=CONFIGMAPS, **spec):
    obj = builders.of(kind, name, ownerReferences=references(text, owners), **spec)
    return store.write(Create(kind, obj))[0]


def refer(name, owners, text):
    """Replace the owners of a config map."""
    store.write(Patch(CONFIGMAPS, "default", name, {"metadata": {"ownerReferences": references(text, owners) or None}}))


def delete(name="owner", propagation="Background", kind=JOBS):
    store.write(Delete(kind, "default", name, propagation=propagation))


def names(kind=CONFIGMAPS):
    return [stored.name for stored in store.find(kind)]


def left():
    """The config maps that are left, and the owners that they name."""
    return {
        stored.name: " ".join(each["name"] for each in stored.object["metadata"].get("ownerReferences") or [])
        for stored in store.find(CONFIGMAPS)
    }


@pytest.mark.parametrize("restarts", [False, True], ids=["by one process", "by the next"])
@cases("dependents, changes, deleted, expected", {
    "all that it owns": ({"a": "owner*", "b": "owner", "free": ""}, {}, {"owner": "Background"}, {"free": ""}),
    "a reference that dangles": ({"shared": "owner other"}, {}, {"owner": "Background"}, {"shared": "other"}),
    "an owner that is named no more": ({"freed": "owner", "exchanged": "owner other*"}, {"freed": "", "exchanged": "other"},
        {"owner": "Background"}, {"exchanged": "other", "freed": ""}),
    "an owner that becomes the controller": ({"a": "owner"}, {"a": "owner*"}, {"owner": "Background"}, {}),
    "an owner that is the controller no more": ({"a": "owner*"}, {"a": "owner"}, {"owner": "Background"}, {}),
    "orphans of any owner": ({"a": "owner", "b": "other owner"}, {}, {"owner": "Orphan"}, {"a": "", "b": "other"}),
    "orphans of their controller": ({"a": "owner*", "b": "other owner*"}, {}, {"owner": "Orphan"}, {"a": "", "b": "other"}),
    "an orphan of two": ({"a": "owner other"}, {}, {"owner": "Orphan", "other": "Orphan"}, {"a": ""}),
    "none, in the foreground": ({}, {}, {"owner": "Foreground"}, {}),
    "another owner, in the foreground": ({"mine": "owner!", "shared": "owner! other*"}, {}, {"owner": "Foreground"}, {"shared": "other"}),
    "two in the foreground": ({"a": "owner! other!"}, {}, {"owner": "Foreground", "other": "Foreground"}, {}),
    "one in the foreground, one that orphans": ({"a": "owner! other*"}, {}, {"owner": "Foreground", "other": "Orphan"}, {"a": ""}),
})  # fmt: skip
def test_what_is_left_of_a_family(dependents, changes, deleted, expected, restarts):
    collector = started()
    owners = family()
    for name, text in dependents.items():
        dependent(name, owners, text)
    for name, text in changes.items():
        refer(name, owners, text)
    for name, propagation in deleted.items():
        delete(name, propagation)
    settle(started() if restarts else collector)
    assert left() == expected
    assert set(names(JOBS)) == owners.keys() - deleted.keys()


def test_collector_that_was_never_there_finds_what_vanished():
    owners = family()
    dependent("a", owners)
    dependent("b", owners, "owner")
    delete()
    started()
    assert left() == {}


class Overtaken(garbage.GarbageCollector):
    """Whose first plan is made before something else is written, and done after it."""

    meanwhile = None

    def plan(self, state, changes, timers, now):
        plan = super().plan(state, changes, timers, now)
        if plan.groups and (meanwhile := self.meanwhile):
            self.meanwhile = None
            meanwhile()
        return plan


def touch(kind, name):
    store.write(Patch(kind, "default", name, {"metadata": {"labels": {"touched": "yes"}}}))


@cases("propagation, dependents, meanwhile, expected", {
    "its owner in the foreground": ("Foreground", {}, lambda _: touch(JOBS, "owner"), {}),
    "its owner that orphans": ("Orphan", {}, lambda _: touch(JOBS, "owner"), {}),
    "a dependent": ("Background", {"a": "owner other"}, lambda _: touch(CONFIGMAPS, "a"), {"a": "other"}),
    "one that is freed": ("Background", {"a": "owner*", "b": "owner*"}, lambda owners: refer("a", owners, ""), {"a": ""}),
    "one that is freed in the foreground": ("Foreground", {"a": "owner*", "b": "owner*"}, lambda owners: refer("a", owners, ""), {"a": ""}),
})  # fmt: skip
def test_what_changed_between_a_plan_and_its_transaction_is_looked_at_again(
    propagation, dependents, meanwhile, expected
):
    overtaken = Overtaken()
    runner = started(overtaken)
    owners = family()
    for name, text in dependents.items():
        dependent(name, owners, text)
    settle(runner)
    overtaken.meanwhile = lambda: meanwhile(owners)
    delete("owner", propagation)
    settle(runner)
    assert overtaken.meanwhile is None
    assert (left(), names(JOBS)) == (expected, ["other"])


def test_dependent_changed_between_two_steps_is_looked_at_again(collector):
    dependent("shared", family(), "owner other")
    store.commit([Group([Delete(JOBS, "default", "owner")])])
    collector.step()
    touch(CONFIGMAPS, "shared")
    settle(collector)
    assert left() == {"shared": "other"}


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan", "Background"])
def test_object_that_owns_itself_goes(collector, propagation):
    refer("self", {"self": dependent("self", {}, "")}, "self!")
    delete("self", propagation, CONFIGMAPS)
    settle(collector)
    assert names() == []


def test_what_comes_to_name_an_owner_that_is_gone_goes_though_another_has_its_name(collector):
    gone = {"gone": job("owner")}
    dependent("old", gone, "gone*")
    delete()
    owners = {**gone, **family()}
    dependent("new", owners)
    dependent("late", owners, "gone*")
    dependent("a", owners, "")
    dependent("b", owners)
    settle(collector)
    refer("a", owners, "gone")
    refer("b", owners, "gone owner")
    settle(collector)
    assert left() == {"new": "owner", "b": "owner"}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("text", ["owner*!", "owner* owner!"], ids=["blocks", "blocks by one reference of two"])
def test_foreground_owner_stays_until_blocking_dependents_are_gone(collector, text, restarts):
    owners = family()
    dependent("pod", owners, text, PODS, nodeName="n")
    dependent("map", owners, "owner*!")
    delete("owner", "Foreground")
    settle(collector)
    assert (names(), names(JOBS)) == ([], ["other", "owner"])
    assert "deletionTimestamp" in store.get(PODS, "default", "pod").object["metadata"]
    if restarts:
        collector = started()
    store.write(Delete(PODS, "default", "pod", grace=0))
    settle(collector)
    running.later(collector)
    assert names(JOBS) == ["other"]


@cases("propagation, spec", {"at once": ("Background", {}), "slowly": ("Foreground", {"nodeName": "n"})})
def test_large_family_goes_in_batches_and_is_waited_for_in_peace(collector, monkeypatch, propagation, spec):
    monkeypatch.setattr(garbage, "ROOM", 4)
    owners = family()
    for number in range(10):
        dependent(f"pod-{number}", owners, "owner*!", PODS, **spec)
    delete("owner", propagation)
    settle(collector)
    assert all("deletionTimestamp" in pod.object["metadata"] for pod in store.find(PODS))
    for pod in store.find(PODS):
        store.write(Delete(PODS, "default", pod.name, grace=0))
    settle(collector)
    assert (names(PODS), names(JOBS)) == ([], ["other"])


def test_families_of_families_go(collector):
    child = dependent("pod", family(), kind=PODS)
    dependent("map", {"child": child}, "child*")
    delete()
    settle(collector)
    assert names() == names(PODS) == []


def test_events_about_an_object_outlive_it_and_nodes_are_no_business_of_the_collector(collector):
    before = collector.generation
    store.write(Create(NODES, builders.node("n")))
    settle(collector)
    assert collector.generation == before
    involved = {"kind": "Job", "namespace": "default", "name": "owner", "uid": job().uid}
    store.write(Create(EVENTS, builders.of(EVENTS, "e", {"involvedObject": involved})))
    delete()
    settle(collector)
    settle(started())
    assert names(EVENTS) == ["e"]


@cases("propagation, count", {"at once": ("Background", 10), "in the foreground": ("Foreground", 3)})
def test_objects_of_the_cluster_are_not_deleted_for_an_owner_in_a_namespace_and_told_of_once(
    collector, monkeypatch, propagation, count
):
    monkeypatch.setattr(garbage, "ROOM", 4)
    owners = family()
    for number in range(count):
        dependent(f"q{number}", owners, "owner!", QUEUES, weight=1)
    delete("owner", propagation)
    settle(collector)
    assert (len(names(QUEUES)), names(JOBS)) == (count, ["other"])
    assert [e.object["reason"] for e in store.find(EVENTS)] == ["OwnerRefInvalidNamespace"] * count
