"""A namespace has what every namespace has, and takes everything in it along when it goes."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.bootstrap import bootstrap
from cluster.controllers import namespaces
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
from tests import builders
from tests.tables import cases

from . import running
from .running import later, settle

pytestmark = pytest.mark.django_db(transaction=True)
AUTHORITY = "kube-root-ca.crt"


@pytest.fixture
def controller():
    return started()


def started():
    return running.started("namespaces", namespaces.NamespaceController())


def made(name="work", **spec):
    return api.create(SYSTEM, NAMESPACES, {"metadata": {"name": name}, "spec": spec})


def put(kind, name, namespace="work", **fields):
    return store.write(Create(kind, builders.of(kind, name, namespace=namespace, **fields)))[0]


def gone(name="work"):
    return api.delete(SYSTEM, NAMESPACES, "", name)


def namespace():
    return store.get(NAMESPACES, "", "work").object


def conditions():
    return {c["type"]: (c["status"], c["message"]) for c in namespace()["status"]["conditions"]}


def exists():
    return bool(store.by_keys(NAMESPACES, ["/work"]))


def accounts(name="work"):
    return [found.name for found in store.find(SERVICE_ACCOUNTS, namespace=name)]


def authority():
    return store.get(CONFIGMAPS, "work", AUTHORITY).object["data"]


def test_every_namespace_has_its_name_a_finalizer_and_the_account_default(controller):
    def has_its_own(name):
        stored = store.get(NAMESPACES, "", name).object
        assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
        assert (stored["spec"]["finalizers"], stored["status"]["phase"]) == (["kubernetes"], "Active")

    bootstrap()
    made()
    has_its_own("work")
    store.write(Create(NAMESPACES, {"metadata": {"name": "by-hand"}}))
    settle(controller)
    has_its_own("by-hand")
    for name in ("work", "default", "kube-system", "kube-public"):
        assert accounts(name) == ["default"]
    store.write(Delete(SERVICE_ACCOUNTS, "work", "default"))
    settle(controller)
    assert accounts() == ["default"]
    api.update(SYSTEM, NAMESPACES, {**namespace(), "spec": {}})
    assert namespace()["spec"]["finalizers"] == ["kubernetes"]
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            gone(name)


def test_programs_in_a_namespace_find_the_authority_of_the_api(tmp_path, settings):
    settings.DATA, settings.API_CERTIFICATE, settings.API_CERTIFICATE_CA = tmp_path, None, None
    made()
    started()
    assert store.find(CONFIGMAPS) == []
    (tmp_path / "pki").mkdir()
    for text in ("first", "second"):
        (tmp_path / "pki" / "ca.crt").write_text(text)
        controller = started()
        assert authority() == {"ca.crt": text}
    for write in (
        Delete(CONFIGMAPS, "work", AUTHORITY),
        Patch(CONFIGMAPS, "work", AUTHORITY, {"data": {"ca.crt": "another", "more": "x"}}),
    ):
        store.write(write)
        settle(controller)
        assert authority() == {"ca.crt": "second"}, "at once"


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
    assert [kind.id for kind in namespaces._kinds() if store.find(kind, namespace="work")] == []
    assert "kept" in [found.name for found in store.find(CONFIGMAPS, namespace="other")]


def test_nothing_new_comes_into_a_namespace_that_goes_and_what_comes_all_the_same_goes_too(controller):
    made()
    gone()
    with pytest.raises(Forbidden) as refused:
        api.create(SYSTEM, CONFIGMAPS, builders.config_map("x", "work"))
    assert refused.value.message == "unable to create new content in namespace work because it is being terminated"
    assert [cause.reason for cause in refused.value.causes] == ["NamespaceTerminating"]
    settle(controller)
    assert not exists()
    put(PODS, "late")
    later(controller)
    with pytest.raises(NotFound):
        store.get(PODS, "work", "late")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_namespace_waits_for_the_grace_of_its_pods_and_for_finalizers_and_says_so(controller, restarts):
    made()
    put(PODS, "p", nodeName="n")
    put(CONFIGMAPS, "held", finalizers=["example.com/hold"])
    gone()
    settle(controller)
    assert "deletionTimestamp" in store.get(PODS, "work", "p").object["metadata"]
    left = "Some resources are remaining: configmaps. has 1 resource instances, pods. has 1 resource instances"
    held = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    assert conditions()["NamespaceContentRemaining"] == ("True", left)
    assert conditions()["NamespaceFinalizersRemaining"] == ("True", held)
    assert conditions()["NamespaceDeletionContentFailure"][0] == "False"
    if restarts:
        controller = started()
    store.write(Delete(PODS, "work", "p", grace=0))
    later(controller)
    assert conditions()["NamespaceContentRemaining"][1].endswith("configmaps. has 1 resource instances")
    store.write(Patch(CONFIGMAPS, "work", "held", {"metadata": {"finalizers": None}}))
    later(controller)
    assert not exists()


def test_more_than_one_transaction_holds_are_deleted_and_a_new_namespace_of_the_name_keeps_its_own(
    controller, monkeypatch
):
    monkeypatch.setattr(namespaces, "ROOM", 3)
    made()
    for number in range(10):
        put(CONFIGMAPS, f"c{number}")
    gone()
    later(controller)
    assert not exists()
    made()
    put(CONFIGMAPS, "new")
    later(controller)
    assert store.get(CONFIGMAPS, "work", "new")


@cases("maker", {"CronJob": CRON_JOBS, "JobFlow": JOB_FLOWS})
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
    made(finalizers=["example.com/mine"])
    gone()
    settle(controller)
    stored = namespace()
    assert stored["spec"]["finalizers"] == ["example.com/mine"]
    api.update(SYSTEM, NAMESPACES, {**stored, "spec": {"finalizers": []}}, subresource="finalize")
    assert not exists()
