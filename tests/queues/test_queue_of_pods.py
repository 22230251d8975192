"""Which queue a pod uses is the same to everybody who asks: scheduler, queue status, pages and filters."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from dashboard import cluster_usage
from kube.resources import NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES
from queues.controller import PAUSE_MS, QueueConsumer
from scheduler.consumer import SchedulerConsumer
from tests.dashboard.pages.conftest import admin, page  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]

GROUP, QUEUE, OWN_QUEUE = (
    "scheduling.k8s.io/group-name",
    "volcano.sh/queue-name",
    "scheduling.volcano.sh/queue-name",
)
QUEUES_HERE = ("default", "one", "two")


def furnish():
    bootstrap()
    size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    status = {"allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
    store.write(Create(NODES, {"metadata": {"name": "n"}, "spec": {}, "status": status}))
    for name in ("one", "two"):
        spec = {"weight": 1, "parent": "root", "state": "Open"}
        store.write(Create(QUEUES, {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}))
    store.write(Create(NAMESPACES, {"metadata": {"name": "ns"}}))
    metadata = {"name": "g", "namespace": "ns"}
    group = {"metadata": metadata, "spec": {"queue": "one", "minMember": 1}, "status": {"phase": "Running"}}
    store.write(Create(POD_GROUPS, group))


def run_pod(annotations, scheduler="volcano"):
    spec = {
        "nodeName": "n",
        "schedulerName": scheduler,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
    }
    metadata = {"name": "p", "namespace": "ns", "annotations": annotations}
    store.write(Create(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}))


class Everybody:
    """All who count pods by queue. They look before the last change, so that they follow it."""

    def __init__(self, time):
        self.time = time
        cluster_usage.forget()
        self.controller = Runner(registry.get("queues"), 0, QueueConsumer())
        self.scheduler = SchedulerConsumer()
        self.revision = store.revision()
        self.snapshot = self.scheduler.load(0, self.revision)
        self.settle()

    def settle(self):
        self.time.move(PAUSE_MS / 1000)
        while self.controller.step():
            self.time.move(PAUSE_MS / 1000)
        changes = store.changes(self.revision, tuple(registry.get("scheduler").resources))
        for change in changes:
            self.scheduler.apply(self.snapshot, change)
        self.revision = changes[-1].revision if changes else self.revision
        with cluster_usage.current(store.revision()) as shown:
            self.shown = {name for name, taken in shown.in_queue.items() if taken.get("cpu")}

    def answers(self, browser):
        fresh = self.scheduler.load(0, store.revision())
        loaded = cluster_usage.Picture.loaded(store.revision())
        pages = {name: page(browser, f"/queues/{name}/").text(id="queue-use") for name in QUEUES_HERE}
        overview = page(browser, "/").one(id="overview-queues")
        rows = [row for row in overview.iter("tr") if "3 of 8" in "".join(row.itertext())]
        allocated = {q: store.get(QUEUES, "", q).object["status"]["allocated"]["cpu"] for q in QUEUES_HERE}
        return {
            "scheduler": {queue for queue, _ in self.snapshot.usage},
            "scheduler, loaded": {queue for queue, _ in fresh.usage},
            "status": {name for name, cpu in allocated.items() if cpu == "3"},
            "picture": self.shown,
            "picture, loaded": {name for name, taken in loaded.in_queue.items() if taken.get("cpu")},
            "queue page": {name for name, text in pages.items() if "3 of 8" in text},
            "overview": {name for name in QUEUES_HERE for row in rows if name in "".join(row.itertext())},
        }


def nothing():
    pass


def group_moves():
    store.write(Patch(POD_GROUPS, "ns", "g", {"spec": {"queue": "two"}}))


def group_goes():
    store.write(Delete(POD_GROUPS, "ns", "g"))


def namespace_names_two():
    store.write(Patch(NAMESPACES, "", "ns", {"metadata": {"annotations": {OWN_QUEUE: "two"}}}))


@pytest.mark.shows(
    "scheduler 1.3/group-name", "groups 3.5/queue-name", "groups 3.5/queue-name of a namespace"
)
@pytest.mark.parametrize(
    ("annotations", "meanwhile", "queue"),
    [
        pytest.param({GROUP: "g", QUEUE: "one"}, nothing, "one", id="pod of a job"),
        pytest.param({GROUP: "g"}, nothing, "one", id="made by kubectl, without the annotation"),
        pytest.param({GROUP: "g", QUEUE: "two"}, nothing, "one", id="the group rules over the annotation"),
        pytest.param({GROUP: "g", QUEUE: "one"}, group_moves, "two", id="a group that moved takes its pods"),
        pytest.param({GROUP: "g", QUEUE: "two"}, group_goes, "two", id="group that is gone"),
        pytest.param({GROUP: "none"}, nothing, "default", id="group that never was"),
        pytest.param({OWN_QUEUE: "two", QUEUE: "one"}, nothing, "two", id="no group, but a queue"),
        pytest.param({}, nothing, "default", id="neither"),
        pytest.param({}, namespace_names_two, "two", id="the namespace names a queue"),
        pytest.param(
            {QUEUE: "one"}, namespace_names_two, "one", id="the pod's wish goes before its namespace"
        ),
    ],
)
def test_everybody_counts_a_pod_in_the_same_queue(moved_clock, admin, annotations, meanwhile, queue):  # noqa: F811
    furnish()
    run_pod(annotations)
    everybody = Everybody(moved_clock)
    meanwhile()
    everybody.settle()
    answers = everybody.answers(admin)
    assert answers == {key: {queue} for key in answers}
    cluster_usage.forget()


def test_a_pod_of_another_scheduler_is_in_no_queue(moved_clock, admin):  # noqa: F811
    furnish()
    run_pod({GROUP: "g", QUEUE: "one"}, scheduler="another")
    answers = Everybody(moved_clock).answers(admin)
    assert answers == {key: set() for key in answers}
    cluster_usage.forget()


@pytest.mark.shows("scheduler 1.4/queue")
def test_pod_groups_are_found_by_their_queue_and_pods_by_none():
    furnish()
    store.write(Create(POD_GROUPS, {"metadata": {"name": "plain", "namespace": "ns"}, "spec": {}}))
    run_pod({QUEUE: "one"})
    assert store.count(POD_GROUPS, by="queue") == {"one": 1, "default": 1}
    assert store.count(PODS, by="queue") == {"": 1}
