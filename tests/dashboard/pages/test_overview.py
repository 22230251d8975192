import pytest

from cluster import access, clock
from cluster.runtime import idle_room
from cluster.runtime.idle_room import Check, Wait
from cluster.store import Delete, store
from dashboard.pages import offers, overview
from kube.resources import JOBS, POD_GROUPS
from scheduler.engine.cause import Reason
from tests.dashboard.pages.conftest import HOUR_MS, job, node, page, pod, put, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
ATTENTION = "/ overview-attention"


def attention(browser):
    return page(browser, "/").text(id="overview-attention")


def of_status(made, **fields):
    resource, obj = made
    return resource, {**obj, "status": {**obj["status"], **fields}}


def waiting(name, cause, **options):
    return of_status(job(name, "Pending", message=f"Waits for room: {name}.", **options), waitingReason=cause)


def exited(name, *codes, **options):
    message = f"Exited with code {codes[0]} · {name}-w-0."
    return of_status(job(name, "Failed", message=message, **options), exitCodes=list(codes))


def failed(name, message):
    return job(name, "Failed", message=message)


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@cases("objects", {
    "a quiet cluster": [],
    "a job that failed": [failed("broken", "It has exit code 3.")],
    "jobs that failed alike": [*(failed(name, "Exit 3 · w-0.") for name in "abc"), failed("d", "Exit 4 · d-w-0.")],
    "a job that waits for long": [job("waits", "Pending", message="Room for 3.")],
    "a node that is away comes first": [failed("broken", ""), node("away", ready=False)],
    "a hostile message is text": [failed("evil", HOSTILE)],
    "one exit code in a queue": [
        exited("a", 3), exited("b", 3, namespace="team-b"), exited("c", 3, 137), exited("d", 4),
    ],
    "one cause in a queue and a namespace": [
        *(waiting(f"many-{number:02}", "QueueLimit") for number in range(12)),
        *(waiting(f"elsewhere-{number}", "QueueLimit", namespace="team-b") for number in range(2)),
        waiting("vision", "QueueLimit", queue="vision"), waiting("short", "NotEnoughResources"),
    ],
})  # fmt: skip
def test_what_needs_attention_is_told_once(admin, alice, stranger, reads, objects):
    put(*objects, ago_ms=HOUR_MS)
    for browser in (admin, alice, stranger):
        reads(browser, ATTENTION)
    assert page(admin, "/").one(tag="img") is None


@cases("objects, words, number, addresses", {
    # With the one whose other pods ended otherwise.
    "those that failed": ([exited("a", 3), exited("b", 3), exited("c", 3, 137), exited("d", 4)], "2 failed", 3, "/"),
    "those that wait": ([waiting(f"many-{number:02}", "QueueLimit") for number in range(12)], "12 wait", 12,
        "/ /?namespace=team-a"),
})  # fmt: skip
def test_a_line_about_several_jobs_leads_to_all_of_them(admin, objects, words, number, addresses):
    put(*objects, waiting("elsewhere", "QueueLimit", namespace="team-b"), ago_ms=HOUR_MS)
    for address in addresses.split():
        lines = page(admin, address).one(id="overview-attention").iter("a")
        (link,) = [a for a in lines if words in "".join(a.itertext())]
        assert len(page(admin, link.get("href")).rows()) == number


def test_counts_and_what_is_left_out_are_of_the_namespaces_that_one_may_see(admin, alice, stranger, reads):
    for browser in (admin, alice, stranger):
        reads(browser, "/ overview-jobs", "/?namespace=team-b overview-jobs")
    assert "You may not see jobs anywhere" in page(stranger, "/").text(tag="main")


def pod_group(stored, reason):
    conditions = [{"type": "Unschedulable", "status": "True", "reason": reason}]
    metadata = {"name": f"{stored.name}-{stored.uid}", "namespace": stored.namespace}
    return POD_GROUPS, {"metadata": metadata, "status": {"phase": "Inqueue", "conditions": conditions}}


def test_a_running_job_whose_pods_crash_loop_needs_attention_of_who_may_see_it(admin, alice, reads):
    state = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    for namespace in ("team-a", "team-b"):
        (stored,) = put(job("loops", namespace=namespace))
        pods = [pod(f"p-{n}", job=stored.uid, namespace=namespace) for n in range(3)]
        put(pods[0], *(of_status(each, containerStatuses=[state]) for each in pods[1:]))
    for browser in (admin, alice):
        reads(browser, ATTENTION)


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


def test_of_more_than_are_looked_at_the_line_says_at_least_how_many(admin, monkeypatch):
    monkeypatch.setattr(overview, "MAX_WAITING", 3)
    put(*(waiting(f"many-{n}", "QueueLimit") for n in range(5)), ago_ms=HOUR_MS)
    assert "At least 3 wait for the same, queue default the first is team-a / many-0" in attention(admin)


def test_jobs_that_can_never_start_are_one_line_however_many_wait(admin, reads):
    stored = put(*(waiting(f"stuck-{n:02}", "NeverFits") for n in range(9)), ago_ms=HOUR_MS)
    put(*(pod_group(each, "NeverFits") for each in stored))
    put(waiting("other", "NotEnoughResources"), ago_ms=HOUR_MS)
    reads(admin, ATTENTION)


def test_a_job_that_waits_for_room_that_nobody_uses_is_told_of_with_what_to_do(admin, alice, reads):
    stored, other = put(job("passed", "Pending"), job("foreign", "Pending", namespace="team-b"), ago_ms=HOUR_MS)
    now = clock.milliseconds()
    waits = [Wait(f"{each.namespace}/{each.name}-{each.uid}", now - HOUR_MS, 3) for each in (stored, other)]
    idle_room.save(Check(now, 3, 3, (*waits, Wait("team-a/bare", now - HOUR_MS, 1))))
    for browser in (admin, alice):
        reads(browser, ATTENTION)
    idle_room.save(Check(now, 3, 3))
    assert "that nobody uses" not in attention(admin)


def test_what_no_patience_mends_are_reasons_of_the_scheduler():
    assert {str(reason) for reason in Reason} >= overview.HOPELESS


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
    document = page(reader("sue", "submitter", "team-a"), f"/?namespace={namespace}")
    assert ("New job" in document.text(tag="main")) == is_offered
