"""What is told of jobs that wait for room that nobody uses, from a scheduler on the real store that makes a mistake."""

import logging

import pytest

from cluster.access import SYSTEM
from cluster.consumers.consumer import Runner
from cluster.runtime import idle_room
from cluster.runtime.idle_room import EVERY_MS
from cluster.runtime.registry import get
from cluster.store import Create, Delete, Patch, store
from kube.resources import NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES
from proof.harness.clocks import ManualClock, using
from scheduler import metrics
from scheduler.consumer import SchedulerConsumer
from scheduler.engine.place import Placer
from scheduler.idle_watch import STUCK_MS, IdleWatch
from tests.tables import cases

from .world import configuration, group, node, pod, queue

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clock():
    with using(ManualClock()) as manual:
        yield manual


@pytest.fixture
def scheduler(clock):
    create((NAMESPACES, {"metadata": {"name": "ns"}}), node("n1", "8"), queue())
    return Runner(get("scheduler"), 0, SchedulerConsumer())


@pytest.fixture
def watch():
    return IdleWatch()


@pytest.fixture
def blind(monkeypatch):
    """Gangs of three and more are not tried."""
    may_fit = Placer.may_fit
    plant = lambda self, gang: sum(b.count for b in gang.bins) < 3 and may_fit(self, gang)  # noqa: E731
    monkeypatch.setattr(Placer, "may_fit", plant)
    return monkeypatch.undo


def create(*objects):
    store.write(*(Create(kind, obj) for kind, obj in objects))


def gang(name, pods, cpu="2", **spec):
    create(group(name, pods, **spec), *(pod(f"{name}-{number}", name, cpu) for number in range(pods)))


def check(watch, clock, seconds=EVERY_MS / 1000):
    """Look some time later; return the pod groups that are told of, each with the seconds for which it has waited."""
    clock.move(seconds)
    watch.check(clock.microseconds() // 1000)
    found = idle_room.last()
    return {each.group: (found.at - each.since) / 1000 for each in found.waits()} if found else {}


def figures():
    families = {each.name.removeprefix("volcano_ui_idle_room_"): each for each in metrics.families(SYSTEM)}
    return {name: next(value for _, value in family.samples) for name, family in families.items()}


def touch(text):
    """A change of the node by which nobody can start."""
    store.write(Patch(NODES, "", "n1", {"metadata": {"labels": {"note": text}}}))


def test_who_could_start_and_is_passed_over_is_told_of_until_he_starts(scheduler, watch, clock, blind, caplog):
    gang("g", 3)
    scheduler.run()
    with caplog.at_level(logging.WARNING, "scheduler"):
        assert check(watch, clock, 10) == {}, "he may be about to start"
        assert check(watch, clock) == {"ns/g": 40}
        assert check(watch, clock) == {"ns/g": 70}
    messages = [each.getMessage().partition(":")[0] for each in caplog.records]
    assert messages == ["pod group ns/g could have started 40 s ago"]
    last = {"last_check_timestamp_seconds": clock.microseconds() // 1000 / 1000}
    assert figures() == {"wait_seconds": 70, "waiting_jobs": 1, "judged_jobs": 1, **last}
    blind()
    touch("1")
    scheduler.run()
    assert check(watch, clock) == {}
    assert (figures()["wait_seconds"], figures()["waiting_jobs"]) == (0, 0)


def test_who_waits_for_room_that_others_use_is_not_told_of(scheduler, watch, clock):
    gang("first", 3)
    scheduler.run()
    gang("second", 3)
    scheduler.run()
    assert check(watch, clock) == check(watch, clock) == {}
    assert figures()["judged_jobs"] == 1


def test_of_what_the_scheduler_has_not_read_nothing_is_said(scheduler, watch, clock, blind):
    gang("g", 3)
    scheduler.run()
    assert check(watch, clock) == {"ns/g": 30}
    touch("1")
    clock.move(EVERY_MS / 1000)
    touch("2")
    scheduler.run()
    touch("3")
    assert check(watch, clock, 1) == {"ns/g": 30}, "the last that is known"
    store.write(Delete(POD_GROUPS, "ns", "g"))
    assert check(watch, clock, 1) == {}, "he is gone, which is known without a check"


def test_a_scheduler_that_does_not_run_is_noticed_by_those_who_wait(scheduler, watch, clock):
    scheduler.run()
    gang("g", 3)
    gang("h", 9)
    assert check(watch, clock, STUCK_MS / 1000 - 1) == {}
    assert check(watch, clock, 2) == {"ns/g": STUCK_MS / 1000 + 1}


@cases("change", {
    "queue": lambda: store.write(Patch(QUEUES, "", "default", {"status": {"state": "Closed"}}, "status")),
    "node": lambda: store.write(Patch(NODES, "", "n1", {"spec": {"unschedulable": True}})),
    "room": lambda: create(pod("x", "", "4", node="n1", phase="Running")),
    "affinity": lambda: create(pod("x", "", "0", node="n1", phase="Running", affinity=APART)),
    "actions": lambda: create(configuration('actions: "enqueue, backfill"')),
    "node groups": lambda: create(configuration(GROUPED)),
    "pods": lambda: store.write(Delete(PODS, "ns", "g-0")),
    "likeness": lambda: store.write(Patch(PODS, "ns", "g-0", {"spec": {"nodeSelector": {"zone": "a"}}})),
})  # fmt: skip
def test_nobody_is_accused_of_whom_it_cannot_be_said(change, scheduler, watch, clock):
    create((NAMESPACES, {"metadata": {"name": "volcano-system"}}))
    scheduler.run()
    gang("g", 3)
    change()
    assert check(watch, clock, 2 * STUCK_MS / 1000) == {}


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
GROUPED = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: nodegroup\n'


def test_it_looks_on_where_its_time_ended(scheduler, watch, clock, monkeypatch):
    scheduler.run()
    for number in range(4):
        gang(f"g{number}", 3, cpu="2" if number == 2 else "9")
    monkeypatch.setattr("scheduler.idle_watch.BUDGET_S", -1)
    clock.move(STUCK_MS / 1000)
    found = [({*check(watch, clock)}, idle_room.last().judged) for _ in range(4)]
    assert found == [(set(), 1), (set(), 1), ({"ns/g2"}, 1), ({"ns/g2"}, 1)]


def test_nothing_is_read_while_nobody_waits(scheduler, watch, clock, django_assert_max_num_queries):
    gang("g", 3)
    scheduler.run()
    with django_assert_max_num_queries(12):  # with those of its transactions
        assert check(watch, clock) == {}
    assert watch._pictures._picture is None
