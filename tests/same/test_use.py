"""How much CPU of a node is used is the same to everybody who asks: scheduler, pages, editor."""

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from dashboard import cluster_usage, queue_room
from kube.resources import NAMESPACES, PODS
from scheduler.consumer import SchedulerConsumer
from tests.dashboard.pages.conftest import admin, node, page, put  # noqa: F401  admin is a fixture
from tests.same import differing

PLACED = Patch(PODS, "ns", "p", {"spec": {"nodeName": "n"}})
FAILS = Patch(PODS, "ns", "p", {"status": {"phase": "Failed"}}, "status")
SITUATIONS = [
    # what it shows                             the pod                          what happens then              used
    ("it runs",                                 {"phase": "Running"},            None,                          3),
    ("it starts",                               {"phase": "Pending"},            None,                          3),
    ("it has no node yet",                      {"phase": "Pending", "node": ""}, None,                         0),
    ("it gets its node",                        {"phase": "Pending", "node": ""}, PLACED,                        3),
    ("it has succeeded",                        {"phase": "Succeeded"},          None,                          0),
    ("it fails",                                {"phase": "Running"},            FAILS,                         0),
    ("it is asked to end, and has not yet",     {"phase": "Running"},            Delete(PODS, "ns", "p"),       3),
    ("it is removed",                           {"phase": "Running"},            Delete(PODS, "ns", "p", grace=0), 0),
    ("nobody hears of it",                      {"phase": "Unknown"},            None,                          3),
    ("it is another scheduler's",               {"phase": "Running", "scheduler": "another"}, None,             3),
]  # fmt: skip


def run(phase, node="n", scheduler="volcano"):
    containers = [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]
    spec = {"nodeName": node, "schedulerName": scheduler, "containers": containers}
    store.write(Create(PODS, {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec, "status": {"phase": phase}}))


class Followers:
    """Who follows the log: each has read all that was there before the last change."""

    def __init__(self):
        self.scheduler, self.revision = SchedulerConsumer(), store.revision()
        self.snapshot = self.scheduler.load(0, self.revision)
        self.follow()

    def follow(self):
        for change in store.changes(self.revision, (PODS,)):
            self.scheduler.apply(self.snapshot, change)
        self.revision = store.revision()
        with cluster_usage.current(self.revision):
            pass


def of_snapshot(snapshot):
    return snapshot.nodes.used_by_node().get("n", {}).get("cpu", 0) / 1000


def of_picture(picture):
    return picture.on_node.get("n", {}).get("cpu", 0) / 1000


def followed_picture(*_):
    with cluster_usage.current(store.revision()) as picture:
        return of_picture(picture)


def used_of(address, part):
    """The number before "of 8" in a part of a page."""

    def tell(_, browser):
        words = page(browser, address).text(id=part).split()
        at = next(n for n in range(len(words)) if words[n : n + 2] == ["of", "8"])
        return float(words[at - 1])

    return tell


def offered_by_the_editor(*_):
    with cluster_usage.current(store.revision()) as picture:
        room = next(room for room in queue_room.rooms(picture, {}) if room.name == "default")
    return 8 - room.real.free["cpu"] / 1000


PLACES = {
    "scheduler": lambda who, _: of_snapshot(who.snapshot),
    "scheduler, loaded": lambda who, _: of_snapshot(who.scheduler.load(0, store.revision())),
    "picture": followed_picture,
    "picture, loaded": lambda *_: of_picture(cluster_usage.Picture.loaded(store.revision())),
    "page of the node": used_of("/nodes/n/", "node-use"),
    "list of nodes": used_of("/nodes/", "table-rows"),
    "overview, nodes": used_of("/", "overview-nodes"),
    "overview, in all": used_of("/", "overview-tiles"),
    "editor": offered_by_the_editor,
}


@pytest.mark.parametrize(("pod", "then", "used"), [pytest.param(*row, id=what) for what, *row in SITUATIONS])
def test_everybody_counts_the_same_as_used(admin, pod, then, used):  # noqa: F811
    bootstrap()
    put(node("n", cpu="8"), (NAMESPACES, {"metadata": {"name": "ns"}}))
    run(**pod)
    who = Followers()
    if then:
        store.write(then)
    who.follow()
    assert differing(PLACES, used, who, admin) == {}
