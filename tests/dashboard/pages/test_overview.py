from __future__ import annotations

import pytest

from cluster import access, clock
from cluster.runtime import idle_room
from cluster.runtime.idle_room import Check, Wait
from cluster.store import Delete, store
from dashboard.live import TopicRequest
from dashboard.live.topics import find, parse
from dashboard.pages import offers, overview
from kube.resources import JOBS, POD_GROUPS
from scheduler.engine.cause import Reason
from tests.dashboard.pages.conftest import HOUR_MS, job, node, page, pod, put, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")


def attention(browser):
    return page(browser, "/").text(id="overview-attention")


def of_status(made, **fields):
    resource, obj = made
    return resource, {**obj, "status": {**obj["status"], **fields}}


def waiting(name, cause, **options):
    return of_status(job(name, "Pending", message=f"Waits for room: {name}.", **options), waitingReason=cause)


def exited(name, *codes, **options):
    return of_status(
        job(name, "Failed", message=f"Exited with code {codes[0]} · {name}-w-0.", **options), exitCodes=list(codes)
    )


ALIKE = [job(name, "Failed", message="Exit 3 · w-0.") for name in "abc"] + [
    job("d", "Failed", message="Exit 4 · d-w-0.")
]
NOTHING = "Nothing: no job failed in the last day, none waits for long, and every node is ready."


@cases("objects, times", {
    "a quiet cluster": ([], {NOTHING: 1}),
    "a job that failed": (
        [job("broken", "Failed", message="It has exit code 3.")], {"team-a / broken": 1, "exit code 3": 1},
    ),
    "jobs that failed alike": (ALIKE, {"Exit 3 · w-0.": 1, "and 2 more like it": 1, "Exit 4 · w-0.": 1}),
    "a job that waits for long": ([job("waits", "Pending", message="Room for 3.")], {"Room for 3.": 1}),
})  # fmt: skip
def test_what_needs_attention_is_told_once(admin, objects, times):
    put(*objects, ago_ms=HOUR_MS)
    assert {words: attention(admin).count(words) for words in times} == times


def test_jobs_of_a_queue_with_one_exit_code_are_one_line_that_leads_to_all_of_them(admin):
    put(exited("a", 3), exited("b", 3, namespace="team-b"), exited("c", 3, 137), exited("d", 4))
    said = attention(admin)
    assert "2 failed, exit 3, queue default the newest is" in said
    assert said.count("Exited with code 4") == 1
    assert len(listed(admin, "/", "2 failed")) == 3  # with the one whose other pods ended otherwise


def listed(browser, address, words):
    """Return the jobs to which a line of the panel leads."""
    lines = page(browser, address).one(id="overview-attention").iter("a")
    (link,) = [a for a in lines if words in "".join(a.itertext())]
    return page(browser, link.get("href")).rows()


def test_who_sees_some_namespaces_or_none_is_not_told_of_all(alice, stranger):
    assert "Nothing in your namespaces: no job failed" in attention(alice)
    assert "in your namespaces" in page(alice, "/").text(id="overview-jobs")
    said = attention(stranger)
    assert "is not yours to see" in said
    assert "no job failed" not in said
    assert page(stranger, "/").text(id="overview-jobs").startswith("Jobs –")


@pytest.mark.parametrize("namespace", ["team-a", "team-b"])
def test_a_running_job_whose_pods_crash_loop_needs_attention(admin, alice, namespace):
    (stored,) = put(job("loops", namespace=namespace))
    state = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    pods = [pod(f"p-{n}", job=stored.uid, namespace=namespace) for n in range(3)]
    put(pods[0], *(of_status(each, containerStatuses=[state]) for each in pods[1:]))
    assert f"{namespace} / loops" in attention(admin)
    assert "2 pods are crash-looping" in attention(admin)
    assert ("loops" in attention(alice)) == (namespace == "team-a")


def pod_group(stored, reason):
    conditions = [{"type": "Unschedulable", "status": "True", "reason": reason}]
    metadata = {"name": f"{stored.name}-{stored.uid}", "namespace": stored.namespace}
    return POD_GROUPS, {"metadata": metadata, "status": {"phase": "Inqueue", "conditions": conditions}}


@pytest.mark.parametrize("ago_ms", [0, HOUR_MS])
@pytest.mark.parametrize("reason", [*sorted(overview.HOPELESS), "NotEnoughResources", None])
def test_only_a_job_that_cannot_start_is_trouble_at_once(admin, reason, ago_ms):
    (stored,) = put(job("stuck", "Pending", message="Waits for nodes."), ago_ms=ago_ms)
    if reason:
        put(pod_group(stored, reason))
    assert attention(admin).count("Waits for nodes.") == (reason in overview.HOPELESS or ago_ms > 0)


def test_the_page_looks_again_when_a_job_that_just_came_will_be_trouble(admin):
    put(job("young", "Pending"))
    _, parts = overview.overview(access.for_user(admin.user), "")
    assert parts.again <= store.get(JOBS, "team-a", "young").created + overview.WAITS_LONG_MS


def test_jobs_that_wait_for_one_cause_in_a_queue_and_namespace_are_one_line_that_leads_to_them(admin):
    put(
        *(waiting(f"many-{n:02}", "QueueLimit") for n in range(12)),
        *(waiting(f"elsewhere-{n}", "QueueLimit", namespace="team-b") for n in range(2)),
        waiting("vision", "QueueLimit", queue="vision"), waiting("short", "NotEnoughResources"), ago_ms=HOUR_MS,
    )  # fmt: skip
    said = attention(admin)
    assert "12 wait for the same, queue default the first is team-a / many-00 Waits for room: many-00." in said
    assert "2 wait for the same, queue default the first is team-b / elsewhere-0" in said
    assert "many-01" not in said
    assert "team-a / vision Waits" in said
    assert "team-a / short Waits" in said
    for address in ("/", "/?namespace=team-a"):
        assert len(listed(admin, address, "12 wait")) == 12


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


def test_a_node_that_is_away_comes_first(admin):
    put(node("away", ready=False), job("broken", "Failed"))
    shown = attention(admin)
    assert shown.index("Nothing was heard for 42 s.") < shown.index("broken")


def test_a_hostile_name_or_message_is_text(admin):
    put(job("evil", "Failed", message="<script>alert(1)</script><img src=x onerror=alert(1)>"))
    shown = page(admin, "/")
    assert "<script>alert(1)</script>" in shown.text(id="overview-attention")
    assert shown.one(tag="img") is None


@cases("who, address, words", {
    "everywhere": ("admin", "/", "Jobs 2"),
    "in a namespace": ("admin", "/?namespace=team-b", "Jobs 1 in team-b"),
    "where one may see them": ("alice", "/", "Jobs 1"),
    "where one may not": ("alice", "/?namespace=team-b", "Jobs 0"),
})  # fmt: skip
def test_counts_are_of_the_namespaces_that_one_may_see(request, who, address, words):
    assert page(request.getfixturevalue(who), address).text(id="overview-jobs").startswith(words)


def test_samples_are_offered_while_there_are_no_jobs_to_those_who_may_run_them(admin, alice, monkeypatch):
    primes = "/jobs/samples/primes/run/"
    monkeypatch.setattr(offers, "_sources", {"test": lambda: [offers.Offer("Primes", "Counts.", "cpu", primes)]})
    assert primes not in page(admin, "/").actions()
    for name, namespace in (("train", "team-a"), ("other", "team-b")):
        store.write(Delete(JOBS, namespace, name, grace=0))
    assert primes in page(admin, "/").actions()
    assert primes not in page(alice, "/").actions()


@pytest.mark.parametrize(("namespace", "is_offered"), [("", True), ("team-a", True), ("default", False)])
def test_a_new_job_is_offered_to_who_may_submit_somewhere(db, namespace, is_offered):
    shown = page(reader("sue", "submitter", "team-a"), f"/?namespace={namespace}")
    assert ("New job" in shown.text(tag="main")) == is_offered


@cases("topic, address", {
    "overview": ("dashboard:overview", "/"),
    "nodes": ("dashboard:nodes", "/nodes/"),
    "node": ("dashboard:node?name=one", "/nodes/one/"),
    "pods of a node": ("dashboard:node-pods?name=one", "/nodes/one/"),
    "events": ("dashboard:events", "/events/"),
    "queues": ("queues:list", "/queues/"),
    "queue": ("queues:detail?name=vision", "/queues/vision/"),
    "jobs of a queue": ("queues:jobs?name=vision", "/queues/vision/"),
})  # fmt: skip
def test_a_topic_renders_what_its_page_shows_and_the_same_state_as_the_same_text(admin, topic, address):
    name, params = parse(topic)
    request = TopicRequest(access.for_user(admin.user), params)
    parts = find(name)(request).parts
    assert parts == find(name)(request).parts
    shown = page(admin, address)
    assert [*shown.all(data_live=topic)]
    for name, html in parts.items():
        assert shown.one(id=name) is not None, name
        assert "csrfmiddlewaretoken" not in html
