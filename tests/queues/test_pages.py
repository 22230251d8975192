"""The pages of queues. That they are live, and show nothing of other namespaces, is asked in tests/actions."""

from __future__ import annotations

import pytest

from cluster.access import SYSTEM
from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.remote.in_place import InPlace
from cluster.store import Create, Patch, store
from dashboard import cluster_usage
from dashboard.live import topics
from kube.resources import JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from scheduler import waiting_lines
from tests import builders
from tests.dashboard.pages.conftest import Page, admin, alice, cluster, operator, page, put, queue, reader
from tests.tables import cases

__all__ = ["admin", "alice", "cluster", "operator"]  # fixtures
pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def _picture():
    for each in (cluster_usage, waiting_lines):
        each.forget()
    yield
    for each in (cluster_usage, waiting_lines):
        each.forget()


FORM = {"weight": "1", "priority": "0", "order": "traverse", "parent": "", "reclaimable": "on"}
REPLICAS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": "w", "controller": True}
VOLCANO_JOB = builders.owner(builders.of(JOBS, "deep"), uid="w")


def spec(name):
    return store.get(QUEUES, "", name).object["spec"]


def change(name, **fields):
    store.write(Patch(QUEUES, "", name, fields, "status" if "status" in fields else ""))


def text(browser, name, part):
    """A part of the page of a queue, or of the list of all."""
    return page(browser, f"/queues/{name}/" if name else "/queues/").text(id=part)


def group(name, queue="old", phase="Pending", namespace="team-a", owners=(), **spec):
    fields = {"namespace": namespace, "ownerReferences": list(owners), "status": {"phase": phase}}
    store.write(Create(POD_GROUPS, builders.pod_group(name, queue=queue, **fields, **spec)))


def wait(name, queue, cpu, **fields):
    group(name, queue, **{"minResources": {"cpu": cpu}, **fields})


def pod(name, group="", queue="", node="one", phase="Running", owners=(), namespace="team-a", cpu="1"):
    notes = {"scheduling.k8s.io/group-name": group, "scheduling.volcano.sh/queue-name": queue}
    place = {"namespace": namespace, "nodeName": node, "status": {"phase": phase}}
    main = builders.container(requests={"cpu": cpu})
    store.write(Create(PODS, builders.pod(name, main, annotations=notes, ownerReferences=list(owners), **place)))


def test_the_list_is_a_tree_that_can_be_sorted_by_shares(admin):
    shown = page(admin, "/queues/")
    assert shown.rows() == ["queue-default", "queue-old", "queue-research", "queue-vision"]
    assert shown.one(id="queue-vision").find("th").get("data-depth") == "1"
    rows = page(admin, "/queues/?sort=-share").rows()
    assert rows == ["queue-vision", "queue-research", "queue-default", "queue-old"]


def test_a_queue_shows_its_fair_share_and_what_it_borrows(admin):
    """Of 40 CPU 36 are stated for one queue; the other two have the rest, 2 each, by their equal weights."""
    assert "4 of 4" in text(admin, "vision", "queue-use")
    assert "4 of 40" in text(admin, "research", "queue-use")
    change("old", spec={"deserved": {"cpu": "36"}})
    change("vision", spec={"deserved": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "1"}}})
    shown = text(admin, "vision", "queue-share")
    assert "It uses 4 CPU, 3 CPU more than it deserves; nobody waits for more." in shown
    assert "CPU: 1 guaranteed, 1 deserved, 4 used, 3 borrowed 1 1 4 3 0 4" in shown
    shown = text(admin, "default", "queue-share")
    assert "It uses 2 CPU of the 2 CPU that it deserves" in shown
    assert "CPU: 2 deserved, 2 used – 2 2 0 0 40" in shown
    assert "400%, borrows 3 CPU" in text(admin, "", "queue-vision")
    assert "100%" in text(admin, "", "queue-default")
    assert text(admin, "root", "queue-share") == ""


def test_a_queue_shows_who_waits_in_it_in_order_and_what_they_ask_for(admin, alice):
    assert text(admin, "vision", "queue-line") == ""
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7}))
    for number in range(11):
        wait(f"late-{number:02}", "vision", "1")
    wait("urgent-0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e", "vision", "3", priorityClassName="high")
    wait("hidden", "vision", "2", namespace="default", priorityClassName="high")
    shown = text(admin, "vision", "queue-line")
    assert "13 in this queue" in shown
    assert "team-a / urgent 7 3 CPU" in shown
    assert shown.index("urgent") < shown.index("late-00") < shown.index("late-07")
    assert "and 3 more behind them" in shown
    assert "16 CPU" in text(admin, "vision", "queue-share")
    assert "jobs that wait ask for 16 CPU." in text(admin, "research", "queue-share")
    seen = text(alice, "vision", "queue-line")
    assert "hidden" not in seen
    assert "of a namespace that you may not see 7 –" in seen


def test_a_queue_does_not_say_that_nobody_waits_while_somebody_does(admin):
    wait("series", "vision", "1", minResources={})
    for name in ("vision", "research"):
        assert "; 1 pod group waits, with a minimum that names no CPU." in text(admin, name, "queue-share")
    wait("another", "research", "1", minResources={})
    assert "2 pod groups wait" in text(admin, "research", "queue-share")
    wait("asks", "vision", "1")
    assert "jobs that wait ask for 1 CPU." in text(admin, "research", "queue-share")


def test_a_queue_that_takes_jobs_leads_to_a_new_job_in_it(admin):
    def links(browser, name):
        shown = page(browser, f"/queues/{name}/").one(id="queue-actions")
        return [each.get("href") for each in shown.iter("a") if "New job here" in "".join(each.itertext())]

    put(queue("1e3"))
    assert [links(admin, name) for name in ("vision", "research", "root")] == [["/jobs/new/?queue=vision"], [], []]
    assert links(reader("rita", "viewer", "*"), "vision") == []
    for name, written in (("vision", "vision"), ("1e3", '"1e3"'), ("gone", "default"), ("x: y", "default")):
        form = page(admin, f"/jobs/new/?queue={name}").one(tag="textarea").text
        assert f"  queue: {written}\n  tasks:" in form


@cases("way, shown", {
    "a cluster whose own scheduler works": (Remote(), False),
    "a cluster on which ours works": (InPlace(), True),
})  # fmt: skip
def test_shares_are_shown_where_our_scheduler_works(admin, monkeypatch, way, shown):
    monkeypatch.setattr(backend, "runs", way.runs)
    assert ("that it deserves" in text(admin, "vision", "queue-share")) is shown
    assert ("100%" in text(admin, "", "queue-vision")) is shown


@pytest.mark.parametrize("topic", ["queues:list", "queues:detail?name=research", "dashboard:overview"])
def test_a_page_watches_all_that_it_shows_of_use(topic):
    name, params = topics.parse(topic)
    watches = topics.find(name)(topics.TopicRequest(SYSTEM, params)).watches
    assert {each.resource for each in watches} >= {kind.id for kind in cluster_usage.KINDS}


def test_a_queue_is_made_with_any_resource(admin):
    values = {"weight": "3", "priority": "5", "order": "fifo", "capability": "cpu: 4\nnvidia.com/gpu: 8"}
    answer = admin.post("/queues/-/new/", {**FORM, **values, "name": "gpu", "parent": "research"})
    assert answer["Location"] == "/queues/gpu/"
    made = spec("gpu")
    assert (made["weight"], made["parent"], made["capability"]) == (3, "research", {"cpu": "4", "nvidia.com/gpu": "8"})
    assert (made["priority"], made["dequeueStrategy"]) == (5, "fifo")


@cases("values, field", {
    "name": ({"name": "Not A Name"}, "id_name"),
    "weight": ({"weight": "0"}, "id_weight"),
    "weight is no number": ({"weight": "x"}, "id_weight"),
    "no colon": ({"capability": "cpu 4"}, "id_capability"),
    "no quantity": ({"capability": "cpu: lots"}, "id_capability"),
    "no resource's name": ({"capability": "<b>: 1"}, "id_capability"),
    "more than it may take": ({"deserved": "cpu: 9", "capability": "cpu: 4"}, "id_deserved"),
    "no such parent": ({"parent": "none"}, "id_parent"),
    "a priority below nought": ({"priority": "-1"}, "id_priority"),
    "no such order": ({"order": "random"}, "id_order"),
    "a guarantee that is not deserved": ({"guarantee": "cpu: 2"}, "id_deserved"),
    "more than the parent's": ({"parent": "research", "deserved": "cpu: 2", "guarantee": "cpu: 2"}, "id_guarantee"),
})  # fmt: skip
def test_what_is_wrong_stands_at_its_field(admin, values, field):
    shown = Page(admin.post("/queues/-/new/", {**FORM, "name": "new", **values}))
    assert shown.status == 422
    assert shown.text(id=f"{field}_error")


def test_an_edit_changes_what_was_changed_or_taken_out_and_keeps_the_rest(admin):
    kept = {"capability": {"example.com/dongle": "2"}, "type": "kept", "dequeueStrategy": "fifo"}
    change("vision", spec=kept)
    before = spec("vision")
    capability = page(admin, "/queues/vision/edit/").one(id="id_capability").text.strip()
    values = {**FORM, "weight": "9", "parent": "research", "order": "fifo"}
    admin.post("/queues/vision/edit/", {**values, "capability": capability})
    assert spec("vision") == {**before, "weight": 9}
    admin.post("/queues/vision/edit/", {**values, "capability": "memory: 1Gi"})
    assert spec("vision")["capability"] == {"memory": "1Gi"}


def test_an_operator_opens_and_closes_but_does_not_edit_and_a_viewer_has_no_button(operator, alice):
    assert "/queues/vision/close/" in page(operator, "/queues/vision/").actions()
    assert operator.get("/queues/vision/edit/").status_code == 403
    operator.post("/queues/vision/close/")
    assert spec("vision")["state"] == "Closed"
    operator.post("/queues/vision/open/")
    assert spec("vision")["state"] == "Open"
    assert not [action for action in page(alice, "/queues/vision/").actions() if "/queues/" in action]


def test_closing_says_what_it_stops_and_the_refusal_of_a_deletion_what_to_do(admin):
    said = text(admin, "research", "close-queue")
    assert "and the 1 below it" in said
    assert "1 running and 0 waiting jobs" in said
    admin.post("/queues/vision/delete/")
    assert "lose" in text(admin, "vision", "toasts")


def test_a_group_with_a_pod_that_has_not_ended_keeps_its_queue_from_deletion(admin):
    """The queue was Closed before the second pod of the series was made, and its controller has not looked since."""
    group("series", phase="Completed")
    pod("series-0", "series", phase="Succeeded")
    pod("series-1", "series", phase="Pending", node="")
    assert "/queues/old/delete/" in page(admin, "/queues/old/").actions()
    admin.post("/queues/old/delete/")
    assert "wait until what is left in it has ended" in text(admin, "old", "toasts")
    store.write(Patch(PODS, "team-a", "series-1", {"status": {"phase": "Failed"}}, "status"))
    assert admin.post("/queues/old/delete/")["Location"] == "/queues/"
    assert admin.get("/queues/old/").status_code == 404


def test_a_count_of_some_namespaces_does_not_pass_for_one_of_all(admin, alice):
    assert "of yours" not in text(admin, "", "queue-default")
    assert text(alice, "", "queue-default").count("0 of yours") == 2
    assert text(alice, "vision", "queue-head").count("of yours") == 2
    assert "No job of your namespaces is in this queue" in text(alice, "default", "table-empty")
    assert "No job is in this queue" in text(admin, "old", "table-empty")


def test_a_page_is_about_the_queue_and_those_below_it(admin):
    group("deep", "vision", "Running", owners=[VOLCANO_JOB])
    change("research", status={"state": "Closing"})
    left = "1 unfinished pod group is left (1 running) and 2 pods without a group are left"
    shown = page(admin, "/queues/research/")
    assert f"{left}, with those in the queues below; then it is Closed." in shown.text(id="queue-head")
    (row,) = shown.rows()
    assert "team-a / train" in shown.text(id=row)
    assert "in vision" in shown.text(id=row)
    shown = page(admin, "/queues/vision/")
    assert shown.rows() == [row]
    assert "in vision" not in shown.text(id=row)


@cases("state, is_filled, said", {
    "closed and empty": ("Closed", False, "takes no jobs and is empty."),
    "as Volcano closes": ("Closed", True, "takes no jobs; 1 unfinished pod group is left (1 pending)."),
    "closing": ("Closing", True, "1 unfinished pod group is left (1 pending); then it is Closed."),
    "its controller is behind": ("Closing", False, "The queue takes no new jobs."),
})  # fmt: skip
def test_what_is_left_is_counted_and_not_what_a_status_says(admin, state, is_filled, said):
    """Today's Volcano writes no counts into the status of a queue."""
    change("old", status={"state": state, "running": 7})
    if is_filled:
        group("waits")
    assert said in text(admin, "old", "queue-head")


def test_a_page_says_who_holds_the_queue_besides_volcano_jobs(admin, alice):
    assert text(admin, "old", "queue-holders") == ""
    group("podgroup-w", phase="Running", owners=[REPLICAS])
    for number in range(3):
        pod(f"web-{number}", "podgroup-w", owners=[REPLICAS], cpu="2")
    pod("web-3", "podgroup-w", owners=[REPLICAS], node="", phase="Pending")
    group("deep-0", phase="Running", owners=[VOLCANO_JOB])
    pod("deep-0", "deep-0", owners=[VOLCANO_JOB])
    pod("alone", queue="old", namespace="default")
    group("empty")
    shown = text(admin, "old", "queue-holders")
    assert "team-a / ReplicaSet web-7d9f 3 1 6 CPU" in shown
    assert "default / Pod alone 1 0 1 CPU" in shown
    assert "team-a / PodGroup empty 0 0 nothing" in shown
    assert "deep" not in shown
    seen = text(alice, "old", "queue-holders")
    assert "web-7d9f" in seen
    assert "alone" not in seen
    assert "of namespaces that you may not see 1 0 1 CPU" in seen
