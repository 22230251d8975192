from __future__ import annotations

import pytest

from cluster import clock
from cluster.runtime import idle_room
from cluster.runtime.idle_room import Check, Wait
from cluster.store import Delete, store
from dashboard import live
from dashboard.live import TopicRequest
from dashboard.live.topics import find, parse
from dashboard.pages import offers, overview
from kube.resources import JOBS, POD_GROUPS
from scheduler.engine.cause import Reason
from tests.dashboard.pages.conftest import HOUR_MS, job, node, page, pod, put, reader

pytestmark = pytest.mark.usefixtures("cluster")


def attention(browser):
    return page(browser, "/").text(id="overview-attention")


def test_a_quiet_cluster_needs_nobody(admin):
    assert "Nothing: no job failed in the last day, none waits for long, and every node is ready." in attention(admin)


def test_what_failed_says_why_and_leads_there(admin):
    put(job("broken", "Failed", message="Task worker: exit code 3."))
    shown = attention(admin)
    assert "team-a / broken" in shown
    assert "exit code 3" in shown


def test_jobs_that_failed_alike_are_told_once(admin):
    alike = [job(name, "Failed", message="Exit 3 · w-0.") for name in ("a", "b", "c")]
    put(*alike, job("d", "Failed", message="Exit 4 · d-w-0."))
    shown = attention(admin)
    assert shown.count("Exit 3 · w-0.") == 1
    assert "and 2 more like it" in shown
    assert shown.count("Exit 4 · w-0.") == 1


def exited(name, *codes, phase="Failed", **options):
    resource, made = job(name, phase, message=f"Exited with code {codes[0]} · {name}-w-0.", **options)
    return resource, {**made, "status": {**made["status"], "exitCodes": list(codes)}}


def test_jobs_of_a_queue_with_one_exit_code_are_one_line_that_leads_to_all_of_them(admin):
    put(exited("a", 3), exited("b", 3, namespace="team-b"), exited("c", 3, 137), exited("d", 4))
    shown = page(admin, "/")
    assert "2 failed, exit 3, queue default the newest is" in shown.text(id="overview-attention")
    (link,) = [a for a in shown.one(id="overview-attention").iter("a") if "2 failed" in "".join(a.itertext())]
    listed = page(admin, link.get("href")).rows()
    assert len(listed) == 3  # with the one whose other pods ended otherwise
    assert page(admin, "/").text(id="overview-attention").count("Exited with code 4") == 1


def test_who_sees_some_namespaces_or_none_is_not_told_of_all(alice, stranger):
    assert "Nothing in your namespaces: no job failed" in attention(alice)
    assert "in your namespaces" in page(alice, "/").text(id="overview-jobs")
    said = attention(stranger)
    assert "is not yours to see" in said
    assert "no job failed" not in said
    assert page(stranger, "/").text(id="overview-jobs").startswith("Jobs –")


def looping(name, **options):
    resource, made = pod(name, **options)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    return resource, {**made, "status": {**made["status"], "containerStatuses": [{"name": "c", "state": waiting}]}}


def with_looping(number, **options):
    (stored,) = put(job("loops", **options))
    put(*(looping(f"p-{n}", job=stored.uid) for n in range(number)), pod("fine", job=stored.uid))


def test_a_running_job_whose_pods_crash_loop_needs_attention(admin):
    with_looping(2)
    shown = attention(admin)
    assert "team-a / loops" in shown
    assert "2 pods are crash-looping" in shown


def test_crash_loops_of_others_are_not_shown(alice):
    put(job("loops", namespace="team-b"))
    stored = store.get(JOBS, "team-b", "loops")
    put(looping("p-0", job=stored.uid, namespace="team-b"))
    assert "loops" not in attention(alice)


def test_a_job_that_waits_for_long_says_what_is_missing(admin):
    put(job("waits", "Pending", message="Needs 5 pods, room for 3."), ago_ms=HOUR_MS)
    assert "Needs 5 pods, room for 3." in attention(admin)


def test_a_job_that_just_came_is_no_trouble_yet_but_will_be(admin):
    put(job("young", "Pending"))
    assert "young" not in attention(admin)
    _, parts = overview.overview(_actor(admin), "")
    assert parts.again <= store.get(JOBS, "team-a", "young").created + overview.WAITS_LONG_MS


def pod_group(stored, reason):
    conditions = [{"type": "Unschedulable", "status": "True", "reason": reason}]
    metadata = {"name": f"{stored.name}-{stored.uid}", "namespace": stored.namespace}
    return POD_GROUPS, {"metadata": metadata, "status": {"phase": "Inqueue", "conditions": conditions}}


@pytest.mark.parametrize("reason", sorted(overview.HOPELESS))
def test_a_job_that_cannot_start_is_trouble_at_once(admin, reason):
    (stored,) = put(job("stuck", "Pending", message="This can never start: no node is that large."))
    put(pod_group(stored, reason))
    assert "This can never start: no node is that large." in attention(admin)


def test_a_job_that_waits_for_room_is_no_trouble_at_once(admin):
    (stored,) = put(job("young", "Pending", message="Waits for room."))
    put(pod_group(stored, "NotEnoughResources"))
    assert "young" not in attention(admin)


def test_a_job_that_cannot_start_is_told_once_however_long_it_waits(admin):
    (stored,) = put(job("stuck", "Pending", message="No node has the labels."), ago_ms=HOUR_MS)
    put(pod_group(stored, "NoMatchingNode"))
    assert attention(admin).count("No node has the labels.") == 1


def waiting(name, cause, **options):
    resource, made = job(name, "Pending", message=f"Waits for room: {name}.", **options)
    return resource, {**made, "status": {**made["status"], "waitingReason": cause}}


def test_jobs_that_wait_for_one_cause_in_a_queue_and_namespace_are_one_line_that_leads_to_them(admin):
    put(
        *(waiting(f"many-{n:02}", "QueueLimit") for n in range(12)),
        *(waiting(f"elsewhere-{n}", "QueueLimit", namespace="team-b") for n in range(2)),
        waiting("vision", "QueueLimit", queue="vision"),
        waiting("short", "NotEnoughResources"),
        ago_ms=HOUR_MS,
    )
    shown = page(admin, "/")
    said = shown.text(id="overview-attention")
    assert "12 wait for the same, queue default the first is team-a / many-00 Waits for room: many-00." in said
    assert "2 wait for the same, queue default the first is team-b / elsewhere-0" in said
    assert "many-01" not in said
    assert "team-a / vision Waits" in said
    assert "team-a / short Waits" in said
    for address in ("/", "/?namespace=team-a"):
        panel = page(admin, address).one(id="overview-attention")
        (link,) = [a for a in panel.iter("a") if "12 wait" in "".join(a.itertext())]
        assert len(page(admin, link.get("href")).rows()) == 12


def test_of_more_than_are_looked_at_the_line_says_at_least_how_many(admin, monkeypatch):
    monkeypatch.setattr(overview, "MOST_WAITING", 3)
    put(*(waiting(f"many-{n}", "QueueLimit") for n in range(5)), ago_ms=HOUR_MS)
    assert "At least 3 wait for the same, queue default the first is team-a / many-0" in attention(admin)


def test_jobs_that_can_never_start_are_one_line_however_many_wait(admin):
    stored = put(*(waiting(f"stuck-{n:02}", "NeverFits") for n in range(9)), ago_ms=HOUR_MS)
    put(*(pod_group(each, "NeverFits") for each in stored))
    put(waiting("other", "NotEnoughResources"), ago_ms=HOUR_MS)
    said = attention(admin)
    assert "9 wait for the same" in said
    assert said.index("stuck-00") < said.index("other")
    assert "stuck-01" not in said


def test_a_job_that_waits_for_room_that_nobody_uses_is_told_of_with_what_to_do(admin, alice):
    (stored,) = put(job("passed", "Pending", message="Waits for room."), ago_ms=HOUR_MS)
    (other,) = put(job("foreign", "Pending", namespace="team-b"))
    now = clock.milliseconds()
    waits = [Wait(f"{each.namespace}/{each.name}-{each.uid}", now - HOUR_MS, 3) for each in (stored, other)]
    idle_room.save(Check(now, 3, 3, (*waits, Wait("team-a/bare", now - HOUR_MS, 1))))
    shown = attention(admin)
    assert shown.count("There is room for its 3 pods that nobody uses") == 2
    assert "logs/scheduler.log" in shown
    assert "Waits for room." not in shown
    assert "foreign" not in attention(alice)
    idle_room.save(Check(now, 3, 3))
    assert "that nobody uses" not in attention(admin)


def test_what_no_patience_mends_are_reasons_of_the_scheduler():
    assert {str(reason) for reason in Reason} >= overview.HOPELESS


def _actor(browser):
    from cluster import access

    return access.for_user(browser.user)


def test_a_node_that_is_away_comes_first(admin):
    put(node("away", ready=False), job("broken", "Failed"))
    shown = attention(admin)
    assert shown.index("Nothing was heard for 42 s.") < shown.index("broken")


def test_a_hostile_name_or_message_is_text(admin):
    put(job("evil", "Failed", message="<script>alert(1)</script><img src=x onerror=alert(1)>"))
    shown = page(admin, "/")
    assert "<script>alert(1)</script>" in shown.text(id="overview-attention")
    assert shown.one(tag="img") is None


def test_counts_are_of_the_namespaces_that_one_may_see(alice, admin):
    assert page(admin, "/").text(id="overview-jobs").startswith("Jobs 2")
    assert page(alice, "/").text(id="overview-jobs").startswith("Jobs 1")
    assert page(admin, "/?namespace=team-b").text(id="overview-jobs").startswith("Jobs 1 in team-b")
    assert page(alice, "/?namespace=team-b").text(id="overview-jobs").startswith("Jobs 0")


@pytest.fixture
def offered(monkeypatch):
    monkeypatch.setattr(
        offers, "_sources", {"test": lambda: [offers.Offer("Primes", "Counts.", "cpu", "/jobs/samples/primes/run/")]}
    )


@pytest.mark.usefixtures("offered")
def test_samples_are_offered_while_there_are_no_jobs_to_those_who_may_run_them(admin, alice):
    assert "/jobs/samples/primes/run/" not in page(admin, "/").actions()
    for name, namespace in (("train", "team-a"), ("other", "team-b")):
        store.write(Delete(JOBS, namespace, name, grace=0))
    assert "/jobs/samples/primes/run/" in page(admin, "/").actions()
    assert "/jobs/samples/primes/run/" not in page(alice, "/").actions()


@pytest.mark.parametrize(("namespace", "is_offered"), [("", True), ("team-a", True), ("default", False)])
def test_a_new_job_is_offered_to_who_may_submit_somewhere(db, namespace, is_offered):
    shown = page(reader("sue", "submitter", "team-a"), f"/?namespace={namespace}")
    assert ("New job" in shown.text(tag="main")) == is_offered


TOPICS = ["dashboard:overview", "dashboard:nodes", "dashboard:node?name=one", "dashboard:node-pods?name=one", "dashboard:events",
          "queues:list", "queues:detail?name=vision", "queues:jobs?name=vision"]  # fmt: skip


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_renders_what_its_page_shows(admin, topic):
    name, params = parse(topic)
    parts = find(name)(TopicRequest(_actor(admin), params))
    address = {"overview": "/", "nodes": "/nodes/", "node": "/nodes/one/", "node-pods": "/nodes/one/", "events": "/events/",
               "list": "/queues/", "detail": "/queues/vision/", "jobs": "/queues/vision/"}[name.partition(":")[2]]  # fmt: skip
    shown = page(admin, address)
    assert [*shown.all(data_live=topic)]
    for name, html in parts.parts.items():
        assert shown.one(id=name) is not None, name
        assert "csrfmiddlewaretoken" not in html


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_state_gives_the_same_text(admin, topic):
    name, params = parse(topic)
    request = TopicRequest(_actor(admin), params)
    assert find(name)(request).parts == find(name)(request).parts


def test_every_topic_of_the_pages_is_registered():
    assert all(find(parse(topic)[0]) for topic in TOPICS)
    assert live.topic
