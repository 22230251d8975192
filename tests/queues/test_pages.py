"""The pages of queues. That they are live, and show nothing of other namespaces, is asked in tests/actions."""

import pytest

from cluster.access import SYSTEM
from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.remote.in_place import InPlace
from cluster.store import Create, Patch, store
from dashboard import cluster_usage
from kube.resources import JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from tests import builders
from tests.dashboard.pages.conftest import Page, page, put, queue, reader
from tests.tables import cases
from tests.verify import render

pytestmark = pytest.mark.usefixtures("cluster")
FORM = {"weight": "1", "priority": "0", "order": "traverse", "parent": "", "reclaimable": "on"}
REPLICAS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": "w", "controller": True}
VOLCANO_JOB = builders.owner(builders.of(JOBS, "deep"), uid="w")
OLD, VISION, RESEARCH = "/queues/old/", "/queues/vision/", "/queues/research/"


def spec(name):
    return store.get(QUEUES, "", name).object["spec"]


def change(name, **fields):
    store.write(Patch(QUEUES, "", name, fields, "status" if "status" in fields else ""))


def group(name, queue="old", phase="Pending", namespace="team-a", owners=(), **spec):
    fields = {"namespace": namespace, "ownerReferences": list(owners), "status": {"phase": phase}}
    store.write(Create(POD_GROUPS, builders.pod_group(name, queue=queue, **fields, **spec)))


def wait(name, queue, cpu, **fields):
    group(name, queue, **{"minResources": {"cpu": cpu}, **fields})


def pod(name, group="", queue="", node="one", phase="Running", owners=(), namespace="team-a", cpu="1"):
    notes = {"scheduling.k8s.io/group-name": group, "scheduling.volcano.sh/queue-name": queue}
    fields = {"namespace": namespace, "nodeName": node, "status": {"phase": phase}}
    main = builders.container(requests={"cpu": cpu})
    store.write(Create(PODS, builders.pod(name, main, annotations=notes, ownerReferences=list(owners), **fields)))


def test_the_list_is_a_tree_that_can_be_sorted_by_shares(admin, reads):
    reads(admin, "/queues/ names", "/queues/?sort=-share names")
    assert page(admin, "/queues/").one(id="queue-vision").find("th").get("data-depth") == "1"


def test_a_queue_shows_its_fair_share_and_what_it_borrows(admin, reads):
    """Of 40 CPU 36 are stated for one queue; the other two have the rest, 2 each, by their equal weights."""
    reads(admin, f"{VISION} queue-use", f"{RESEARCH} queue-use")
    change("old", spec={"deserved": {"cpu": "36"}})
    change("vision", spec={"deserved": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "1"}}})
    reads(admin, *(f"/queues/{name}/ queue-share" for name in ("vision", "default", "root")))
    reads(admin, "/queues/ queue-vision queue-default")


def test_a_queue_shows_who_waits_in_it_in_order_and_what_they_ask_for(admin, alice, reads):
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7}))
    reads(admin, f"{VISION} queue-line")
    for number in range(11):
        wait(f"late-{number:02}", "vision", "1")
    wait("urgent-0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e", "vision", "3", priorityClassName="high")
    wait("hidden", "vision", "2", namespace="default", priorityClassName="high")
    reads(admin, f"{VISION} queue-line queue-share", f"{RESEARCH} queue-share")
    reads(alice, f"{VISION} queue-line")


def test_a_queue_does_not_say_that_nobody_waits_while_somebody_does(admin, reads):
    wait("series", "vision", "1", minResources={})
    reads(admin, f"{VISION} queue-share", f"{RESEARCH} queue-share")
    wait("another", "research", "1", minResources={})
    reads(admin, f"{RESEARCH} queue-share")
    wait("asks", "vision", "1")
    reads(admin, f"{RESEARCH} queue-share")


def test_a_queue_that_takes_jobs_leads_to_a_new_job_in_it(admin):
    def links(browser, name):
        actions = page(browser, f"/queues/{name}/").one(id="queue-actions")
        return [each.get("href") for each in actions.iter("a") if "New job here" in "".join(each.itertext())]

    put(queue("1e3"))
    assert [links(admin, name) for name in ("vision", "research", "root")] == [["/jobs/new/?queue=vision"], [], []]
    assert links(reader("rita", "viewer", "*"), "vision") == []
    for name, written in (("vision", "vision"), ("1e3", '"1e3"'), ("gone", "default"), ("x: y", "default")):
        form = page(admin, f"/jobs/new/?queue={name}").one(tag="textarea").text
        assert f"  queue: {written}\n  tasks:" in form


@cases("way, has_shares", {"its own scheduler works": (Remote(), False), "ours works": (InPlace(), True)})
def test_shares_are_shown_where_our_scheduler_works(admin, monkeypatch, way, has_shares):
    monkeypatch.setattr(backend, "runs", way.runs)
    assert ("that it deserves" in page(admin, VISION).text(id="queue-share")) is has_shares
    assert ("100%" in page(admin, "/queues/").text(id="queue-vision")) is has_shares


@pytest.mark.parametrize("topic", ["queues:list", "queues:detail?name=research", "dashboard:overview"])
def test_a_page_watches_all_that_it_shows_of_use(topic):
    assert {each.resource for each in render(SYSTEM, topic).watches} >= {kind.id for kind in cluster_usage.KINDS}


def test_a_queue_is_made_with_any_resource(admin):
    values = {"weight": "3", "priority": "5", "order": "fifo", "capability": "cpu: 4\nnvidia.com/gpu: 8"}
    answer = admin.post("/queues/-/new/", {**FORM, **values, "name": "gpu", "parent": "research"})
    assert answer["Location"] == "/queues/gpu/"
    wanted = {"weight": 3, "parent": "research", "capability": {"cpu": "4", "nvidia.com/gpu": "8"}, "priority": 5}
    assert {**wanted, "dequeueStrategy": "fifo"}.items() <= spec("gpu").items()


@cases("values, field", {
    "name": ({"name": "Not A Name"}, "name"), "no such parent": ({"parent": "none"}, "parent"),
    "weight": ({"weight": "0"}, "weight"), "weight is no number": ({"weight": "x"}, "weight"),
    "no colon": ({"capability": "cpu 4"}, "capability"), "no quantity": ({"capability": "cpu: lots"}, "capability"),
    "no resource's name": ({"capability": "<b>: 1"}, "capability"), "no such order": ({"order": "random"}, "order"),
    "more than it may take": ({"deserved": "cpu: 9", "capability": "cpu: 4"}, "deserved"),
    "a priority below nought": ({"priority": "-1"}, "priority"),
    "a guarantee that is not deserved": ({"guarantee": "cpu: 2"}, "deserved"),
    "more than the parent's": ({"parent": "research", "deserved": "cpu: 2", "guarantee": "cpu: 2"}, "guarantee"),
})  # fmt: skip
def test_what_is_wrong_stands_at_its_field(admin, values, field):
    document = Page(admin.post("/queues/-/new/", {**FORM, "name": "new", **values}))
    assert (document.status, bool(document.text(id=f"id_{field}_error"))) == (422, True)


def test_an_edit_changes_what_was_changed_or_taken_out_and_keeps_the_rest(admin):
    existing = {"capability": {"example.com/dongle": "2"}, "type": "kept", "dequeueStrategy": "fifo"}
    change("vision", spec=existing)
    before = spec("vision")
    capability = page(admin, f"{VISION}edit/").one(id="id_capability").text.strip()
    values = {**FORM, "weight": "9", "parent": "research", "order": "fifo"}
    admin.post(f"{VISION}edit/", {**values, "capability": capability})
    assert spec("vision") == {**before, "weight": 9}
    admin.post(f"{VISION}edit/", {**values, "capability": "memory: 1Gi"})
    assert spec("vision")["capability"] == {"memory": "1Gi"}


def test_closing_says_what_it_stops_and_the_refusal_of_a_deletion_what_to_do(admin, reads):
    reads(admin, f"{RESEARCH} close-queue")
    admin.post(f"{VISION}delete/")
    reads(admin, f"{VISION} toasts")


def test_a_group_with_a_pod_that_has_not_ended_keeps_its_queue_from_deletion(admin, reads):
    """The queue was Closed before the second pod of the series was made, and its controller has not looked since."""
    group("series", phase="Completed")
    pod("series-0", "series", phase="Succeeded")
    pod("series-1", "series", phase="Pending", node="")
    reads(admin, f"{OLD} actions")
    admin.post(f"{OLD}delete/")
    reads(admin, f"{OLD} toasts")
    store.write(Patch(PODS, "team-a", "series-1", {"status": {"phase": "Failed"}}, "status"))
    assert admin.post(f"{OLD}delete/")["Location"] == "/queues/"
    assert admin.get(OLD).status_code == 404


def test_a_count_of_some_namespaces_does_not_pass_for_one_of_all(admin, alice, reads):
    reads(admin, "/queues/ queue-default", f"{OLD} table-empty")
    reads(alice, "/queues/ queue-default", f"{VISION} queue-head", "/queues/default/ table-empty")


def test_a_page_is_about_the_queue_and_those_below_it(admin, reads):
    group("deep", "vision", "Running", owners=[VOLCANO_JOB])
    change("research", status={"state": "Closing"})
    reads(admin, f"{RESEARCH} queue-head rows", f"{VISION} rows")


@cases("state, is_filled", {
    "closed and empty": ("Closed", False), "as Volcano closes": ("Closed", True), "closing": ("Closing", True),
    "its controller is behind": ("Closing", False),
})  # fmt: skip
def test_what_is_left_is_counted_and_not_what_a_status_says(admin, state, is_filled, reads):
    """Today's Volcano writes no counts into the status of a queue."""
    change("old", status={"state": state, "running": 7})
    if is_filled:
        group("waits")
    reads(admin, f"{OLD} queue-head")


def test_a_page_says_who_holds_the_queue_besides_volcano_jobs(admin, alice, reads):
    reads(admin, f"{OLD} queue-holders")
    group("podgroup-w", phase="Running", owners=[REPLICAS])
    for number in range(3):
        pod(f"web-{number}", "podgroup-w", owners=[REPLICAS], cpu="2")
    pod("web-3", "podgroup-w", owners=[REPLICAS], node="", phase="Pending")
    group("deep-0", phase="Running", owners=[VOLCANO_JOB])
    pod("deep-0", "deep-0", owners=[VOLCANO_JOB])
    pod("alone", queue="old", namespace="default")
    group("empty")
    for browser in (admin, alice):
        reads(browser, f"{OLD} queue-holders")
