from __future__ import annotations

import pytest

from cluster.access import SYSTEM
from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.remote.in_place import InPlace
from cluster.store import Create, Patch, store
from dashboard import cluster_usage
from dashboard.live import topics
from kube.resources import POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from scheduler import waiting_lines
from tests.dashboard.pages.conftest import Page, admin, alice, cluster, operator, page, put, queue, reader  # noqa: F401
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def _picture():
    for each in (cluster_usage, waiting_lines):
        each.forget()
    yield
    for each in (cluster_usage, waiting_lines):
        each.forget()


FORM = {"weight": "1", "priority": "0", "order": "traverse", "parent": "", "reclaimable": "on"}


def spec(name):
    return store.get(QUEUES, "", name).object["spec"]


def test_the_list_is_a_tree(admin):  # noqa: F811
    assert page(admin, "/queues/").rows() == ["queue-default", "queue-old", "queue-research", "queue-vision"]
    shown = page(admin, "/queues/").one(id="queue-vision")
    assert shown.find("th").get("data-depth") == "1"


def test_a_queue_shows_what_it_uses_of_its_capability(admin):  # noqa: F811
    assert "4 of 4" in page(admin, "/queues/vision/").text(id="queue-use")
    assert "4 of 40" in page(admin, "/queues/research/").text(id="queue-use")


def test_a_queue_shows_its_fair_share_and_what_it_borrows(admin):  # noqa: F811
    """Of 40 CPU 36 are stated for one queue; the other two have the rest, 2 each, by their equal weights."""
    store.write(Patch(QUEUES, "", "old", {"spec": {"deserved": {"cpu": "36"}}}))
    kept = {"deserved": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "1"}}}
    store.write(Patch(QUEUES, "", "vision", {"spec": kept}))
    shown = page(admin, "/queues/vision/").text(id="queue-share")
    assert "It uses 4 CPU, 3 CPU more than it deserves; nobody waits for more." in shown
    assert "CPU: 1 guaranteed, 1 deserved, 4 used, 3 borrowed 1 1 4 3 0 4" in shown
    shown = page(admin, "/queues/default/").text(id="queue-share")
    assert "It uses 2 CPU of the 2 CPU that it deserves" in shown
    assert "CPU: 2 deserved, 2 used – 2 2 0 0 40" in shown
    assert "400%, borrows 3 CPU" in page(admin, "/queues/").text(id="queue-vision")
    assert "100%" in page(admin, "/queues/").text(id="queue-default")


def wait(name, queue, cpu, namespace="team-a", **spec):
    group = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": queue, "minResources": {"cpu": cpu}, **spec},
        "status": {"phase": "Pending"},
    }
    store.write(Create(POD_GROUPS, group))


def test_a_queue_shows_who_waits_in_it_in_order_and_what_they_ask_for(admin, alice):  # noqa: F811
    assert page(admin, "/queues/vision/").text(id="queue-line") == ""
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7}))
    for number in range(11):
        wait(f"late-{number:02}", "vision", "1")
    wait("urgent-0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e", "vision", "3", priorityClassName="high")
    wait("hidden", "vision", "2", namespace="default", priorityClassName="high")
    shown = page(admin, "/queues/vision/").text(id="queue-line")
    assert "13 in this queue" in shown
    assert "team-a / urgent 7 3 CPU" in shown
    assert shown.index("urgent") < shown.index("late-00") < shown.index("late-07")
    assert "and 3 more behind them" in shown
    assert "16 CPU" in page(admin, "/queues/vision/").text(id="queue-share")
    assert "jobs that wait ask for 16 CPU." in page(admin, "/queues/research/").text(id="queue-share")
    seen = page(alice, "/queues/vision/").text(id="queue-line")
    assert "hidden" not in seen
    assert "of a namespace that you may not see 7 –" in seen


def test_a_queue_that_takes_jobs_leads_to_a_new_job_in_it(admin):  # noqa: F811
    def links(browser, name):
        shown = page(browser, f"/queues/{name}/").one(id="queue-actions")
        return [each.get("href") for each in shown.iter("a") if "New job here" in "".join(each.itertext())]

    put(queue("1e3"))
    assert [links(admin, name) for name in ("vision", "research", "root")] == [["/jobs/new/?queue=vision"], [], []]
    assert links(reader("rita", "viewer", "*"), "vision") == []
    for name, written in (("vision", "vision"), ("1e3", '"1e3"'), ("gone", "default"), ("x: y", "default")):
        text = page(admin, f"/jobs/new/?queue={name}").one(tag="textarea").text
        assert f"  queue: {written}\n  tasks:" in text


def test_a_queue_does_not_say_that_nobody_waits_while_somebody_does(admin):  # noqa: F811
    wait("series", "vision", "1", minResources={})
    for name in ("vision", "research"):
        shown = page(admin, f"/queues/{name}/").text(id="queue-share")
        assert "; 1 pod group waits, with a minimum that names no CPU." in shown
    wait("another", "research", "1", minResources={})
    assert "2 pod groups wait" in page(admin, "/queues/research/").text(id="queue-share")
    wait("asks", "vision", "1")
    assert "jobs that wait ask for 1 CPU." in page(admin, "/queues/research/").text(id="queue-share")


def test_the_list_is_sorted_by_shares(admin):  # noqa: F811
    rows = page(admin, "/queues/?sort=-share").rows()
    assert rows == ["queue-vision", "queue-research", "queue-default", "queue-old"]


@cases("way, shown", {
    "a cluster whose own scheduler works": (Remote(), False),
    "a cluster on which ours works": (InPlace(), True),
})  # fmt: skip
def test_shares_are_shown_where_our_scheduler_works(admin, monkeypatch, way, shown):  # noqa: F811
    monkeypatch.setattr(backend, "runs", way.runs)
    assert ("that it deserves" in page(admin, "/queues/vision/").text(id="queue-share")) is shown
    assert ("100%" in page(admin, "/queues/").text(id="queue-vision")) is shown


def test_root_has_no_share_of_itself(admin):  # noqa: F811
    assert page(admin, "/queues/root/").text(id="queue-share") == ""


@pytest.mark.parametrize("topic", ["queues:list", "queues:detail?name=research", "dashboard:overview"])
def test_a_page_watches_all_that_it_shows_of_use(topic):
    name, params = topics.parse(topic)
    watches = topics.find(name)(topics.TopicRequest(SYSTEM, params)).watches
    assert {each.resource for each in watches} >= {kind.id for kind in cluster_usage.KINDS}


def test_a_queue_is_made_with_any_resource(admin):  # noqa: F811
    values = {
        **FORM,
        "name": "gpu",
        "weight": "3",
        "priority": "5",
        "order": "fifo",
        "parent": "research",
        "capability": "cpu: 4\nnvidia.com/gpu: 8",
    }
    assert admin.post("/queues/-/new/", values)["Location"] == "/queues/gpu/"
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
    "more is guaranteed than to the parent": ({"parent": "research", "deserved": "cpu: 2", "guarantee": "cpu: 2"},
        "id_guarantee"),
})  # fmt: skip
def test_what_is_wrong_stands_at_its_field(admin, values, field):  # noqa: F811
    shown = Page(admin.post("/queues/-/new/", {**FORM, "name": "new", **values}))
    assert shown.status == 422
    assert shown.text(id=f"{field}_error")


def test_an_edit_changes_what_was_changed_and_keeps_the_rest(admin):  # noqa: F811
    kept = {"capability": {"example.com/dongle": "2"}, "type": "kept", "dequeueStrategy": "fifo"}
    store.write(Patch(QUEUES, "", "vision", {"spec": kept}))
    before = spec("vision")
    form = page(admin, "/queues/vision/edit/")
    capability = form.one(id="id_capability").text.strip()
    admin.post(
        "/queues/vision/edit/", {**FORM, "weight": "9", "parent": "research", "order": "fifo", "capability": capability}
    )
    assert spec("vision") == {**before, "weight": 9}


def test_a_resource_that_is_taken_out_of_the_form_is_taken_out_of_the_queue(admin):  # noqa: F811
    admin.post("/queues/vision/edit/", {**FORM, "weight": "4", "parent": "research", "capability": "memory: 1Gi"})
    assert spec("vision")["capability"] == {"memory": "1Gi"}


def test_an_operator_opens_and_closes_but_does_not_edit(operator):  # noqa: F811
    actions = page(operator, "/queues/vision/").actions()
    assert "/queues/vision/close/" in actions
    assert operator.get("/queues/vision/edit/").status_code == 403
    operator.post("/queues/vision/close/")
    assert spec("vision")["state"] == "Closed"
    operator.post("/queues/vision/open/")
    assert spec("vision")["state"] == "Open"


def test_closing_says_what_it_stops(admin):  # noqa: F811
    said = page(admin, "/queues/research/").text(id="close-queue")
    assert "and the 1 below it" in said
    assert "1 running and 0 waiting jobs" in said


def test_a_viewer_sees_no_button_that_is_not_for_him(alice):  # noqa: F811
    assert not [action for action in page(alice, "/queues/vision/").actions() if "/queues/" in action]


def test_an_empty_closed_queue_can_be_deleted(admin):  # noqa: F811
    assert "/queues/old/delete/" in page(admin, "/queues/old/").actions()
    assert admin.post("/queues/old/delete/")["Location"] == "/queues/"
    assert admin.get("/queues/old/").status_code == 404


def test_an_open_queue_is_not_deleted_and_the_refusal_says_what_to_do(admin):  # noqa: F811
    admin.post("/queues/vision/delete/")
    assert "lose" in page(admin, "/queues/vision/").text(id="toasts")


def test_a_count_of_some_namespaces_does_not_pass_for_one_of_all(admin, alice):  # noqa: F811
    def text(browser, address, part):
        return page(browser, address).text(id=part)

    assert "of yours" not in text(admin, "/queues/", "queue-default")
    assert text(alice, "/queues/", "queue-default").count("0 of yours") == 2
    assert text(alice, "/queues/vision/", "queue-head").count("of yours") == 2
    assert "No job of your namespaces is in this queue" in text(alice, "/queues/default/", "table-empty")
    assert "No job is in this queue" in text(admin, "/queues/old/", "table-empty")


def put_group(name, queue, phase, owner=None, namespace="team-a"):
    metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner] if owner else []}
    spec, status = {"queue": queue, "minMember": 1}, {"phase": phase}
    store.write(Create(POD_GROUPS, {"metadata": metadata, "spec": spec, "status": status}))


def put_pod(name, *, group="", queue="", node="one", phase="Running", owner=None, namespace="team-a", cpu="1"):
    notes = {"scheduling.k8s.io/group-name": group, "scheduling.volcano.sh/queue-name": queue}
    metadata = {"name": name, "namespace": namespace, "annotations": notes}
    metadata["ownerReferences"] = [owner] if owner else []
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], "nodeName": node}
    store.write(Create(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": phase}}))


REPLICAS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": "w", "controller": True}
VOLCANO_JOB = {**REPLICAS, "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "deep"}


def test_a_group_with_a_pod_that_has_not_ended_keeps_its_queue_from_deletion(admin):  # noqa: F811
    """The queue was Closed before the second pod of the series was made, and its controller has not looked since."""
    put_group("series", "old", "Completed")
    put_pod("series-0", group="series", phase="Succeeded")
    put_pod("series-1", group="series", phase="Pending", node="")
    admin.post("/queues/old/delete/")
    assert "wait until what is left in it has ended" in page(admin, "/queues/old/").text(id="toasts")
    store.write(Patch(PODS, "team-a", "series-1", {"status": {"phase": "Failed"}}, "status"))
    assert admin.post("/queues/old/delete/")["Location"] == "/queues/"


def test_a_page_is_about_the_queue_and_those_below_it(admin):  # noqa: F811
    put_group("deep", "vision", "Running", VOLCANO_JOB)
    store.write(Patch(QUEUES, "", "research", {"status": {"state": "Closing"}}, "status"))
    shown = page(admin, "/queues/research/")
    left = "1 unfinished pod group is left (1 running) and 2 pods without a group are left"
    assert f"{left}, with those in the queues below; then it is Closed." in shown.text(id="queue-head")
    (row,) = shown.rows()
    assert "team-a / train" in shown.text(id=row)
    assert "in vision" in shown.text(id=row)
    shown = page(admin, "/queues/vision/")
    assert "in vision" not in shown.text(id=shown.rows()[0])


@cases("state, is_filled, said", {
    "closed and empty": ("Closed", False, "takes no jobs and is empty."),
    "as Volcano closes": ("Closed", True, "takes no jobs; 1 unfinished pod group is left (1 pending)."),
    "closing": ("Closing", True, "1 unfinished pod group is left (1 pending); then it is Closed."),
    "its controller is behind": ("Closing", False, "The queue takes no new jobs."),
})  # fmt: skip
def test_what_is_left_is_counted_and_not_what_a_status_says(admin, state, is_filled, said):  # noqa: F811
    """Today's Volcano writes no counts into the status of a queue."""
    store.write(Patch(QUEUES, "", "old", {"status": {"state": state, "running": 7}}, "status"))
    if is_filled:
        wait("waits", "old", "1")
    assert said in page(admin, "/queues/old/").text(id="queue-head")


def test_a_page_says_who_holds_the_queue_besides_volcano_jobs(admin, alice):  # noqa: F811
    assert page(admin, "/queues/old/").text(id="queue-holders") == ""
    put_group("podgroup-w", "old", "Running", REPLICAS)
    for number in range(3):
        put_pod(f"web-{number}", group="podgroup-w", owner=REPLICAS, cpu="2")
    put_pod("web-3", group="podgroup-w", owner=REPLICAS, node="", phase="Pending")
    put_group("deep-0", "old", "Running", VOLCANO_JOB)
    put_pod("deep-0", group="deep-0", owner=VOLCANO_JOB)
    put_pod("alone", queue="old", namespace="default")
    put_group("empty", "old", "Pending")
    shown = page(admin, "/queues/old/").text(id="queue-holders")
    assert "team-a / ReplicaSet web-7d9f 3 1 6 CPU" in shown
    assert "default / Pod alone 1 0 1 CPU" in shown
    assert "team-a / PodGroup empty 0 0 nothing" in shown
    assert "deep" not in shown
    seen = page(alice, "/queues/old/").text(id="queue-holders")
    assert "web-7d9f" in seen
    assert "alone" not in seen
    assert "of namespaces that you may not see 1 0 1 CPU" in seen
