"""Consumers of edges hear each pair of versions once, whatever happens to them."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys

import pytest

from cluster.runtime import consumer
from cluster.runtime.consumer import Consumer, Plan, Runner
from cluster.runtime.registry import Registration
from cluster.store import Create, Delete, Group, Patch, store
from kube.resources import PODS
from proof.harness.waiting import HANG_S

LEAST_KILLS = 20


class Listener(Consumer[dict]):
    """Notes the phases before and after each change."""

    name = "listener"
    crash_after = 10**6  # plans

    def __init__(self):
        self.pairs: list[tuple[str, str | None, str | None]] = []
        self.newer: list[int] = []  # by how much the state was newer than the last change

    def load(self, shard, revision):
        return {s.name: s.revision for s in store.find(PODS)}

    def apply(self, state, change):
        state[change.name] = change.revision

    def plan(self, state, changes, timers, now):
        if self.crash_after == 0:
            raise ZeroDivisionError
        self.crash_after -= 1
        self.pairs += [(c.name, phase(c.previous), phase(c.body)) for c in changes]
        self.newer += [max(state.values()) - changes[-1].revision] if changes else []
        return Plan()


def phase(body):
    return None if body is None else json.loads(body).get("status", {}).get("phase", "")


def listening(**options):
    runner = Runner(Registration("listener", "", (PODS,), **{"hears": "edges", **options}), 0, Listener())
    runner.holder = "the same"
    return runner


def drain(runner):
    while runner.step():
        pass


def add(name):
    store.write(Create(PODS, {"metadata": {"name": name, "namespace": "d"}, "spec": {}}))


def become(name, *phases):
    for each in phases:
        store.write(Patch(PODS, "d", name, {"status": {"phase": each}}, "status"))


@pytest.fixture
def short_batches(monkeypatch):
    monkeypatch.setattr(consumer, "BATCH", 2)


@pytest.mark.django_db(transaction=True)
def test_each_change_comes_with_what_it_replaced():
    runner = listening()
    drain(runner)
    add("a")
    become("a", "Running", "Failed")
    drain(runner)
    store.write(Delete(PODS, "d", "a", grace=0))
    drain(runner)
    assert runner.consumer.pairs == [
        ("a", None, ""),
        ("a", "", "Running"),
        ("a", "Running", "Failed"),
        ("a", "Failed", "Failed"),
    ]


@pytest.mark.django_db(transaction=True)
def test_a_day_that_was_missed_is_told_in_batches(short_batches):
    drain(listening())
    add("a")
    become("a", *"bcdefgh")
    runner = listening()
    heard = []
    while runner.step():
        heard.append(len(runner.consumer.pairs))
        assert runner._read_cursor().position == runner.heard
    assert heard == [2, 4, 6, 8]
    assert runner.consumer.pairs == [("a", *pair) for pair in zip([None, "", *"bcdefg"], ["", *"bcdefgh"], strict=True)]
    assert runner.consumer.newer == [6, 4, 2, 0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("plans", range(4))
def test_who_ends_in_the_middle_is_followed_by_one_who_hears_the_rest(plans, short_batches):
    drain(listening())
    add("a")
    become("a", *"bcdefgh")
    first, second = listening(), listening()
    first.consumer.crash_after = plans
    with pytest.raises(ZeroDivisionError):
        drain(first)
    become("a", "i")
    drain(second)
    told = first.consumer.pairs + second.consumer.pairs
    assert told == [("a", *pair) for pair in zip([None, "", *"bcdefgh"], ["", *"bcdefghi"], strict=True)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("hears", "told"), [("state", []), ("changes", [None, None])])
def test_who_asks_for_less_is_told_less_after_a_load(hears, told):
    drain(listening(hears=hears))
    add("a")
    become("a", "Running")
    runner = listening(hears=hears)
    drain(runner)
    assert [before for _, before, _ in runner.consumer.pairs] == told
    assert runner._read_cursor().position == store.revision()


@pytest.mark.django_db(transaction=True)
def test_what_was_planned_from_one_batch_is_in_the_state_before_the_next(short_batches):
    class Marker(Listener):
        """Marks each pod once, and trusts its state to say which are marked."""

        def load(self, shard, revision):
            return {s.name: "labels" in s.object["metadata"] for s in store.find(PODS)}

        def apply(self, state, change):
            state[change.name] = "labels" in change.object["metadata"]

        def plan(self, state, changes, timers, now):
            unmarked = [c.name for c in changes if not state[c.name]]
            self.pairs += unmarked
            mark = {"metadata": {"labels": {"marked": "yes"}}}
            return Plan([Group([Patch(PODS, "d", name, mark)]) for name in dict.fromkeys(unmarked)])

    drain(listening())
    add("a")
    become("a", *"bcdefgh")
    runner = listening()
    runner.consumer = Marker()
    drain(runner)
    assert runner.consumer.pairs == ["a", "a"]
    assert store.get(PODS, "d", "a").revision == store.revision() == 9


def test_kill_9_neither_loses_nor_doubles_an_edge(tmp_path, capsys):
    seed = int(os.environ.get("KILL_SEED") or random.SystemRandom().randrange(10**6))
    with capsys.disabled():
        sys.stdout.write(f"\nKILL_SEED={seed} ")
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.runtime.edges", str(seed)],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "volcano_ui.settings",
            "VOLCANO_UI_DATA": str(tmp_path),
            "VOLCANO_UI_WORKER": "recorder",
            "DATABASE_URL": "",
        },
        capture_output=True, text=True, timeout=2 * HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= LEAST_KILLS
    database = sqlite3.connect(tmp_path / "db.sqlite3")
    assert records(database) == edges(database)


def edges(database):
    """Return (pod, revision, before, after) for each change of a phase, as the log has them."""
    phases, found = {}, []
    for revision, name, verb, body in database.execute(
        "SELECT revision, name, verb, body FROM cluster_change WHERE resource = 'pods' ORDER BY revision"
    ):
        after = None if verb == "DELETED" else phase(body)
        before = phases.get(name)
        phases[name] = after
        if before != after:
            found.append((name, str(revision), str(before), str(after)))
    return found


def records(database):
    """Return what the consumer recorded, in the order in which it did."""
    rows = database.execute(
        "SELECT body FROM cluster_change WHERE resource = 'configmaps' AND verb = 'ADDED' ORDER BY revision"
    )
    data = [json.loads(body)["data"] for (body,) in rows]
    return [(each["pod"], each["revision"], each["before"], each["after"]) for each in data]
