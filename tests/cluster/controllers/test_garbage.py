"""What belongs to something that is gone is deleted, and nothing else."""

from __future__ import annotations

import pytest
from django.db import transaction

from cluster import clock
from cluster.controllers import garbage
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Group, Patch, store
from kube.resources import CONFIGMAPS, EVENTS, JOBS, NODES, PODS, QUEUES
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def collector():
    return started()


def started():
    runner = Runner(registry.get("garbage"), 0, garbage.GarbageCollector())
    settle(runner)
    return runner


def settle(runner):
    """Collect until nothing is left to do, which must come soon."""
    for _ in range(60):
        if not runner.step():
            return
    raise AssertionError("the collector does not come to an end")


def job(name="owner"):
    return store.write(Create(JOBS, {"metadata": {"name": name, "namespace": "d"}, "spec": {}}))[0]


def reference(owner, **fields):
    api_version, kind = owner.object["apiVersion"], owner.object["kind"]
    return {"apiVersion": api_version, "kind": kind, "name": owner.name, "uid": owner.uid, **fields}


def dependent(name, *references, kind=CONFIGMAPS, **spec):
    metadata = {"name": name, "namespace": "d", "ownerReferences": list(references)}
    return store.write(Create(kind, {"metadata": metadata, "spec": spec}))[0]


def refer(name, *references):
    """Replace the owners of a config map."""
    store.write(Patch(CONFIGMAPS, "d", name, {"metadata": {"ownerReferences": list(references) or None}}))


def owners_of(name):
    return [each["name"] for each in store.get(CONFIGMAPS, "d", name).object["metadata"].get("ownerReferences", [])]


def names(kind=CONFIGMAPS):
    return [stored.name for stored in store.find(kind)]


def test_dependents_go_after_their_owner(collector):
    owner = job()
    dependent("a", reference(owner, controller=True))
    dependent("b", reference(owner))
    dependent("other")
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    assert names() == ["other"]


def test_dependent_made_after_its_owner_vanished_goes_too(collector):
    owner = job()
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    dependent("late", reference(owner, controller=True))
    settle(collector)
    assert names() == []


def test_new_owner_of_the_same_name_keeps_nothing_of_the_old_one(collector):
    owner = job()
    dependent("old", reference(owner, controller=True))
    store.write(Delete(JOBS, "d", "owner"))
    dependent("new", reference(job(), controller=True))
    settle(collector)
    assert names() == ["new"]


def test_reference_that_dangles_is_taken_away_while_another_owner_lives(collector):
    first, second = job("first"), job("second")
    dependent("shared", reference(first), reference(second))
    store.write(Delete(JOBS, "d", "first"))
    settle(collector)
    references = store.get(CONFIGMAPS, "d", "shared").object["metadata"]["ownerReferences"]
    assert [r["name"] for r in references] == ["second"]


def test_foreground_owner_stays_until_blocking_dependents_are_gone(collector):
    owner = job()
    dependent("pod", reference(owner, controller=True, blockOwnerDeletion=True), kind=PODS, nodeName="n")
    dependent("map", reference(owner, controller=True, blockOwnerDeletion=True))
    store.write(Delete(JOBS, "d", "owner", propagation="Foreground"))
    settle(collector)
    assert names() == []
    assert names(JOBS) == ["owner"]
    assert "deletionTimestamp" in store.get(PODS, "d", "pod").object["metadata"]
    store.write(Delete(PODS, "d", "pod", grace=0))
    settle(collector)
    assert names(JOBS) == []


def test_foreground_deletion_goes_on_in_a_new_process(collector):
    owner = job()
    dependent("pod", reference(owner, controller=True, blockOwnerDeletion=True), kind=PODS, nodeName="n")
    store.write(Delete(JOBS, "d", "owner", propagation="Foreground"))
    settle(collector)
    successor = started()
    store.write(Delete(PODS, "d", "pod", grace=0))
    settle(successor)
    with transaction.atomic():
        make_timers_due()
    settle(successor)
    assert names(JOBS) == []


class Interrupted(garbage.GarbageCollector):
    """Somebody else writes `object` between a plan and its commit, the first time."""

    object = None

    def plan(self, state, changes, timers, now):
        plan = super().plan(state, changes, timers, now)
        if self.object is not None and plan.groups:
            kind, name = self.object
            self.object = None
            store.write(Patch(kind, "d", name, {"metadata": {"labels": {"touched": "yes"}}}))
        return plan


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
def test_owner_that_changed_while_it_was_let_go_is_looked_at_again(propagation):
    runner = Runner(registry.get("garbage"), 0, Interrupted())
    settle(runner)
    job()
    runner.consumer.object = JOBS, "owner"
    store.write(Delete(JOBS, "d", "owner", propagation=propagation))
    settle(runner)
    assert names(JOBS) == []


def test_dependent_that_changed_while_its_references_were_written_is_looked_at_again():
    runner = Runner(registry.get("garbage"), 0, Interrupted())
    settle(runner)
    first, second = job("first"), job("second")
    dependent("shared", reference(first), reference(second))
    settle(runner)
    runner.consumer.object = CONFIGMAPS, "shared"
    store.write(Delete(JOBS, "d", "first"))
    settle(runner)
    references = store.get(CONFIGMAPS, "d", "shared").object["metadata"]["ownerReferences"]
    assert [r["name"] for r in references] == ["second"]


def make_timers_due():
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_timer SET due = %s", [clock.milliseconds() - 1])


def test_foreground_owner_without_dependents_goes_at_once(collector):
    job()
    store.write(Delete(JOBS, "d", "owner", propagation="Foreground"))
    settle(collector)
    assert names(JOBS) == []


def test_orphans_lose_their_reference_and_stay(collector):
    owner = job()
    dependent("a", reference(owner, controller=True))
    store.write(Delete(JOBS, "d", "owner", propagation="Orphan"))
    settle(collector)
    assert names(JOBS) == []
    assert "ownerReferences" not in store.get(CONFIGMAPS, "d", "a").object["metadata"]


def test_large_family_goes_in_batches(collector, monkeypatch):
    monkeypatch.setattr(garbage, "ROOM", 7)
    owner = job()
    for number in range(30):
        dependent(f"pod-{number}", reference(owner, controller=True), kind=PODS)
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    assert names(PODS) == []


def test_families_of_families_go(collector):
    owner = job()
    child = dependent("pod", reference(owner, controller=True), kind=PODS)
    dependent("map", reference(child, controller=True))
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    assert names() == names(PODS) == []


def test_events_about_an_object_outlive_it(collector):
    owner = job()
    about = {"kind": "Job", "namespace": "d", "name": "owner", "uid": owner.uid}
    store.write(Create(EVENTS, {"metadata": {"name": "e", "namespace": "d"}, "involvedObject": about}))
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    settle(started())
    assert names(EVENTS) == ["e"]


def test_object_of_the_cluster_is_not_deleted_for_an_owner_in_a_namespace(collector):
    owner = job()
    store.write(
        Create(QUEUES, {"metadata": {"name": "q", "ownerReferences": [reference(owner)]}, "spec": {}}),
        Delete(JOBS, "d", "owner"),
    )
    settle(collector)
    assert names(QUEUES) == ["q"]
    assert [e.object["reason"] for e in store.find(EVENTS)] == ["OwnerRefInvalidNamespace"]


def test_collector_that_was_away_finds_what_vanished():
    owner = job()
    dependent("a", reference(owner, controller=True))
    dependent("b", reference(owner))
    store.write(Delete(JOBS, "d", "owner"))
    started()
    assert names() == []


def test_dependent_changed_meanwhile_is_looked_at_again(collector):
    owner, other = job("owner"), job("other")
    dependent("shared", reference(owner), reference(other))
    store.commit([Group([Delete(JOBS, "d", "owner")])])
    collector.step()
    store.write(Patch(CONFIGMAPS, "d", "shared", {"metadata": {"labels": {"a": "b"}}}))
    settle(collector)
    assert len(store.get(CONFIGMAPS, "d", "shared").object["metadata"]["ownerReferences"]) == 1


def test_nodes_are_no_business_of_the_collector(collector):
    before = collector.generation
    store.write(Create(NODES, {"metadata": {"name": "n"}}))
    settle(collector)
    assert collector.generation == before


# Owners that are not controllers, and references that change.


def test_object_that_names_an_owner_no_more_outlives_it(collector):
    owner, other = job(), job("other")
    dependent("freed", reference(owner))
    dependent("exchanged", reference(owner), reference(other, controller=True))
    refer("freed")
    refer("exchanged", reference(other))
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    settle(started())
    assert names() == ["exchanged", "freed"]
    assert owners_of("exchanged") == ["other"]


@cases("before, after", {
    "becomes the controller": ({}, {"controller": True}),
    "is the controller no more": ({"controller": True}, {}),
})  # fmt: skip
def test_owner_that_changes_its_part_stays_an_owner(collector, before, after):
    owner = job()
    dependent("a", reference(owner, **before))
    refer("a", reference(owner, **after))
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    assert names() == []


def test_object_that_comes_to_name_an_owner_that_never_was_goes(collector):
    gone = job("gone")
    store.write(Delete(JOBS, "d", "gone"))
    dependent("a")
    dependent("b", reference(job()))
    settle(collector)
    refer("a", reference(gone))
    refer("b", reference(gone), reference(store.get(JOBS, "d", "owner")))
    settle(collector)
    assert names() == ["b"]
    assert owners_of("b") == ["owner"]


@cases("fields", {
    "any owner": {},
    "controller": {"controller": True},
})  # fmt: skip
def test_orphan_of_any_owner_is_left_alone(collector, fields):
    owner, other = job(), job("other")
    dependent("alone", reference(owner, **fields))
    dependent("shared", reference(other), reference(owner, **fields))
    store.write(Delete(JOBS, "d", "owner", propagation="Orphan"))
    settle(collector)
    assert names(JOBS) == ["other"]
    assert (owners_of("alone"), owners_of("shared")) == ([], ["other"])


def test_orphan_of_two_owners_at_once_loses_both_references(collector):
    first, second = job("first"), job("second")
    dependent("a", reference(first), reference(second))
    for name in ("first", "second"):
        store.write(Delete(JOBS, "d", name, propagation="Orphan"))
    settle(collector)
    settle(collector)
    assert names(JOBS) == []
    assert names() == ["a"]
    assert owners_of("a") == []


def test_foreground_deletion_leaves_what_has_another_owner(collector):
    owner, other = job(), job("other")
    dependent("mine", reference(owner, blockOwnerDeletion=True))
    dependent("shared", reference(owner, blockOwnerDeletion=True), reference(other, controller=True))
    store.write(Delete(JOBS, "d", "owner", propagation="Foreground"))
    settle(collector)
    assert names(JOBS) == ["other"]
    assert names() == ["shared"]
    assert owners_of("shared") == ["other"]


def test_dependent_of_owners_that_all_go_in_the_foreground_goes(collector):
    first, second = job("first"), job("second")
    dependent("a", *(reference(each, blockOwnerDeletion=True) for each in (first, second)))
    for name in ("first", "second"):
        store.write(Delete(JOBS, "d", name, propagation="Foreground"))
    settle(collector)
    assert names() == names(JOBS) == []


def test_dependent_of_an_owner_that_orphans_outlives_one_that_goes_in_the_foreground(collector):
    going, leaving = job("going"), job("leaving")
    dependent("a", reference(going, blockOwnerDeletion=True), reference(leaving, controller=True))
    store.write(Delete(JOBS, "d", "going", propagation="Foreground"))
    store.write(Delete(JOBS, "d", "leaving", propagation="Orphan"))
    settle(collector)
    settle(collector)
    assert names(JOBS) == []
    assert names() == ["a"]
    assert owners_of("a") == []


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan", "Background"])
def test_object_that_owns_itself_goes(collector, propagation):
    owner = dependent("self")
    refer("self", reference(owner, blockOwnerDeletion=True))
    store.write(Delete(CONFIGMAPS, "d", "self", propagation=propagation))
    settle(collector)
    assert names() == []


class Overtaken(garbage.GarbageCollector):
    """Whose plan is made before something else is written, and done after it."""

    meanwhile = None

    def plan(self, state, changes, timers, now):
        plan = super().plan(state, changes, timers, now)
        if plan.groups and (meanwhile := self.meanwhile):
            self.meanwhile = None
            meanwhile()
        return plan


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_dependent_that_is_freed_before_it_is_deleted_stays(propagation):
    overtaken = Overtaken()
    runner = Runner(registry.get("garbage"), 0, overtaken)
    settle(runner)
    owner = job()
    dependent("freed", reference(owner, controller=True))
    dependent("held", reference(owner, controller=True))
    overtaken.meanwhile = lambda: refer("freed")
    store.write(Delete(JOBS, "d", "owner", propagation=propagation))
    settle(runner)
    assert names(JOBS) == []
    assert names() == ["freed"]


@pytest.mark.parametrize("propagation", ["Orphan", "Foreground"])
def test_owner_that_changes_while_it_is_let_go_goes_all_the_same(propagation):
    overtaken = Overtaken()
    runner = Runner(registry.get("garbage"), 0, overtaken)
    settle(runner)
    job()
    overtaken.meanwhile = lambda: store.write(Patch(JOBS, "d", "owner", {"metadata": {"labels": {"a": "b"}}}))
    store.write(Delete(JOBS, "d", "owner", propagation=propagation))
    settle(runner)
    assert names(JOBS) == []


def test_collector_waits_in_peace_for_a_large_family_that_goes_slowly(collector, monkeypatch):
    monkeypatch.setattr(garbage, "ROOM", 4)
    owner = job()
    for number in range(10):
        blocking = reference(owner, controller=True, blockOwnerDeletion=True)
        dependent(f"pod-{number}", blocking, kind=PODS, nodeName="n")
    store.write(Delete(JOBS, "d", "owner", propagation="Foreground"))
    settle(collector)
    assert all("deletionTimestamp" in pod.object["metadata"] for pod in store.find(PODS))
    for pod in store.find(PODS):
        store.write(Delete(PODS, "d", pod.name, grace=0))
    settle(collector)
    assert names(JOBS) == []


def test_many_objects_of_the_cluster_with_owners_in_a_namespace_are_told_of_once(collector, monkeypatch):
    monkeypatch.setattr(garbage, "ROOM", 4)
    owner = job()
    for number in range(10):
        metadata = {"name": f"q{number}", "ownerReferences": [reference(owner)]}
        store.write(Create(QUEUES, {"metadata": metadata, "spec": {}}))
    store.write(Delete(JOBS, "d", "owner"))
    settle(collector)
    assert len(names(QUEUES)) == len(names(EVENTS)) == 10
