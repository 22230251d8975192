"""Consumers read every change once, whoever fails when; those of edges hear of each pair of versions; and which of them run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from itertools import pairwise

import pytest
from django.db import connection

from cluster import clock, tasks
from cluster.models import Cursor
from cluster.runtime import consumer, registry
from cluster.runtime.backlog import Backlog
from cluster.runtime.consumer import RETRY, Consumer, Plan, Runner
from cluster.runtime.registry import Registration
from cluster.store import Create, Delete, Group, Patch, store
from cluster.writes import Timer
from kube.errors import AlreadyExists
from kube.resources import CONFIGMAPS, JOBS, PODS
from proof.harness.waiting import HANG_S
from tests.builders import config_map, pod
from volcano_ui.beat import Clock
from volcano_ui.celery import Messages, app

pytestmark = pytest.mark.django_db
HOUR_MS = 3_600_000
LEAST_KILLS = 20


class Copier(Consumer[dict]):
    """Keeps a config map for each pod. Its state counts the changes of each."""

    name = "copier"
    crash_after = 10**6  # plans
    conflict = False

    def __init__(self):
        self.loads = 0
        self.heard = []
        self.phases = []  # before and after each change
        self.timers = []

    def load(self, shard, revision):
        self.loads += 1
        return {s.name: 0 for s in store.find(PODS)}

    def apply(self, state, change):
        if change.verb == "DELETED":
            state.pop(change.name, None)
        else:
            state[change.name] = state.get(change.name, 0) + 1

    def plan(self, state, changes, timers, now):
        if self.crash_after == 0:
            raise ZeroDivisionError
        self.crash_after -= 1
        self.heard += [(c.verb, c.name) for c in changes]
        self.phases += [(phase(c.previous), phase(c.body)) for c in changes]
        self.timers += timers
        missing = sorted(set(state) - set(copies()))
        more = [Delete(PODS, "default", "never")] if self.conflict else []
        return Plan([Group([Create(CONFIGMAPS, config_map(name)), *more], key=name) for name in missing])


def phase(body):
    return None if body is None else json.loads(body).get("status", {}).get("phase", "")


def running(state=None, holder="the same", **options):
    """A runner in a process of its own."""
    registration = Registration("copier", "", (PODS,), **{"hears": "changes", **options})
    return Runner(registration, 0, state or Copier(), holder=holder)


def drain(*runners):
    for runner in runners:
        while runner.step():
            pass


def add(name):
    store.write(Create(PODS, pod(name)))


def become(*phases, name="a"):
    for each in phases:
        store.write(Patch(PODS, "default", name, {"status": {"phase": each}}, "status"))


def copies():
    return [s.name for s in store.find(CONFIGMAPS)]


@pytest.fixture
def runner():
    """A runner that has looked at what was there, which is nothing."""
    made = running()
    drain(made)
    return made


def test_changes_are_heard_once_and_in_order_with_what_they_replaced_and_others_cost_no_write(runner):
    add("a")
    become("Running", "Failed")
    store.write(Delete(PODS, "default", "a"))
    drain(runner, runner)
    assert runner.consumer.heard == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [after for _, after in runner.consumer.phases] == ["", "Running", "Failed", "Failed"]
    assert runner.consumer.loads == 1
    generation = runner.generation
    store.write(Create(CONFIGMAPS, config_map("x")))
    drain(runner)
    assert runner.generation == generation
    assert len(runner.consumer.heard) == 4


@pytest.mark.parametrize("is_same_process", [True, False])
def test_failed_plan_is_made_again_from_a_fresh_state_by_the_same_process_or_the_next(runner, is_same_process):
    add("a")
    runner.consumer.crash_after = 0
    with pytest.raises(ZeroDivisionError):
        drain(runner)
    del runner.consumer.crash_after
    next_one = runner if is_same_process else running()
    drain(next_one)
    assert next_one.consumer.loads == 1 + is_same_process
    assert next_one.consumer.heard == [("ADDED", "a")]
    assert copies() == ["a"]


def test_first_run_looks_at_what_is_there_and_only_one_of_two_processes_handles_a_change(runner):
    add("a")
    drain(runner)
    other = running()
    drain(other)
    assert (copies(), other.consumer.heard) == (["a"], [])
    add("b")
    drain(runner, other)
    assert runner.consumer.heard[1:] + other.consumer.heard == [("ADDED", "b")]
    assert copies() == ["a", "b"]


def test_another_process_waits_while_the_leader_is_alive(runner):
    add("a")
    other = running(holder="two")
    assert other.step() is False
    assert copies() == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_cursor SET held_until = %s", [clock.milliseconds() - 1])
    drain(other)
    assert copies() == ["a"]


def test_a_dead_leader_does_not_lead_on_when_the_clock_is_set_back(moved_clock, runner):
    add("a")
    moved_clock.us -= 600_000_000
    drain(running(holder="two"))
    assert copies() == ["a"]


@pytest.mark.shows("3.6/tried again", "queues 2.6/tried again", "queues 2.6/given up")
def test_group_that_goes_on_failing_is_tried_less_and_less_often(moved_clock, runner):
    runner.consumer.conflict = True
    add("a")
    tried = []
    for now in range(400):
        before = len(runner.consumer.timers)
        drain(runner)
        moved_clock.move(0.001)
        tried += [now] * (len(runner.consumer.timers) - before)
    assert [later - earlier for earlier, later in pairwise(tried)] == [50, 100, 200]
    found = [(t.kind, t.key, t.payload["tries"]) for t in runner.consumer.timers]
    assert found == [(RETRY, "a", n) for n in (1, 2, 3, 4)]
    assert "never" in runner.consumer.timers[0].payload["error"]
    runner.consumer.conflict = False
    moved_clock.move(1)
    drain(runner)
    assert copies() == ["a"]


@pytest.mark.django_db(transaction=True)
def test_consumer_learns_what_became_of_each_group_after_the_transaction():
    class Learner(Copier):
        def plan(self, state, changes, timers, now):
            return Plan([Group([Create(CONFIGMAPS, config_map(name))], key=name) for name in ("free", "taken")])

        def committed(self, state, groups, outcomes):
            self.transaction_lasts = connection.in_atomic_block
            self.learned = dict(zip([group.key for group in groups], outcomes, strict=True))

    store.write(Create(CONFIGMAPS, config_map("taken")))
    runner = running(Learner())
    runner.step()
    learned = runner.consumer.learned
    assert [each.revision for each in learned["free"]] == [store.get(CONFIGMAPS, "default", "free").revision]
    assert isinstance(learned["taken"], AlreadyExists)
    assert not runner.consumer.transaction_lasts


def test_timer_fires_once_when_due():
    class Planner(Copier):
        def plan(self, state, changes, timers, now):
            self.timers += timers
            soon = [Timer("look", "soon", now, {"n": 1}), Timer("look", "gone", now), Timer("end", "gone", now)]
            late = [Timer("end", "soon", now + HOUR_MS), Timer("look", "late", now + HOUR_MS)]
            return Plan(timers=[*soon, *late], cancel=[("look", "gone")]) if changes else Plan()

    runner = running(Planner())
    drain(runner)
    add("a")
    drain(runner)
    fired = sorted((t.kind, t.key, t.payload) for t in runner.consumer.timers)
    assert fired == [("end", "gone", {}), ("look", "gone", {}), ("look", "soon", {"n": 1})]


@pytest.fixture
def backlog(monkeypatch, runner):
    """Say which consumers have something to do, of which there is one."""
    monkeypatch.setattr(registry, "every", lambda: [runner.registration])
    return lambda: Backlog().of("controllers", clock.milliseconds())


def test_a_consumer_that_nothing_concerns_does_not_hold_up_retention(monkeypatch, runner, backlog):
    monkeypatch.setattr(consumer, "LAG", 3)
    drain(runner)
    for names, is_far in (("abc", False), ("d", True)):
        for name in names:
            store.write(Create(CONFIGMAPS, config_map(name)))
        assert backlog() == [(runner.registration, 0)] * is_far
        drain(runner)
        assert (runner._read_cursor().position == store.revision()) == is_far
    assert backlog() == []


def test_a_consumer_that_history_has_outrun_is_behind_and_keeps_no_other_from_being_woken(runner, backlog):
    add("two")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET compacted = head")
    assert backlog() == [(runner.registration, 0)]


@pytest.fixture
def short_batches(monkeypatch):
    monkeypatch.setattr(consumer, "BATCH", 2)


@pytest.mark.parametrize("hears", ["changes", "edges"])
def test_a_plan_is_never_made_before_the_last_plans_writes_were_read(short_batches, hears):
    class Marker(Copier):
        """Marks each pod once, and trusts its state to say which are marked."""

        def load(self, shard, revision):
            return {s.name: "labels" in s.object["metadata"] for s in store.find(PODS)}

        def apply(self, state, change):
            state[change.name] = "labels" in change.object["metadata"]

        def plan(self, state, changes, timers, now):
            unmarked = sorted(name for name, is_marked in state.items() if not is_marked)
            self.heard += unmarked
            mark = {"metadata": {"labels": {"marked": "yes"}}}
            return Plan([Group([Patch(PODS, "default", name, mark)], key=name) for name in unmarked])

    runner = running(Marker(), hears=hears)
    drain(runner)
    names = [f"p{i}" for i in range(7)]
    for name in names:
        add(name)
    if hears == "edges":  # a new process hears what nobody has heard
        runner = running(Marker(), hears=hears)
    drain(runner)
    assert sorted(runner.consumer.heard) == names


@pytest.mark.parametrize(("hears", "replaced"), [("state", []), ("changes", [None, None]), ("edges", [None, ""])])
def test_who_asks_for_less_is_told_less_after_a_load(hears, replaced):
    drain(running(hears=hears))
    add("a")
    become("Running")
    runner, head = running(hears=hears), store.revision()
    drain(runner)
    assert [before for before, _ in runner.consumer.phases] == replaced
    assert runner._read_cursor().position == head


def test_kill_9_neither_loses_nor_doubles_an_edge(tmp_path, capsys):
    seed = int(os.environ.get("KILL_SEED") or random.SystemRandom().randrange(10**6))
    with capsys.disabled():
        sys.stdout.write(f"\nKILL_SEED={seed} ")
    program = f"import django; django.setup(); from tests.cluster.runtime import edges; edges.main({seed})"
    environment = {
        "DJANGO_SETTINGS_MODULE": "volcano_ui.settings",
        "VOLCANO_UI_DATA": str(tmp_path),
        "DATABASE_URL": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment,
        capture_output=True, text=True, timeout=2 * HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= LEAST_KILLS


# Which run, and on which queues.

VOLCANO = ("jobs", "queues", "scheduler")


@pytest.fixture
def elsewhere(monkeypatch):
    """A cluster that has the controllers of Volcano already."""
    monkeypatch.setattr(registry, "_runs", registry._runs)
    registry.use(lambda registration: registration.name not in VOLCANO)


def test_all_run_unless_somebody_says_otherwise_and_queues_news_and_ticks_are_for_those_who_run(request):
    assert registry.running() == registry.every()
    assert registry.queues() == ["controllers", "scheduler", "jobs"]
    request.getfixturevalue("elsewhere")
    assert not {each.name for each in registry.running()} & {*VOLCANO}
    assert registry.queues() == list(Messages(app).queues) == ["controllers"]
    assert not {each.name for each in registry.interested(frozenset([JOBS.id]))} & {*VOLCANO}
    ticks = {name: entry.options["queue"] for name, entry in Clock(app=app).schedule.items() if "tick" in name}
    assert ticks == {"tick controllers": "controllers"}


def test_a_message_to_one_who_runs_no_more_is_dropped(elsewhere):
    store.write(Create(PODS, pod()))
    tasks.consume("scheduler", 0)
    assert Backlog().of("scheduler", clock.milliseconds()) == []
    assert Cursor.objects.count() == 0


def test_each_shard_has_a_queue_and_a_cursor_of_its_own():
    two = Registration("jobs", "", (JOBS,), queue="jobs", shards=2)
    assert (two.queues, two.cursors) == (["jobs", "jobs-1"], ["jobs/0", "jobs/1"])


def test_a_cursor_has_a_reader_as_long_as_its_consumer_is_registered():
    assert registry.has_reader("jobs/0")
    assert registry.has_reader("jobs/7"), "of a shard that is no more"
    assert not registry.has_reader("someone/0")
    assert not registry.has_reader("jobsite/0"), "of a name that only begins so"


def test_a_shard_that_is_no_more_wakes_those_that_are(monkeypatch):
    two, one = (Registration("reader", "", (PODS,), hears="edges", shards=shards) for shards in (2, 1))
    for name in two.cursors:
        Cursor.objects.create(name=name, position=0, generation=1, holder="somebody")
    for each, woken in ((two, []), (one, [(one, 0)])):
        monkeypatch.setattr(registry, "_registrations", {"reader": each})
        assert Backlog().of("controllers", clock.milliseconds()) == woken
