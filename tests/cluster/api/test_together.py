"""Creations that are one transaction: many of one request or of several, each as if alone, and an object with all that it owns, or nothing."""

import copy

import pytest
from django.db import DatabaseError, OperationalError

from cluster import api
from cluster.access import SYSTEM
from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.backend import Creation, OwnedRefused
from cluster.models import AuditEntry
from cluster.store import Stored, store
from kube.errors import AlreadyExists, Forbidden, Invalid, ServiceUnavailable
from kube.resources import BATCH_JOBS, CONFIGMAPS, JOBS, QUEUES
from tests.blocks import blocks
from tests.cluster.store.test_contract import Letters
from tests.tables import cases

from .conftest import config_map, job, kinds, queue

pytestmark = pytest.mark.usefixtures("cluster")


def deeds():
    rows = AuditEntry.objects.order_by("id")
    return list(rows.values_list("actor", "verb", "namespace", "name", "outcome", "count", "message"))


def creations(actor, *objs, resource=JOBS):
    return [Creation(actor, resource, obj) for obj in objs]


@pytest.fixture
def rules(monkeypatch):
    monkeypatch.setattr(admission, "_rules", copy.deepcopy(admission._rules))


@pytest.fixture
def bob(person):
    return person("bob", other="submitter")


def test_each_stands_or_fails_for_itself_as_if_alone_and_in_order(alice, bob):
    of_alice = [job("a"), job("Bad Name"), job("d"), job("e", queue="none"), job("f", "nowhere")]
    of_bob = [job("b", "other"), job("c"), job("b", "other")]
    wanted = [*creations(alice, *of_alice), *creations(bob, *of_bob)]
    alone = [attempt(each) for each in wanted]
    assert kinds(alone) == ["a", Invalid, "d", Invalid, Forbidden, "b", Forbidden, AlreadyExists]
    rows = deeds()
    for stored in store.find(JOBS):
        api.delete(SYSTEM, JOBS, stored.namespace, stored.name, propagation="Background")
    AuditEntry.objects.all().delete()
    before = store.revision()
    outcomes = api.create_each(wanted)
    assert [outcome_text(one) for one in outcomes] == [outcome_text(one) for one in alone]
    # A refusal is written after what was done, when both are of one transaction.
    assert sorted(deeds()) == sorted(rows)
    stored = [(change.name, change.revision - before) for change in store.changes(before)]
    assert stored == [("a", 1), ("d", 2), ("b", 3)]


def attempt(one):
    try:
        return api.create(one.actor, one.resource, one.object)
    except Exception as error:
        return error


def outcome_text(outcome):
    if not isinstance(outcome, Stored):
        return str(outcome)
    own = ("uid", "resourceVersion", "creationTimestamp")
    metadata = {key: value for key, value in outcome.object["metadata"].items() if key not in own}
    return {**outcome.object, "metadata": metadata}


def of_several(actor, kind, objs):
    return api.create_each(creations(actor, *objs, resource=kind))


CREATE = {"of one": api.create_many, "of several": of_several}


@blocks("together", folder="cluster")
def test_what_is_created_together_and_what_comes_of_it(block, golden, story):
    golden(block, story.tell)


@cases("create", CREATE)
def test_what_rules_look_at_is_there_before_the_next_is_judged(create):
    queues = [queue("parent"), queue("child", parent="parent"), queue("parent"), queue("lost", parent="none")]
    assert kinds(create(SYSTEM, QUEUES, queues)) == ["parent", "child", AlreadyExists, Invalid]


@cases("create", CREATE)
def test_the_cluster_is_asked_once_for_all(alice, django_assert_max_num_queries, create):
    with django_assert_max_num_queries(20):
        outcomes = create(alice, JOBS, [job(f"x{n}") for n in range(100)])
    assert all(isinstance(one, Stored) for one in outcomes)


def test_what_came_while_the_lock_was_waited_for_is_stored_with_it(alice, bob):
    before = store.revision()
    late = creations(bob, job("b"), job("c", "other"))
    outcomes = api.create_each(creations(alice, job("a")), lambda: late)
    assert kinds(outcomes) == ["a", Forbidden, "c"]
    assert [change.name for change in store.changes(before)] == ["a", "c"]


def test_a_rule_that_breaks_on_one_hurts_no_other(alice, rules):
    def breaks(obj, old, view):
        if obj["metadata"]["name"] == "broken":
            raise ZeroDivisionError
        return []

    admission.register(JOBS, validate=breaks)
    outcomes = api.create_each(creations(alice, *(job(name) for name in ("a", "broken", "b"))))
    assert kinds(outcomes) == ["a", ZeroDivisionError, "b"]
    assert [row[3] for row in deeds()] == ["a", "b"]


def test_when_the_transaction_breaks_each_is_done_alone(alice, bob, rules):
    tries = []

    def breaks_together(obj, old, view):
        tries.append(obj["metadata"]["name"])
        if tries.count("b") == 1 and obj["metadata"]["name"] == "b":
            raise DatabaseError("something of one object that the database does not take")
        return []

    admission.register(JOBS, validate=breaks_together)
    before = store.revision()
    a, b, d = creations(alice, job("a"), job("b"), job("d"))
    assert kinds(api.create_each([a, b, *creations(bob, job("c")), d])) == ["a", "b", Forbidden, "d"]
    assert tries == ["a", "b", "a", "b", "d"]
    assert store.revision() == before + 3
    assert [row[3:5] for row in deeds()] == [("a", "done"), ("b", "done"), ("c", "denied"), ("d", "done")]


class Killed(BaseException):
    """The process ended."""


def test_a_process_that_is_killed_leaves_nothing(rules):
    def dies(obj, *_):
        if obj["metadata"]["name"] == "m3":
            raise Killed
        return []

    admission.register(CONFIGMAPS, bound=dies)
    head, maps = store.revision(), [config_map(f"m{n}") for n in range(4)]
    with pytest.raises(Killed):
        api.create_each(creations(SYSTEM, *maps, resource=CONFIGMAPS))
    assert (store.find(CONFIGMAPS), store.revision(), deeds()) == ([], head, [])


def test_on_a_full_disk_all_are_told_and_nothing_is_stored(cluster, full_disk):
    maps = [config_map(f"m{n}", text="x" * 100_000) for n in range(3)]
    assert kinds(api.create_each(creations(SYSTEM, *maps, resource=CONFIGMAPS))) == [ServiceUnavailable] * 3
    assert store.find(CONFIGMAPS) == []


def test_names_that_are_generated_in_one_transaction_differ(cluster, monkeypatch):
    """What is judged together is not stored yet when the next name is chosen."""
    monkeypatch.setattr(store, "random", Letters("bbbbb bbbbb ccccc"))
    view = ClusterView()
    assert [view.free_name(BATCH_JOBS, "default", "a-") for _ in range(2)] == ["a-bbbbb", "a-ccccc"]


def make(actor, jobs, owner=None):
    return api.create_with_owned(actor, CONFIGMAPS, owner or config_map("owner"), JOBS, jobs)


def test_all_are_stored_and_name_their_owner(alice):
    before = store.revision()
    owner = make(alice, [job(f"x{n}") for n in range(700)])
    found = store.find(JOBS, owner=owner.uid)
    assert (len(found), store.revision()) == (700, before + 701)
    assert {stored.object["metadata"]["annotations"]["ui.volcano.sh/created-by"] for stored in found} == {"alice"}
    (reference,) = found[0].object["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["uid"]) == ("ConfigMap", "owner", owner.uid)
    rows = ("owner", "done", 1, ""), ("x0 … x699", "done", 700, "Owned by configmaps owner.")
    assert [row[3:] for row in deeds()] == [*rows], "the audit has a row for the owner and one for all the others"


def test_what_is_no_object_and_what_breaks_a_rule_of_the_cluster_is_refused_with_all_the_others(alice):
    api.create(SYSTEM, QUEUES, queue("closed", state="Closed"))
    head = store.revision()
    for bad, code in (("text", 400), (job("c", queue="closed"), 422)):
        with pytest.raises(OwnedRefused) as caught:
            make(alice, [job("x0"), job("x1"), bad])
        assert (caught.value.code, list(caught.value.refusals)) == (code, [2])
    assert store.revision() == head
    assert "1 of 3 were refused" in deeds()[-1][-1]


def test_a_database_that_fails_is_said_so_and_nothing_is_half_done(alice, monkeypatch):
    def full(*_args, **_options):
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(store, "write", full)
    monkeypatch.setattr(store, "commit", full)
    for create in (lambda: api.create(alice, JOBS, job("x")), lambda: make(alice, [job("x")])):
        with pytest.raises(ServiceUnavailable, match="database or disk is full"):
            create()
    assert kinds(api.create_many(alice, JOBS, [job("x")])) == [ServiceUnavailable]
    assert (store.find(JOBS), store.find(CONFIGMAPS)) == ([], [])
