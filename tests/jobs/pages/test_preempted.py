"""The page of a job whose pods were evicted: who got the room, the stretches of the pods that went, and what is waited for since."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, decisions, store
from cluster.writes import Decision
from jobs.pages import chapters, evictions
from jobs.pages.chapters import Times
from kube.evictions import FIRST_EVICTED
from kube.kinds.batch import Action
from kube.meta import moment_of, now_text
from kube.resources import CONFIGMAPS, JOBS, POD_GROUPS, PODS
from scheduler.decided import ZONE_CLOSED
from scheduler.policy.policy import Action as SchedulerAction
from tests.jobs.history.lives import Life
from tests.jobs.pages.test_detail import text_of
from tests.jobs.pages.test_history import drawn, page, pods, runs, steps
from tests.jobs.pages.world import words
from tests.tables import cases

OTHER = "9f7e6c1d-1111-4222-8333-444455556666"
WINNER = f"default/urgent-{OTHER}"
PREEMPTED = "job default/urgent has a higher priority and gets the room"


@pytest.fixture
def life(db, moved_clock):
    bootstrap()
    return lambda name="demo", **spec: Life(moved_clock, name, **spec)


@pytest.fixture
def reader(life, person, client):
    client.force_login(person("alice"))
    return client


def evict(life, *names, reason="preempt", other=WINNER, grace=1):
    """Have the scheduler evict pods, and their nodes end them a second later."""
    at = life.clock.microseconds() // 1000
    for name in names:
        told = store.get(PODS, "default", name).object["status"].get("conditions") or []
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "lastTransitionTime": life.now(),
        }
        store.write(
            Patch(PODS, "default", name, {"status": {"conditions": [*told, target]}}, "status"),
            Delete(PODS, "default", name, grace=30),
        )
    group = f"{life.name}-{life.job.uid}"
    kept = Decision(at, "evict", reason, "default", group, "default", len(names), "", other, (("node-1", len(names)),))
    decisions.put([kept])
    life.jobs.settle()
    return life.passes(grace).bury() if grace else life


def started(life, **spec):
    """A gang of two whose pods get nodes after 2 s and run after 3."""
    return life(minAvailable=2, **spec).admit().passes(2).place().passes(1).run().passes(60)


def head(reader, parse, name="demo"):
    return words(reader.get(f"/jobs/default/{name}/"), parse, "job-why")


def bars(found):
    return [(bar[0].removeprefix("demo-main-"), *bar[2:7]) for bar in drawn(found)["bars"]]


def test_every_way_to_be_evicted_has_words():
    """Also those of pods that go for nobody."""
    for reason in (*SchedulerAction, ZONE_CLOSED):
        other = "" if reason in (SchedulerAction.SHUFFLE, ZONE_CLOSED) else WINNER
        found = evictions.Eviction(0, 2, str(reason), other, frozenset())
        assert "  " not in found.said
        assert "pod group " not in found.said


@cases("reason, other, said", {
    "preempted": ("preempt", WINNER, PREEMPTED),
    "reclaimed": ("reclaim", WINNER, "job default/urgent gets the room back that its own queue deserves"),
    "zone closed": ("RevocableZoneClosed", "", "the revocable zone of their nodes has closed"),
    "moved": ("shuffle", "", "more of their nodes was asked for than the target, and others have room"),
    "a group without a job": ("preempt", "other/bare", "pod group other/bare has a higher priority and gets the room"),
})  # fmt: skip
def test_the_head_says_how_many_went_when_and_for_whom(life, reader, parse, reason, other, said):
    evict(started(life), "demo-main-0", "demo-main-1", reason=reason, other=other)
    found = head(reader, parse)
    assert found.startswith("2 pods were evicted at ")
    assert said in found
    assert said in text_of(page(parse, reader), ".//*[@id='job-timeline']")


def test_the_head_leads_to_who_got_the_room(life, reader):
    evict(started(life), "demo-main-0", "demo-main-1")
    assert 'href="/jobs/default/urgent/"' in reader.get("/jobs/default/demo/").content.decode()


def test_an_evicted_pod_has_its_stretch_before_the_next_of_its_name(life, reader, parse):
    evict(started(life), "demo-main-0", "demo-main-1").passes(10)
    found = page(parse, reader)
    assert bars(found) == [
        ("0", 0, 2000, 3000, 64_000, "evicted"),
        ("0", 64_000, None, None, None, "waiting"),
        ("1", 0, 2000, 3000, 64_000, "evicted"),
        ("1", 64_000, None, None, None, "waiting"),
    ]
    gone, follows = drawn(found)["bars"][:2]
    assert gone[11] == "for job default/urgent"
    assert len(follows) == 10
    assert reader.get(f"/jobs/default/demo/?tab=logs&pod=demo-main-0&uid={gone[10]}").status_code == 200
    assert pods(found) == {"demo-main-0": "Pending", "demo-main-1": "Pending"}


@cases("reason, other, then", {
    "a group without a job": ("preempt", "other/bare", "for pod group other/bare"),
    "zone closed": ("RevocableZoneClosed", "", "as its zone closed"),
    "moved": ("shuffle", "", "to be moved"),
})  # fmt: skip
def test_beside_the_bar_of_an_evicted_pod_stands_why(life, reader, parse, reason, other, then):
    evict(started(life), "demo-main-0", reason=reason, other=other).passes(10)
    assert drawn(page(parse, reader))["bars"][0][11] == then


def test_a_gang_that_lost_its_nodes_waits_for_them_again(life, reader, parse):
    gang = evict(started(life), "demo-main-0", "demo-main-1").passes(10)
    found = page(parse, reader)
    waits = [tuple(each) for each in drawn(found)["waits"]]
    assert waits[-3:] == [("gang", 0, 2000), ("starting", 2000, 3000), ("gang", 64_000, None)]
    assert [each.endswith("waiting") for each in steps(found)] == [False, False, False, True, False, False]
    gang.place().passes(1).run()
    waits = [tuple(each) for each in drawn(page(parse, reader))["waits"]]
    assert waits[-2:] == [("gang", 64_000, 74_000), ("starting", 74_000, 75_000)]


def test_the_head_says_it_until_the_pods_run_again(life, reader, parse):
    gang = evict(started(life), "demo-main-0", "demo-main-1")
    gang.passes(10).place().passes(1).run()
    assert "evicted" not in head(reader, parse)
    assert "evicted" in text_of(page(parse, reader), ".//*[@id='job-timeline']")


def test_a_job_that_goes_on_with_fewer_pods_says_it_while_one_waits(life, reader, parse):
    partly = life(minAvailable=1).admit().place().run().passes(60)
    evict(partly, "demo-main-1", grace=0)
    assert head(reader, parse).startswith("1 pod was evicted at ")  # it still ends
    partly.bury()
    told = {"type": "PodScheduled", "status": "False", "message": "Nothing is free."}
    store.write(Patch(PODS, "default", "demo-main-1", {"status": {"conditions": [told]}}, "status"))
    partly.jobs.settle()
    found = head(reader, parse)
    assert PREEMPTED in found
    assert found.endswith("1 pod waits. Nothing is free.")
    assert [each[0] for each in drawn(page(parse, reader))["waits"]].count("gang") <= 1


def test_a_pod_that_waits_for_another_reason_says_nothing_of_an_eviction(life, reader, parse):
    partly = evict(life(minAvailable=1).admit().place().run().passes(60), "demo-main-1").place().run()
    tasks = [{**store.get(JOBS, "default", "demo").object["spec"]["tasks"][0], "replicas": 3}]
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": tasks}}))
    partly.jobs.settle()
    told = {"type": "PodScheduled", "status": "False", "message": "Nothing is free."}
    store.write(Patch(PODS, "default", "demo-main-2", {"status": {"conditions": [told]}}, "status"))
    assert head(reader, parse) == "1 pod waits. Nothing is free."


def test_a_gang_that_its_policy_restarts_tells_it_in_both_runs(life, reader, parse):
    policies = [{"event": "PodEvicted", "action": Action.RESTART_JOB.value}]
    evict(started(life, policies=policies), "demo-main-0", "demo-main-1").passes(5)
    newest, first = page(parse, reader), page(parse, reader, "?run=1")
    assert runs(newest)[0].startswith("Run 1 restarted")
    assert PREEMPTED in text_of(newest, ".//*[@id='job-why']")
    assert {bar[5] for bar in bars(first)} == {"evicted"}
    assert set(pods(first).values()) == {"Evicted"}
    assert steps(newest)[4] == "Running –"  # the run before ran, this one does not


def test_a_job_that_its_policy_ends_says_why(life, reader, parse):
    policies = [{"event": "PodEvicted", "action": Action.TERMINATE_JOB.value}]
    evict(started(life, policies=policies), "demo-main-0", "demo-main-1").passes(5)
    assert PREEMPTED in head(reader, parse)


def test_an_earlier_eviction_says_nothing_of_a_job_that_was_suspended_later(life, reader, parse):
    gang = evict(started(life), "demo-main-0", "demo-main-1")
    gang.passes(10).place().passes(1).run().passes(60).suspend()
    assert "evicted" not in head(reader, parse)


def told(reader, parse, query=""):
    return words(reader.get(f"/jobs/default/demo/{query}"), parse, "job-evictions")


def known_by_the_scheduler(life, other, queue):
    """Have the scheduler decided something about another group."""
    namespace, _, name = other.partition("/")
    at = life.clock.microseconds() // 1000
    decisions.put([Decision(at, "bind", "MinimumFits", namespace, name, queue, 1, "", "")])


def begin_again(life):
    return life.passes(10).place().passes(1).run().passes(60)


def test_the_head_says_how_often_and_for_whom(life, reader, parse):
    gang = evict(started(life), "demo-main-0", "demo-main-1", reason="reclaim")
    known_by_the_scheduler(life=gang, other=WINNER, queue="prod")
    assert b"job-evictions" not in reader.get("/jobs/default/demo/").content, "the notice says it"
    begin_again(gang)
    assert told(reader, parse) == "Evicted once: for job default/urgent of queue prod (reclaim)."
    evict(gang, "demo-main-0", "demo-main-1", reason="preempt", other="other/bare")
    evict(begin_again(gang), "demo-main-0", "demo-main-1", reason="reclaim")
    begin_again(gang)
    assert told(reader, parse) == (
        "Evicted 3 times: twice for job default/urgent of queue prod (reclaim), once for pod group other/bare (preempt)."
    )


def test_it_names_those_for_whom_it_went_most_often(life, reader, parse):
    gang = started(life)
    for other in ("a/one", "a/two", "a/three", "a/four", "a/two"):
        evict(gang, "demo-main-0", other=other)
        begin_again(gang)
    assert told(reader, parse) == (
        "Evicted 5 times: twice for pod group a/two (preempt), once for pod group a/four (preempt), "
        "once for pod group a/three (preempt), 1 more for others."
    )


def test_pods_that_go_for_nobody_are_told_with_why(life, reader, parse):
    begin_again(evict(started(life), "demo-main-0", reason="shuffle", other=""))
    assert told(reader, parse) == "Evicted once: to be moved."


@pytest.mark.parametrize(
    ("arguments", "seconds"), [("", 300), ("{minRuntime: 1h}", 3600), ("{minRuntime: 30s}", 0), ("{minRuntime: 0}", 0)]
)
def test_the_head_says_until_when_reclaim_leaves_it_alone(life, reader, parse, arguments, seconds):
    gang = evict(started(life), "demo-main-0", "demo-main-1", reason="reclaim")
    at = gang.clock.microseconds() // 1000
    name = f"demo-{gang.job.uid}"
    noted = {"metadata": {"annotations": {FIRST_EVICTED: now_text(at)}}}
    store.write(Patch(POD_GROUPS, "default", name, noted))
    if arguments:
        text = f"actions: allocate, reclaim\nconfigurations:\n- {{name: reclaim, arguments: {arguments}}}"
        namespace, config_map = "volcano-system", "volcano-scheduler-configmap"
        metadata = {"name": config_map, "namespace": namespace}
        store.write(Create(CONFIGMAPS, {"metadata": metadata, "data": {"volcano-scheduler.conf": text}}))
    gang.passes(10)
    assert b"leaves it alone" not in reader.get("/jobs/default/demo/").content, "it waits"
    placed = gang.clock.microseconds() // 1000
    gang.place().passes(1).run().passes(60)
    until = f"Reclaim leaves it alone until {moment_of(placed + seconds * 1000):%Y-%m-%d %H:%M:%S} UTC."
    assert told(reader, parse).endswith(until) == bool(seconds)
    assert ("leaves it alone" in told(reader, parse)) == bool(seconds)
    gang.passes(seconds)
    assert "leaves it alone" not in told(reader, parse), "it has run for long enough"


def test_nothing_is_told_of_a_job_that_was_never_evicted(life, reader):
    started(life)
    assert b"job-evictions" not in reader.get("/jobs/default/demo/").content


spans = st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(1, 10))).map(
    lambda each: (each[0], None if each[1] is None else each[0] + each[1])
)


@given(st.lists(spans, max_size=6), st.integers(1, 4))
def test_a_gang_is_held_exactly_while_enough_are_there(found, needed):
    held = chapters.held(found, needed)
    for moment in range(40):
        enough = sum(begun <= moment and (ended is None or moment < ended) for begun, ended in found)
        is_held = any(begun <= moment and (ended is None or moment < ended) for begun, ended in held)
        assert is_held == (enough >= needed)


def test_without_an_eviction_a_gang_waits_as_one_that_is_placed_once():
    times = Times(begun=0, let_in=5, placed=9, running=12)
    assert chapters.waits_of_gang(times, [(9, None)], [(12, None)]) == chapters.waits(times)
