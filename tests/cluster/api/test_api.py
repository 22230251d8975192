"""The one door: what is stored, refused and audited, and who may (the stories of tests/golden/cluster/door.txt)."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.api import admission
from cluster.models import AuditEntry
from cluster.store import Create, Stored, store
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, RequestEntityTooLarge, forbidden
from kube.resources import JOBS, QUEUES, SECRETS
from tests.blocks import blocks

from .conftest import config_map, job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster", "no_rules")]


def kinds(outcomes):
    return [one.name if isinstance(one, Stored) else type(one) for one in outcomes]


def patch(actor, change, kind=JOBS, **options):
    return api.patch(actor, kind, "default", "x", change, **options)


def test_what_is_created_is_audited_with_its_uid_and_revision(alice):
    stored, row = api.create(alice, JOBS, job("x")), AuditEntry.objects.get()
    found = (row.actor, row.verb, row.name, row.uid, row.revision)
    assert found == ("alice", "create", "x", stored.uid, store.get(JOBS, "default", "x").revision)


@blocks("door", folder="cluster")
def test_what_people_do_and_what_comes_of_it(block, golden, story):
    golden(block, story.tell)


def test_an_update_of_what_somebody_else_changed_says_who_and_without_a_revision_it_wins(alice, olga):
    stale = api.create(alice, JOBS, job("x"))
    assert api.update(alice, JOBS, stale.object).revision == stale.revision
    assert AuditEntry.objects.count() == 1, "where nothing changes nothing is written"
    newest = patch(olga, {"spec": {"maxRetry": 5}})
    with pytest.raises(Conflict, match="please apply your changes to the latest version") as caught:
        api.update(alice, JOBS, {**stale.object, "spec": job("x", maxRetry=7)["spec"]})
    versions = f"(you have version {stale.version}, the newest is {newest.version})"
    assert f"changed by olga after you read it {versions}" in caught.value.message
    assert api.update(alice, JOBS, job("x", maxRetry=7)).object["spec"]["maxRetry"] == 7
    assert AuditEntry.objects.last().changes == [{"path": "spec.maxRetry", "old": 5, "new": 7}]
    for version in ("new", "-1", "٣"):
        with pytest.raises((BadRequest, Conflict)):
            api.update(alice, JOBS, job("x", resourceVersion=version))
    with pytest.raises(RequestEntityTooLarge):
        patch(alice, [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001, how="json")


def test_no_data_of_a_secret_is_audited(olga):
    api.create(olga, SECRETS, {**config_map("x", password="aHVudGVyMg=="), "kind": "Secret"})
    patch(olga, {"data": {"password": "aHVudGVyMw=="}}, SECRETS)
    test = [{"op": "test", "path": "/data/password", "value": "aHVudGVyNA=="}]
    with pytest.raises(Invalid, match='is "aHVudGVyMw==", and the test expects "aHVudGVyNA=="'):
        patch(olga, test, SECRETS, how="json")
    assert AuditEntry.objects.last().message.endswith("is another one than the test expects.")
    assert "aHVu" not in str(list(AuditEntry.objects.values()))


def test_a_rule_keeps_an_object(admin):
    admission.register(QUEUES, delete=lambda obj, view: [forbidden("status.state", "Close it first.")])
    with pytest.raises(Forbidden, match=r'queues.scheduling.volcano.sh "default" is forbidden: Close it first\.'):
        api.delete(admin, QUEUES, "", "default")
    assert kinds(api.delete_many(admin, QUEUES, [("", "default")])) == [Forbidden]


def test_of_many_only_those_go_that_have_the_uid_that_was_meant(alice, olga):
    made = [*api.create_many(alice, JOBS, [job("a"), job("b"), job("c")]), api.create(olga, JOBS, job("d"))]
    keys, uids = [("default", n) for n in "abcde"], [made[0].uid, "another", "", made[3].uid, ""]
    outcomes = api.delete_many(alice, JOBS, keys, uids=uids)
    assert kinds(outcomes) == ["a", Conflict, "c", Forbidden, NotFound]
    assert [left.name for left in store.find(JOBS)] == ["b", "d"]
    assert kinds(api.delete_many(alice, JOBS, [("default", "b")])) == ["b"]


def test_a_review_tells_everything_changes_nothing_and_tells_no_stranger_what_exists(alice):
    api.create(alice, JOBS, job("taken"))
    store.write(Create(JOBS, job("x", "other")))
    count, revision = AuditEntry.objects.count(), store.revision()

    def fields(obj, **options):
        return [cause.field for cause in api.review(alice, JOBS, obj, **options).causes]

    assert fields(job("free")) == fields(job("taken"), update=True) == []
    assert fields(job("taken")) == ["metadata.name"]
    for name, place in (("x", "other"), ("free", "other"), ("x", "nowhere")):
        assert fields(job(name, place)) == ["metadata.namespace"]
    assert fields([]) == [""]
    assert api.review(alice, JOBS, {**job("x"), "spce": 1}).warnings == ('unknown field "spce"',)
    assert (AuditEntry.objects.count(), store.revision()) == (count, revision)
