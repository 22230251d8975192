"""Whether Volcano's own programs work on a cluster that is theirs, and who says so where they do not."""

import pytest

from apiserver import health
from cluster import clock
from cluster.remote import freshness, recorder
from cluster.remote.door import server
from cluster.remote.leader_election import lease, volcano
from cluster.remote.leader_election.lease import DURATION_S, ObservedLease
from cluster.remote.leader_election.volcano import VolcanoWatch
from cluster.store import store
from cluster.writes import Mirror
from kube.resources import PODS
from tests.builders import pod
from tests.cluster.remote.servers import ObjectServer, connected
from tests.tables import cases

pytestmark = pytest.mark.django_db
LEASES = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
CONTROLLERS, SCHEDULER = "vc-controller-manager", "vc-scheduler"
NONE = "Volcano's {} does not run there: it has neither a Lease nor a pod."
SILENT = "Volcano's {} has not renewed its Lease since 3."


def held(since):
    return ObservedLease("1", "somebody", DURATION_S, since)


@cases("observed, sentences", {
    "both renew their Leases": ({CONTROLLERS: held(95), SCHEDULER: held(90)}, []),
    "a newer scheduler's Lease has another name": ({CONTROLLERS: held(95), "volcano": held(90)}, []),
    "the scheduler is dead": ({CONTROLLERS: held(95), SCHEDULER: held(3)}, [SILENT.format("scheduler")]),
    "a pod that hangs renews no Lease": ({CONTROLLERS: held(95), SCHEDULER: held(3), "volcano-scheduler": held(100)}, [SILENT.format("scheduler")]),
    "they have pods and need no Lease": ({"volcano-controller": held(100), "volcano-scheduler": held(100)}, []),
    "definitions alone": ({}, [NONE.format("controller manager"), NONE.format("scheduler")]),
    "a Lease that is not there": ({CONTROLLERS: held(95), SCHEDULER: ObservedLease()}, [NONE.format("scheduler")]),
})  # fmt: skip
def test_a_program_works_that_renews_its_lease_or_has_none_and_a_pod(observed, sentences):
    assert lease.absence(observed, 100.0, lambda moment: f"{moment:g}") == " ".join(sentences)


@pytest.fixture
def cluster(tmp_path, settings):
    """A cluster with Volcano, beside which these pages are."""
    running = ObjectServer()
    settings.WAY, settings.IMPERSONATE = "beside", False
    with connected(running, tmp_path, settings):
        recorder.claim("https://one")
        for name in (CONTROLLERS, SCHEDULER):
            renew(running, name, 1)
        yield running


def renew(server, name, version):
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": DURATION_S, "leaseTransitions": version}
    server.put(f"{LEASES}/{name}", {"metadata": {"name": name}, "spec": spec})


def test_who_stops_to_renew_is_named_to_whoever_looks_and_forgotten_when_he_does_again(cluster, monkeypatch):
    watch, now, begun = VolcanoWatch(server.connection), 0.0, clock.milliseconds()
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    monkeypatch.setattr(clock, "milliseconds", lambda: begun + int(now * 1000))

    def look():
        volcano.note(watch.look(volcano.running_pods()))
        return freshness.absence()

    assert look() == ""
    now += DURATION_S
    renew(cluster, CONTROLLERS, 2)
    text = look()
    assert text.startswith("Volcano's scheduler has not renewed its Lease since ")
    now += 600
    renew(cluster, CONTROLLERS, 3)
    assert look() == text, "the time at which it was seen last stays"
    renew(cluster, SCHEDULER, 2)
    assert look() == ""


def test_pods_of_the_mirror_count_where_there_is_no_lease_and_where_leases_may_not_be_read_nothing_is_said(cluster):
    watch = VolcanoWatch(server.connection)
    cluster.objects.clear()
    assert "scheduler does not run there" in watch.look(volcano.running_pods())
    for app in lease.APPS:
        store.write(
            Mirror(
                PODS,
                pod(
                    app,
                    namespace="volcano-system",
                    uid=app,
                    resourceVersion="1",
                    labels={"app": app},
                    status={"phase": "Running"},
                ),
            )
        )
    assert watch.look(volcano.running_pods()) == ""
    cluster.denied["GET", SCHEDULER] = 403
    assert VolcanoWatch(server.connection).look(volcano.running_pods()) == ""


def test_where_an_installation_of_these_pages_works_nothing_is_missing(cluster):
    cluster.objects.clear()
    renew(cluster, lease.NAME, 1)
    assert VolcanoWatch(server.connection).look(volcano.running_pods()) == ""
    cluster.objects.clear()
    watch = VolcanoWatch(server.connection)
    assert "does not run there" in watch.look(volcano.running_pods())
    cluster.objects["/version"] = {"gitVersion": health.VERSION}
    assert VolcanoWatch(server.connection).look(volcano.running_pods()) == ""
