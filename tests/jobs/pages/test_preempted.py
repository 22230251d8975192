"""The page of a job whose pods were evicted: who got the room, and what is waited for since."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.store import Create, Patch, decisions, store
from cluster.writes import Decision
from jobs.pages import chapters, evictions
from jobs.pages.chapters import Times
from kube.evictions import FIRST_EVICTED
from kube.kinds.batch import Action
from kube.meta import moment_of, now_text
from kube.resources import CONFIGMAPS, JOBS, POD_GROUPS, PODS
from scheduler.decided import ZONE_CLOSED
from scheduler.policy.policy import Action as SchedulerAction
from tests.builders import config_map
from tests.jobs.pages.job_page import JobPage
from tests.jobs.pages.world import WINNER, evict
from tests.tables import cases

BOTH = ("demo-main-0", "demo-main-1")
PREEMPTED = "job default/urgent has a higher priority and gets the room"
RECLAIMED = "job default/urgent gets the room back that its own queue deserves"


def started(life, **spec):
    """A gang of two whose pods get nodes after 2 s and run after 3."""
    return life(minAvailable=2, **spec).admit().passes(2).place().passes(1).run().passes(60)


def begin_again(life):
    return life.passes(10).place().passes(1).run().passes(60)


def why(reader):
    return JobPage(reader).text("job-why")


def bars(page):
    return [(bar[0].removeprefix("demo-main-"), *bar[2:7]) for bar in page.drawn["bars"]]


def test_every_way_to_be_evicted_has_words():
    """Also those of pods that go for nobody."""
    for reason in (*SchedulerAction, ZONE_CLOSED):
        other = "" if reason in (SchedulerAction.SHUFFLE, ZONE_CLOSED) else WINNER
        found = evictions.Eviction(0, 2, str(reason), other, frozenset())
        assert "  " not in found.said
        assert "pod group " not in found.said


@cases("reason, other, said, then", {
    "preempted": ("preempt", WINNER, PREEMPTED, "for job default/urgent"),
    "reclaimed": ("reclaim", WINNER, RECLAIMED, "for job default/urgent"),
    "zone closed": ("RevocableZoneClosed", "", "the revocable zone of their nodes has closed", "as its zone closed"),
    "moved": ("shuffle", "", "more of their nodes was asked for than the target, and others have room", "to be moved"),
    "a group without a job": ("preempt", "other/bare", "pod group other/bare has a higher priority and gets the room",
        "for pod group other/bare"),
})  # fmt: skip
def test_the_head_says_how_many_went_when_and_for_whom(life, reader, reason, other, said, then):
    evict(started(life), *BOTH, reason=reason, other=other).passes(10)
    page = JobPage(reader)
    assert page.text("job-why").startswith("2 pods were evicted at ")
    assert said in page.text("job-why")
    assert said in page.text("job-timeline")
    assert page.drawn["bars"][0][11] == then
    assert ('href="/jobs/default/urgent/"' in page.html) == (other == WINNER)


def test_a_gang_that_lost_its_nodes_waits_for_them_again(life, reader):
    gang = evict(started(life), *BOTH).passes(10)
    page = JobPage(reader)
    gone, again = (0, 2000, 3000, 64_000, "evicted"), (64_000, None, None, None, "waiting")
    assert bars(page) == [(pod, *stretch) for pod in "01" for stretch in (gone, again)]
    was, follows = page.drawn["bars"][:2]
    assert len(follows) == 10
    assert JobPage(reader, query=f"?tab=logs&pod=demo-main-0&uid={was[10]}")
    assert page.pods == dict.fromkeys(BOTH, "Pending")
    assert page.drawn["waits"][-3:] == [["gang", 0, 2000], ["starting", 2000, 3000], ["gang", 64_000, None]]
    assert [each.endswith("waiting") for each in page.steps] == [False, False, False, True, False, False]
    gang.place().passes(1).run()
    page = JobPage(reader)
    assert page.drawn["waits"][-2:] == [["gang", 64_000, 74_000], ["starting", 74_000, 75_000]]
    assert "evicted" not in page.text("job-why"), "they run again"
    assert "evicted" in page.text("job-timeline")
    gang.passes(60).suspend()
    assert "evicted" not in why(reader), "it was suspended since"


def waits(name):
    told = {"type": "PodScheduled", "status": "False", "message": "Nothing is free."}
    store.write(Patch(PODS, "default", name, {"status": {"conditions": [told]}}, "status"))


def test_a_job_that_goes_on_with_fewer_pods_says_it_while_one_waits(life, reader):
    partly = life(minAvailable=1).admit().place().run().passes(60)
    evict(partly, "demo-main-1", grace=0)
    assert why(reader).startswith("1 pod was evicted at ")  # it still ends
    partly.bury()
    waits("demo-main-1")
    partly.jobs.settle()
    assert PREEMPTED in why(reader)
    assert why(reader).endswith("1 pod waits. Nothing is free.")
    assert [each[0] for each in JobPage(reader).drawn["waits"]].count("gang") <= 1


def test_a_pod_that_waits_for_another_reason_says_nothing_of_an_eviction(life, reader):
    partly = evict(life(minAvailable=1).admit().place().run().passes(60), "demo-main-1").place().run()
    tasks = [{**store.get(JOBS, "default", "demo").object["spec"]["tasks"][0], "replicas": 3}]
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": tasks}}))
    partly.jobs.settle()
    waits("demo-main-2")
    assert why(reader) == "1 pod waits. Nothing is free."


@pytest.mark.parametrize("action", [Action.RESTART_JOB, Action.TERMINATE_JOB])
def test_a_gang_that_its_policy_restarts_or_ends_tells_it(life, reader, action):
    evict(started(life, policies=[{"event": "PodEvicted", "action": action.value}]), *BOTH).passes(5)
    newest = JobPage(reader)
    assert PREEMPTED in newest.text("job-why")
    if action is Action.RESTART_JOB:
        first = JobPage(reader, query="?run=1")
        assert newest.runs[0].startswith("Run 1 restarted")
        assert {bar[5] for bar in bars(first)} == {"evicted"}
        assert set(first.pods.values()) == {"Evicted"}
        assert newest.steps[4] == "Running –"  # the run before ran, this one does not


def told(reader):
    """What the head says of all evictions; "" before it says so."""
    page = JobPage(reader)
    return page.text("job-evictions") if "job-evictions" in page.html else ""


def test_the_head_says_how_often_and_for_whom(life, reader):
    gang = started(life)
    assert told(reader) == "", "it was never evicted"
    evict(gang, *BOTH, reason="reclaim")
    at, (namespace, _, name) = gang.clock.microseconds() // 1000, WINNER.partition("/")
    decisions.put([Decision(at, "bind", "MinimumFits", namespace, name, "prod", 1, "", "")])
    assert told(reader) == "", "the notice says it"
    begin_again(gang)
    assert told(reader) == "Evicted once: for job default/urgent of queue prod (reclaim)."
    begin_again(evict(gang, *BOTH, reason="preempt", other="other/bare"))
    begin_again(evict(gang, *BOTH, reason="reclaim"))
    often = "twice for job default/urgent of queue prod (reclaim), once for pod group other/bare (preempt)"
    assert told(reader) == f"Evicted 3 times: {often}."


@cases("others, reason, said", {
    "those for whom it went most often": (("a/one", "a/two", "a/three", "a/four", "a/two"), "preempt",
        "Evicted 5 times: twice for pod group a/two (preempt), once for pod group a/four (preempt), "
        "once for pod group a/three (preempt), 1 more for others."),
    "for nobody": (("",), "shuffle", "Evicted once: to be moved."),
})  # fmt: skip
def test_it_names_for_whom_it_went(life, reader, others, reason, said):
    gang = started(life)
    for other in others:
        begin_again(evict(gang, "demo-main-0", reason=reason, other=other))
    assert told(reader) == said


@cases("arguments, seconds", {
    "by default": ("", 300), "longer": ("{minRuntime: 1h}", 3600), "shorter": ("{minRuntime: 30s}", 0),
    "never": ("{minRuntime: 0}", 0),
})  # fmt: skip
def test_the_head_says_until_when_reclaim_leaves_it_alone(life, reader, arguments, seconds):
    gang = evict(started(life), *BOTH, reason="reclaim")
    noted = {"metadata": {"annotations": {FIRST_EVICTED: now_text(gang.clock.microseconds() // 1000)}}}
    store.write(Patch(POD_GROUPS, "default", f"demo-{gang.job.uid}", noted))
    if arguments:
        text = f"actions: allocate, reclaim\nconfigurations:\n- {{name: reclaim, arguments: {arguments}}}"
        stored = config_map("volcano-scheduler-configmap", "volcano-system", **{"volcano-scheduler.conf": text})
        store.write(Create(CONFIGMAPS, stored))
    gang.passes(10)
    assert "leaves it alone" not in JobPage(reader).html, "it waits"
    placed = gang.clock.microseconds() // 1000
    gang.place().passes(1).run().passes(60)
    until = f"Reclaim leaves it alone until {moment_of(placed + seconds * 1000):%Y-%m-%d %H:%M:%S} UTC."
    assert told(reader).endswith(until) == bool(seconds)
    assert ("leaves it alone" in told(reader)) == bool(seconds)
    gang.passes(seconds)
    assert "leaves it alone" not in told(reader), "it has run for long enough"


spans = st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(1, 10))).map(
    lambda each: (each[0], None if each[1] is None else each[0] + each[1])
)


@given(st.lists(spans, max_size=6), st.integers(1, 4))
def test_a_gang_is_held_exactly_while_enough_are_there(found, needed):
    held = chapters.held(found, needed)
    for moment in range(40):
        enough, is_held = (
            sum(begun <= moment and (ended is None or moment < ended) for begun, ended in each)
            for each in (found, held)
        )
        assert bool(is_held) == (enough >= needed)


def test_without_an_eviction_a_gang_waits_as_one_that_is_placed_once():
    times = Times(begun=0, let_in=5, placed=9, running=12)
    assert chapters.waits_of_gang(times, [(9, None)], [(12, None)]) == chapters.waits(times)
