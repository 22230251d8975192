"""A namespace has what every namespace has, and takes everything in it along when it goes."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from cluster import access, api, clock
from cluster.bootstrap import bootstrap
from cluster.controllers import namespaces
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from kube.errors import Forbidden, NotFound
from kube.resources import (
    BATCH_JOBS,
    CONFIGMAPS,
    CRON_JOBS,
    EVENTS,
    JOB_FLOWS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def controller():
    return started()


def started():
    runner = Runner(registry.get("namespaces"), 0, namespaces.NamespaceController())
    settle(runner)
    return runner


def settle(runner):
    while runner.step():
        pass


def make_timers_due():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_timer SET due = %s", [clock.milliseconds() - 1])


def later(runner):
    make_timers_due()
    settle(runner)


def made(name="work"):
    return api.create(access.SYSTEM, NAMESPACES, {"metadata": {"name": name}})


def put(kind, name, namespace="work", **metadata):
    spec = metadata.pop("spec", {})
    meta = {"name": name, "namespace": namespace, **metadata}
    return store.write(Create(kind, {"metadata": meta, "spec": spec}))[0]


def gone(name="work"):
    return api.delete(access.SYSTEM, NAMESPACES, "", name)


def namespace(name="work"):
    return store.get(NAMESPACES, "", name).object


def exists(name="work"):
    return bool(store.by_keys(NAMESPACES, [f"/{name}"]))


def accounts(name="work"):
    return [found.name for found in store.find(SERVICE_ACCOUNTS, namespace=name)]


def test_a_new_namespace_says_its_name_and_is_active(controller):
    made()
    stored = namespace()
    assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "work"}
    assert stored["spec"]["finalizers"] == ["kubernetes"]
    assert stored["status"]["phase"] == "Active"


def test_every_namespace_gets_the_account_default(controller):
    made()
    settle(controller)
    assert accounts() == ["default"]
    store.write(Delete(SERVICE_ACCOUNTS, "work", "default"))
    settle(controller)
    assert accounts() == ["default"]


def test_namespaces_of_the_first_moment_are_equipped_too():
    bootstrap()
    controller = started()
    assert all(accounts(name) == ["default"] for name in ("default", "kube-system", "kube-public"))
    settle(controller)


def test_a_namespace_that_was_made_without_a_finalizer_gets_one(controller):
    store.write(Create(NAMESPACES, {"metadata": {"name": "work"}}))
    settle(controller)
    stored = namespace()
    assert stored["spec"]["finalizers"] == ["kubernetes"]
    assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "work"}
    assert stored["status"] == {"phase": "Active"}


@pytest.fixture
def authority(tmp_path, settings):
    """The certificate of the API's authority."""
    settings.DATA, settings.API_CERTIFICATE, settings.API_CERTIFICATE_CA = tmp_path, None, None
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_text("authority")
    return {"ca.crt": "authority"}


@cases("write", {
    "deleted": Delete(CONFIGMAPS, "work", "kube-root-ca.crt"),
    "changed": Patch(CONFIGMAPS, "work", "kube-root-ca.crt", {"data": {"ca.crt": "another", "more": "x"}}),
})  # fmt: skip
def test_the_authority_in_a_namespace_comes_back_at_once(controller, authority, write):
    made()
    settle(controller)
    store.write(write)
    settle(controller)
    assert store.get(CONFIGMAPS, "work", "kube-root-ca.crt").object["data"] == authority


def test_programs_in_a_namespace_find_the_authority_of_the_api(tmp_path, settings):
    settings.DATA, settings.API_CERTIFICATE, settings.API_CERTIFICATE_CA = tmp_path, None, None
    made()
    started()
    assert store.find(CONFIGMAPS) == []
    (tmp_path / "pki").mkdir()
    for text in ("first", "second"):
        (tmp_path / "pki" / "ca.crt").write_text(text)
        started()
        assert store.get(CONFIGMAPS, "work", "kube-root-ca.crt").object["data"] == {"ca.crt": text}


def test_everything_in_a_namespace_goes_with_it(controller):
    made()
    made("other")
    settle(controller)
    for kind in (JOBS, BATCH_JOBS, POD_GROUPS, PODS, CONFIGMAPS, SECRETS, EVENTS):
        put(kind, "x")
    put(CONFIGMAPS, "kept", "other")
    assert gone().object["status"]["phase"] == "Terminating"
    settle(controller)
    assert not exists()
    left = [kind.id for kind in namespaces._kinds() if store.find(kind, namespace="work")]
    assert left == []
    assert "kept" in [found.name for found in store.find(CONFIGMAPS, namespace="other")]


def test_an_empty_namespace_goes_at_once(controller):
    made()
    gone()
    settle(controller)
    assert not exists()


def test_nothing_new_comes_into_a_namespace_that_goes(controller):
    made()
    gone()
    with pytest.raises(Forbidden) as refused:
        api.create(access.SYSTEM, CONFIGMAPS, {"metadata": {"name": "x", "namespace": "work"}})
    assert refused.value.message == ("unable to create new content in namespace work because it is being terminated")
    assert [cause.reason for cause in refused.value.causes] == ["NamespaceTerminating"]


def test_a_namespace_waits_for_the_grace_of_its_pods_and_says_so(controller):
    made()
    put(PODS, "p", spec={"nodeName": "n"})
    gone()
    settle(controller)
    assert "deletionTimestamp" in store.get(PODS, "work", "p").object["metadata"]
    told = {c["type"]: c for c in namespace()["status"]["conditions"]}
    assert told["NamespaceContentRemaining"]["status"] == "True"
    assert told["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: pods. has 1 resource instances"
    )
    assert told["NamespaceDeletionContentFailure"]["status"] == "False"
    store.write(Delete(PODS, "work", "p", grace=0))
    later(controller)
    assert not exists()


def test_a_namespace_waits_for_finalizers_and_names_them(controller):
    made()
    put(CONFIGMAPS, "held", finalizers=["example.com/hold"])
    gone()
    settle(controller)
    told = {c["type"]: c for c in namespace()["status"]["conditions"]}
    assert told["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    store.write(Patch(CONFIGMAPS, "work", "held", {"metadata": {"finalizers": None}}))
    later(controller)
    assert not exists()


def test_a_new_process_goes_on_with_a_namespace_that_goes(controller):
    made()
    put(PODS, "p", spec={"nodeName": "n"})
    gone()
    settle(controller)
    successor = started()
    store.write(Delete(PODS, "work", "p", grace=0))
    later(successor)
    assert not exists()


def test_more_than_one_transaction_holds_are_deleted(controller, monkeypatch):
    monkeypatch.setattr(namespaces, "ROOM", 3)
    made()
    for number in range(10):
        put(CONFIGMAPS, f"c{number}")
    gone()
    later(controller)
    assert not exists()


@pytest.mark.parametrize("maker", [CRON_JOBS, JOB_FLOWS], ids=lambda kind: kind.kind)
def test_what_makes_jobs_goes_before_the_jobs(controller, monkeypatch, maker):
    monkeypatch.setattr(namespaces, "ROOM", 1)
    made()
    put(JOBS, "j")
    put(maker, "m")
    gone()
    while store.find(maker, namespace="work"):
        assert store.find(JOBS, namespace="work")
        controller.step()


def test_a_finalizer_of_somebody_else_holds_a_namespace_until_it_is_finalized(controller):
    held = {"metadata": {"name": "work"}, "spec": {"finalizers": ["example.com/mine"]}}
    api.create(access.SYSTEM, NAMESPACES, held)
    gone()
    settle(controller)
    stored = namespace()
    assert stored["spec"]["finalizers"] == ["example.com/mine"]
    stored["spec"]["finalizers"] = []
    api.update(access.SYSTEM, NAMESPACES, stored, subresource="finalize")
    assert not exists()


def test_an_update_does_not_take_the_finalizer_away(controller):
    made()
    stored = namespace()
    stored["spec"] = {}
    api.update(access.SYSTEM, NAMESPACES, stored)
    assert namespace()["spec"]["finalizers"] == ["kubernetes"]


def test_what_a_controller_made_too_late_goes_too(controller):
    made()
    gone()
    settle(controller)
    put(PODS, "late")
    later(controller)
    with pytest.raises(NotFound):
        store.get(PODS, "work", "late")


def test_a_new_namespace_of_the_same_name_keeps_what_is_in_it(controller):
    made()
    gone()
    settle(controller)
    made()
    put(CONFIGMAPS, "new")
    later(controller)
    assert store.get(CONFIGMAPS, "work", "new")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_the_first_namespaces_stay(name):
    bootstrap()
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        gone(name)
