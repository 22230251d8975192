"""An object and the many that it owns: all of them or nothing, with the rights, rules, quotas and audit of each."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from cluster import api
from cluster.access import SYSTEM
from cluster.backend import OwnedRefused
from cluster.models import AuditEntry
from cluster.store import store
from kube.errors import AlreadyExists, Forbidden, Invalid, ServiceUnavailable
from kube.resources import CONFIGMAPS, JOBS, QUEUES, RESOURCE_QUOTAS
from tests.cluster.api.conftest import config_map, job, queue
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture
def alice(person):
    return person("alice", default="submitter")


def make(actor, jobs, owner=None):
    return api.create_with_owned(actor, CONFIGMAPS, owner or config_map("owner"), JOBS, jobs)


def rows():
    return list(
        AuditEntry.objects.filter(actor="alice")
        .order_by("pk")
        .values_list("verb", "resource", "name", "outcome", "count", "message")
    )


def test_all_are_stored_in_one_transaction_and_name_their_owner(alice):
    before = store.revision()
    told = []
    store.listeners.append(lambda touched, revision: told.append(revision))
    try:
        owner = make(alice, [job(f"x{n}") for n in range(700)])
    finally:
        store.listeners.pop()
    found = store.find(JOBS, owner=owner.uid)
    assert len(found) == 700
    assert store.revision() == before + 701
    assert {stored.object["metadata"]["annotations"]["ui.volcano.sh/created-by"] for stored in found} == {"alice"}
    (reference,) = found[0].object["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["uid"]) == ("ConfigMap", "owner", owner.uid)


def test_the_audit_has_a_row_for_the_owner_and_one_for_all_the_others(alice):
    make(alice, [job(f"x{n}") for n in range(30)])
    assert rows() == [
        ("create", "configmaps", "owner", "done", 1, ""),
        ("create", "jobs.batch.volcano.sh", "x0 … x29", "done", 30, "Owned by configmaps owner."),
    ]


def test_what_owns_one_is_audited_with_its_name(alice):
    make(alice, [job("only")])
    assert rows()[1][2:5] == ("only", "done", 1)


@cases("bad, errors, code", {
    "a wrong name": ({3: job("Bad Name")}, {3: Invalid}, 422),
    "a name twice": ({3: job("x0")}, {3: AlreadyExists}, 409),
    "no right": ({1: job("a", "other"), 4: job("b", "other")}, {1: Forbidden, 4: Forbidden}, 403),
    "a rule of the cluster": ({0: job("c", queue="closed")}, {0: Invalid}, 422),
    "no object": ({2: "text"}, {2: Exception}, 400),
})  # fmt: skip
def test_when_one_is_refused_nothing_is_stored_and_its_place_is_told(alice, bad, errors, code):
    api.create(SYSTEM, QUEUES, queue("closed", state="Closed"))
    head = store.revision()
    with pytest.raises(OwnedRefused) as caught:
        make(alice, [bad.get(n, job(f"x{n}")) for n in range(6)])
    assert caught.value.code == code
    assert list(caught.value.refusals) == list(errors)
    assert all(isinstance(caught.value.refusals[place], error) for place, error in errors.items())
    assert store.revision() == head
    assert store.find(CONFIGMAPS, name="owner") == []
    ((verb, resource, name, outcome, count, message),) = rows()
    assert (verb, resource, name, count) == ("create", "configmaps", "owner", 1)
    assert outcome == ("denied" if code == 403 else "refused")
    assert f"{len(errors)} of 6 were refused" in message


def test_a_quota_counts_all_of_them_together(alice):
    quota = {
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"count/jobs.batch.volcano.sh": "4"}},
    }
    api.create(SYSTEM, RESOURCE_QUOTAS, quota)
    with pytest.raises(OwnedRefused) as caught:
        make(alice, [job(f"x{n}") for n in range(6)])
    assert list(caught.value.refusals) == [4, 5]
    make(alice, [job(f"x{n}") for n in range(4)])


@cases("owner, error", {
    "a wrong name": (config_map("Bad Name"), Invalid),
    "no right": (config_map("owner", "other"), Forbidden),
    "there already": (config_map("there"), AlreadyExists),
})  # fmt: skip
def test_what_is_wrong_with_the_owner_is_told_as_of_any_object(alice, owner, error):
    api.create(SYSTEM, CONFIGMAPS, config_map("there"))
    with pytest.raises(error):
        make(alice, [job("x")], owner)
    assert store.find(JOBS) == []


def test_a_database_that_fails_leaves_nothing_behind(alice, monkeypatch):
    def full(*_args, **_options):
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(store, "commit", full)
    with pytest.raises(ServiceUnavailable, match="database or disk is full"):
        make(alice, [job("x")])
    assert (store.find(JOBS), store.find(CONFIGMAPS)) == ([], [])
