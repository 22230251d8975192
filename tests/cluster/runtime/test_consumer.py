"""Consumers read every change once, whoever fails when."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.db import connection

from cluster import clock
from cluster.runtime import consumer, registry
from cluster.runtime.backlog import Backlog
from cluster.runtime.consumer import RETRY, Consumer, Plan, Runner
from cluster.runtime.registry import Registration
from cluster.store import Create, Delete, Group, Patch, store
from cluster.writes import Timer
from kube.errors import AlreadyExists
from kube.resources import CONFIGMAPS, PODS

pytestmark = pytest.mark.django_db(transaction=True)
REGISTRATION = Registration("copier", "tests.cluster.runtime.test_consumer.Copier", (PODS,), hears="changes")


class Copier(Consumer[dict]):
    """Keeps a config map for each pod: data.seen counts the pod's changes."""

    name = "copier"
    crash = None
    conflict = False

    def __init__(self):
        self.loads = 0
        self.heard: list[tuple[str, str]] = []
        self.timers: list[Timer] = []

    def load(self, shard, revision):
        self.loads += 1
        return {s.name: 0 for s in store.find(PODS)}

    def apply(self, state, change):
        if change.verb == "DELETED":
            state.pop(change.name, None)
        else:
            state[change.name] = state.get(change.name, 0) + 1

    def plan(self, state, changes, timers, now):
        if self.crash:
            raise self.crash
        self.heard += [(c.verb, c.name) for c in changes]
        self.timers += timers
        missing = sorted(set(state) - {s.name for s in store.find(CONFIGMAPS)})
        groups = [
            Group([Create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "d"}})], key=name) for name in missing
        ]
        if self.conflict:
            groups = [Group([*g.writes, Delete(PODS, "d", "never")], key=g.key) for g in groups]
        return Plan(groups)


def add(name):
    store.write(Create(PODS, {"metadata": {"name": name, "namespace": "d"}, "spec": {}}))


def drain(runner):
    while runner.step():
        pass


def copies():
    return [s.name for s in store.find(CONFIGMAPS)]


def test_first_run_looks_at_what_is_there():
    add("a")
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    assert copies() == ["a"]
    assert runner.consumer.heard == []


def test_changes_are_heard_once_and_in_order():
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    add("a")
    store.write(Patch(PODS, "d", "a", {"status": {"phase": "Running"}}, "status"))
    store.write(Delete(PODS, "d", "a"))
    drain(runner)
    drain(runner)
    assert runner.consumer.heard == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert runner.consumer.loads == 1


def test_new_process_hears_what_the_last_one_did_not_handle():
    drain(Runner(REGISTRATION, 0, Copier()))
    add("a")
    crashing = Runner(REGISTRATION, 0, Copier())
    crashing.consumer.crash = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        drain(crashing)
    successor = Runner(REGISTRATION, 0, Copier())
    drain(successor)
    assert successor.consumer.heard == [("ADDED", "a")]
    assert copies() == ["a"]


def test_failed_plan_is_tried_again_from_a_fresh_state():
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    add("a")
    runner.consumer.crash = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        runner.step()
    runner.consumer.crash = None
    drain(runner)
    assert runner.consumer.loads == 2
    assert runner.consumer.heard == [("ADDED", "a")]


def test_only_one_of_two_processes_handles_a_change():
    first, second = (Runner(REGISTRATION, 0, Copier()) for _ in range(2))
    first.holder = second.holder = "same"
    drain(first)
    drain(second)
    add("a")
    drain(first)
    drain(second)
    assert first.consumer.heard + second.consumer.heard == [("ADDED", "a")]
    assert copies() == ["a"]


def test_another_process_waits_while_the_leader_is_alive():
    leader, other = (Runner(REGISTRATION, 0, Copier()) for _ in range(2))
    leader.holder, other.holder = "one", "two"
    drain(leader)
    add("a")
    assert other.step() is False
    assert copies() == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_cursor SET held_until = %s", [clock.milliseconds() - 1])
    drain(other)
    assert copies() == ["a"]


def test_a_dead_leader_does_not_lead_on_when_the_clock_is_set_back(moved_clock):
    leader, other = (Runner(REGISTRATION, 0, Copier()) for _ in range(2))
    leader.holder, other.holder = "one", "two"
    drain(leader)
    add("a")
    moved_clock.us -= 600_000_000
    drain(other)
    assert copies() == ["a"]


def test_conflicting_group_comes_back_as_a_timer():
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    runner.consumer.conflict = True
    add("a")
    assert runner.step()
    runner.consumer.conflict = False
    drain(runner)
    assert [(t.kind, t.key) for t in runner.consumer.timers] == [(RETRY, "a")]
    assert copies() == ["a"]


@pytest.mark.shows("3.6/tried again", "queues 2.6/tried again", "queues 2.6/given up")
def test_group_that_goes_on_failing_is_tried_less_and_less_often(moved_clock):
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    runner.consumer.conflict = True
    add("a")
    tried = []
    for now in range(400):
        before = len(runner.consumer.timers)
        drain(runner)
        moved_clock.move(0.001)
        tried += [now] * (len(runner.consumer.timers) - before)
    assert [later - earlier for earlier, later in pairwise(tried)] == [50, 100, 200]
    assert [(t.key, t.payload["tries"]) for t in runner.consumer.timers] == [("a", n) for n in (1, 2, 3, 4)]
    assert "never" in runner.consumer.timers[0].payload["error"]


def test_consumer_learns_what_became_of_each_group():
    class Learner(Copier):
        def plan(self, state, changes, timers, now):
            config = [{"metadata": {"name": name, "namespace": "d"}} for name in ("free", "taken")]
            return Plan([Group([Create(CONFIGMAPS, each)], key=each["metadata"]["name"]) for each in config])

        def committed(self, state, groups, outcomes):
            self.transaction_lasts = connection.in_atomic_block
            self.learned = dict(zip([group.key for group in groups], outcomes, strict=True))

    store.write(Create(CONFIGMAPS, {"metadata": {"name": "taken", "namespace": "d"}}))
    runner = Runner(REGISTRATION, 0, Learner())
    runner.step()
    learned = runner.consumer.learned
    assert [each.revision for each in learned["free"]] == [store.get(CONFIGMAPS, "d", "free").revision]
    assert isinstance(learned["taken"], AlreadyExists)
    assert not runner.consumer.transaction_lasts


def test_timer_fires_once_when_due():
    class Planner(Copier):
        def plan(self, state, changes, timers, now):
            self.timers += timers
            if changes:
                return Plan(
                    timers=[
                        Timer("look", "soon", now, {"n": 1}),
                        Timer("end", "soon", now + 3_600_000),
                        Timer("look", "late", now + 3_600_000),
                        Timer("look", "gone", now),
                        Timer("end", "gone", now),
                    ],
                    cancel=[("look", "gone")],
                )
            return Plan()

    runner = Runner(REGISTRATION, 0, Planner())
    drain(runner)
    add("a")
    drain(runner)
    fired = sorted((t.kind, t.key, t.payload) for t in runner.consumer.timers)
    assert fired == [("end", "gone", {}), ("look", "gone", {}), ("look", "soon", {"n": 1})]


def test_irrelevant_changes_cost_no_write():
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    generation = runner.generation
    store.write(Create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": "d"}}))
    drain(runner)
    assert runner.generation == generation
    assert runner.consumer.heard == []


def test_a_consumer_that_nothing_concerns_does_not_hold_up_retention(monkeypatch):
    monkeypatch.setattr(consumer, "LAG", 3)
    monkeypatch.setattr(registry, "every", lambda: [REGISTRATION])
    add("one")
    runner = Runner(REGISTRATION, 0, Copier())
    drain(runner)
    for name in "abcde":
        store.write(Create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "d"}}))
    assert Backlog().of("controllers", clock.milliseconds()) == [(REGISTRATION, 0)]
    drain(runner)
    assert runner._read_cursor().position == store.revision()
    assert Backlog().of("controllers", clock.milliseconds()) == []


def test_a_consumer_that_history_has_outrun_is_behind_and_keeps_no_other_from_being_woken(monkeypatch):
    monkeypatch.setattr(registry, "every", lambda: [REGISTRATION])
    runner = Runner(REGISTRATION, 0, Copier())
    add("one")
    drain(runner)
    add("two")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET compacted = head")
    assert Backlog().of("controllers", clock.milliseconds()) == [(REGISTRATION, 0)]


def test_a_plan_is_never_made_before_the_last_plans_writes_were_read(monkeypatch):
    monkeypatch.setattr("cluster.runtime.consumer.BATCH", 2)

    class Marker(Copier):
        """Marks each pod once, and trusts its state to say which are marked."""

        def apply(self, state, change):
            state[change.name] = change.object["metadata"].get("labels", {}).get("marked", 0)

        def plan(self, state, changes, timers, now):
            unmarked = sorted(name for name, marked in state.items() if not marked)
            self.heard += unmarked
            mark = {"metadata": {"labels": {"marked": "yes"}}}
            return Plan([Group([Patch(PODS, "d", name, mark)], key=name) for name in unmarked])

    runner = Runner(REGISTRATION, 0, Marker())
    drain(runner)
    names = [f"p{i}" for i in range(7)]
    for name in names:
        add(name)
    drain(runner)
    assert sorted(runner.consumer.heard) == names
