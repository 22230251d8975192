"""What the log of a job is folded into, and that it does not matter in how many pieces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.bootstrap import bootstrap
from cluster.store import Patch, store
from jobs.history import record
from jobs.history.fold import MOST_STRETCHES, MOST_TOLD, fold, stretches_after
from jobs.history.record import History, Stretch
from jobs.pages.reading import ContainerState, ContainerStatus, Pod, PodStatus, Running, Terminated
from kube.kinds.batch import Action
from kube.meta import now_text
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS
from tests.jobs.control import task
from tests.jobs.history.lives import Life
from tests.tables import cases

KINDS = (JOBS, POD_GROUPS, PODS, EVENTS)


@pytest.fixture
def life(db, moved_clock):
    bootstrap()
    return lambda **spec: Life(moved_clock, **spec)


def told(life):
    """Return the job's whole log, in order."""
    return [change for change in store.changes(0, KINDS, limit=10_000) if life.job.name in change.name]


def ordinary(life):
    return life().passes(2).admit().passes(3).place().passes(1).run()


def completes(life):
    one = ordinary(life)
    began = one.now()
    one.passes(10)
    for pod in ("demo-main-0", "demo-main-1"):
        one.end(pod, 0, began=began)
    return one


def fails(life):
    one = ordinary(life)
    began = one.now()
    one.passes(10)
    one.end("demo-main-1", 3, began=began).end("demo-main-0", 0, began=began)
    return one


def is_suspended(life):
    return ordinary(life).passes(60).suspend()


def is_resumed(life):
    return is_suspended(life).passes(600).resume().passes(2).admit().place().run()


def restarts(life):
    one = ordinary(life).passes(5).ask(Action.RESTART_JOB)
    return one.passes(1).bury().passes(2).admit().place().run()


def restarts_a_task(life):
    one = life(tasks=[task("main", 1), task("side", 1)]).admit().place().run().passes(5)
    policies = {"policies": [{"event": "PodFailed", "action": "RestartTask"}]}
    store.write(Patch(JOBS, "default", "demo", {"spec": policies}))
    one.jobs.settle()
    one.end("demo-side-0", 1, began=one.now()).bury().passes(1).admit().place().run()
    return one


def is_deleted(life):
    return completes(life).passes(5).delete()


@cases("lived, runs", {
    "runs": (ordinary, [("", 2)]),
    "completes": (completes, [("Completed", 2)]),
    "fails": (fails, [("Failed", 2)]),
    "is suspended": (is_suspended, [("Aborted", 2)]),
    "is suspended and resumed": (is_resumed, [("Aborted", 2), ("", 2)]),
    "restarts": (restarts, [("Restarting", 2), ("", 2)]),
    "restarts a task and goes on": (restarts_a_task, [("", 3)]),
    "is deleted": (is_deleted, [("Completed", 2)]),
})  # fmt: skip
def test_a_life_is_told_in_runs(life, lived, runs):
    found = fold(History(), told(lived(life)))
    assert [(run.phase, len(run.pods)) for run in found.runs] == runs
    assert all(before.ended is not None for before in found.runs[:-1])
    assert (found.runs[-1].ended is None) == (not found.runs[-1].phase)


def test_a_run_has_its_own_times(life):
    one = is_resumed(life)
    first, second = fold(History(), told(one)).runs
    assert (first.let_in - first.begun, first.running - first.let_in, first.ended - first.running) == (
        2000,
        4000,
        60_000,
    )
    assert second.begun - first.ended == 600_000
    assert second.let_in - second.begun == 2000
    assert {span.removed - first.begun for span in first.pods.values()} == {66_000}
    assert first.pods.keys().isdisjoint(second.pods)


def test_what_ended_a_run_is_said(life):
    found = fold(History(), told(fails(life)))
    assert "main" in found.runs[0].message
    spans = {span.pod.metadata.name: span for span in found.runs[0].pods.values()}
    assert [(each.exit_code, each.finished - each.started) for each in spans["demo-main-1"].stretches] == [(3, 10_000)]
    assert [entry.phase for entry in found.phases] == ["Pending", "Running", "Failed"]


@cases("happens, is_asked", {
    "removed before it had ended": (lambda one, began: one.suspend(), True),
    "ended by the signal": (lambda one, began: one.ask(Action.ABORT_JOB).bury(143), True),
    "ended well when asked": (lambda one, began: one.ask(Action.ABORT_JOB).bury(0), True),
    "failed by itself, then tidied away": (
        lambda one, began: one.end("demo-main-0", 143, began=began).ask(Action.RESTART_JOB).bury(), False),
    "failed and stays": (lambda one, began: one.end("demo-main-0", 1, began=began), False),
})  # fmt: skip
def test_who_was_asked_to_end_is_told_from_who_ended(life, happens, is_asked):
    one = ordinary(life).passes(5)
    happens(one, one.now())
    (run,) = fold(History(), told(one)).runs[:1]
    (span,) = (span for span in run.pods.values() if span.pod.metadata.name == "demo-main-0")
    assert (span.asked is not None) == is_asked


LIVES = (completes, is_resumed, restarts, restarts_a_task, is_deleted)


@pytest.mark.parametrize("lived", LIVES, ids=lambda lived: lived.__name__)
def test_a_log_in_pieces_is_folded_into_the_same(life, lived):
    changes = told(lived(life))
    whole = fold(History(), changes)

    @settings(max_examples=60, database=None)
    @given(st.lists(st.integers(0, len(changes)), max_size=6))
    def in_pieces(cuts):
        found = History()
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(changes)], strict=True):
            found = record.read(record.write(fold(found, changes[start:end])))
        assert found == whole

    in_pieces()


@pytest.mark.parametrize("lived", LIVES, ids=lambda lived: lived.__name__)
def test_pods_may_be_told_after_the_job(life, lived):
    changes = told(lived(life))
    own = [each for each in changes if each.resource != PODS.id]
    pods = [each for each in changes if each.resource == PODS.id]
    assert fold(fold(History(), own), pods) == fold(History(), changes)


def second(number):
    return now_text(number * 1000)


def pod(state, last=None):
    container = ContainerStatus(name="main", state=state, last_state=last or ContainerState())
    return Pod(status=PodStatus(container_statuses=[container]))


def ran(start, end, code=1):
    return ContainerState(terminated=Terminated(exit_code=code, started_at=second(start), finished_at=second(end)))


@cases("states, expected", {
    "runs": ([(ContainerState(running=Running(started_at=second(1))), None)], [(1, None)]),
    "ran": ([(ContainerState(running=Running(started_at=second(1))), None), (ran(1, 4), None)], [(1, 4)]),
    "starts again: the first start stays": (
        [(ContainerState(running=Running(started_at=second(1))), None), (ContainerState(), ran(1, 2)), (ContainerState(running=Running(started_at=second(12))), ran(1, 2)), (ContainerState(), ran(12, 13))],
        [(1, 2), (12, 13)]),
    "seen late": ([(ContainerState(), ran(12, 13))], [(12, 13)]),
})  # fmt: skip
def test_stretches_are_what_containers_ran(states, expected):
    found: list[Stretch] = []
    for state, last in states:
        found = stretches_after(found, pod(state, last))
    assert [(each.started // 1000, each.finished and each.finished // 1000) for each in found] == expected


def test_of_many_starts_the_first_and_the_newest_are_kept():
    found: list[Stretch] = []
    for number in range(MOST_STRETCHES + 20):
        found = stretches_after(found, pod(ran(number * 10, number * 10 + 1)))
    assert len(found) == MOST_STRETCHES
    assert (found[0].started, found[-1].started) == (0, (MOST_STRETCHES + 19) * 10_000)


def test_of_many_events_the_newest_are_kept(life):
    one = life()
    for number in range(MOST_TOLD + 5):
        one.passes(1).tell("Told", f"number {number}")
    found = fold(History(), told(one))
    messages = {each.message for each in found.told.values()}
    assert len(messages) == MOST_TOLD
    assert f"number {MOST_TOLD + 4}" in messages
    assert "number 0" not in messages
