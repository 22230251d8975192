"""Changing an object of which the mirror has an older version than the cluster, and what is said when it cannot be changed."""

import pytest

from cluster import access
from cluster.access import authorizer
from cluster.backend import OwnedRefused
from cluster.models import AuditEntry
from cluster.remote import recorder
from cluster.remote.door import calls, changing, creation, deletion, preview, server
from cluster.remote.mirroring import ways
from cluster.remote.mirroring.reflection import KindStatus, Phase, Step, Update
from cluster.store import store
from cluster.writes import Mirror
from kube.errors import AlreadyExists, Conflict, Forbidden, InternalError, NotFound
from kube.resources import CONFIGMAPS, JOB_FLOWS, JOBS
from tests.blocks import blocks
from tests.cluster.objects import of_values
from tests.cluster.remote.servers import ObjectServer, connected
from tests.tables import cases

PATH = "/api/v1/namespaces/d/configmaps/a"


def config(version, text, uid="uid-a"):
    metadata = {"name": "a", "namespace": "d", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


@pytest.fixture
def api(tmp_path, settings, monkeypatch, db):
    """A cluster in which the object has been changed since it was mirrored."""
    running = ObjectServer()
    running.version = 8
    running.put(PATH, config("", "of another"))
    settings.WAY, settings.IMPERSONATE = "beside", False
    monkeypatch.setattr(server, "_permits", None)
    with connected(running, tmp_path, settings):
        recorder.claim("https://one")
        recorder.record([Update(JOBS, Step.LISTED, version="1")])
        store.write(Mirror(CONFIGMAPS, config("8", "mirrored")))
        yield running


def mirrored():
    return store.get(CONFIGMAPS, "d", "a").object["data"]["text"]


def update(version):
    changing.update(access.SYSTEM, CONFIGMAPS, config(version, "mine"))


def patch():
    changing.patch(access.SYSTEM, CONFIGMAPS, "d", "a", {"data": {"text": "mine"}})


def create():
    creation.create(access.SYSTEM, CONFIGMAPS, config("", "mine"))


def test_refusal_for_an_old_version_brings_the_newest_one_for_the_next_try(api):
    with pytest.raises(Conflict):
        update("8")
    assert mirrored() == "of another"
    update(store.get(CONFIGMAPS, "d", "a").version)
    assert (mirrored(), api.objects[PATH]["data"]["text"]) == ("mine", "mine")
    assert [row.outcome for row in AuditEntry.objects.filter(verb="update").order_by("pk")] == ["refused", "done"]


@cases("change, error", {
    "replaced": (lambda: update("8"), Conflict), "patched": (patch, Conflict), "made": (create, AlreadyExists)
})  # fmt: skip
def test_another_object_of_the_name_is_left_to_the_watch(api, change, error):
    api.put(PATH, config("", "of another", uid="uid-b"))
    with pytest.raises(error):
        change()
    assert (mirrored(), api.objects[PATH]["data"]["text"]) == ("mirrored", "of another")


def test_creation_finds_what_the_first_has_made_and_a_patch_changes_what_it_names_whatever_the_version(api):
    store.write(Mirror(CONFIGMAPS, config("8", "mirrored"), deleted=True))
    with pytest.raises(AlreadyExists):
        create()
    assert mirrored() == "of another"
    patch()
    assert (mirrored(), api.objects[PATH]["data"]["text"]) == ("mine", "mine")


def test_what_owns_something_that_is_refused_is_taken_back(api):
    owner = config("", "") | {"metadata": {"name": "owner", "namespace": "d", "uid": "uid-o"}}
    with pytest.raises(OwnedRefused):
        creation.create_with_owned(access.SYSTEM, CONFIGMAPS, owner, CONFIGMAPS, [config("", "mine")])
    assert list(api.objects) == [PATH]


def test_review_tells_what_is_wrong_with_the_object_and_not_that_it_changes_meanwhile(api):
    found = preview.review(access.SYSTEM, CONFIGMAPS, config("8", "mine"), update=True)
    assert (found.causes, found.warnings) == ((), ())
    assert api.objects[PATH]["data"]["text"] == "of another"


FAILED = """Internal error occurred: failed calling webhook "validatejob.volcano.sh": failed to call webhook: Post \
"https://webhooks.pages.svc:443/jobs/validate?timeout=10s": """
STANDINGS = {
    "volcano": {JOBS.id: KindStatus(phase=Phase.LIVE), JOB_FLOWS.id: KindStatus(phase=Phase.ABSENT)},
    "plain": {JOBS.id: KindStatus(phase=Phase.ABSENT)}, "unknown": {},
}  # fmt: skip


def test_webhook_that_does_not_answer_is_named_with_its_cause_and_a_remedy():
    error = calls.unasked("dev", InternalError(f"{FAILED}dial tcp 10.0.0.7:443: connect: refused"))
    asks = "asks the admission webhook validatejob.volcano.sh about such changes, which does not answer"
    assert (error.code, f"{asks} (dial tcp 10.0.0.7:443: connect: refused)" in error.message) == (503, True)
    other = InternalError("etcd is full")
    assert calls.unasked("dev", other) is other


@blocks("ways", folder="cluster")
def test_what_may_not_be_changed_in_a_cluster_is_refused(block, golden):
    refusal = of_values(lambda way, of, *asked: ways.permits("dev", way, STANDINGS[of]).refusal(*asked))
    golden(block, refusal)


def test_what_the_cluster_refuses_nobody_may(monkeypatch):
    monkeypatch.setattr(authorizer, "_refused", None)  # what it is now comes back
    access.refuse(ways.permits("dev", "read-only", STANDINGS["volcano"]).refusal)
    for actor in (access.SYSTEM, access.Actor("somebody")):
        assert not access.allowed(actor, "create", JOBS, "default", owner=actor.name)
        with pytest.raises(Forbidden, match="These pages only show the cluster dev"):
            access.require(actor, "create", JOBS, "default")


def test_deleting_many_reads_the_mirror_as_often_as_deleting_one(api, django_assert_max_num_queries):
    names = [f"many-{number}" for number in range(20)]
    for name in names:
        obj = config("9", "one of many", uid=f"uid-{name}")
        obj["metadata"]["name"] = name
        store.write(Mirror(CONFIGMAPS, obj))
        api.put(PATH[:-1] + name, {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}})

    def delete(*chosen):
        return deletion.delete_many(access.SYSTEM, CONFIGMAPS, [("d", name) for name in chosen], dry_run=True)

    with django_assert_max_num_queries(10) as one:
        delete("a")
    with django_assert_max_num_queries(len(one)):
        outcomes = delete(*names, "never")
    assert [each.name for each in outcomes[:-1]] == names
    assert isinstance(outcomes[-1], NotFound)
