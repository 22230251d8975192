"""What the controller read beside the log, and what it wrote itself, against what the log tells later."""

from __future__ import annotations

import logging

import pytest

from cluster import clock
from cluster.runtime import registry
from cluster.runtime.consumer import RETRY
from cluster.store import Create, Delete, Patch, Stored, store
from cluster.writes import Timer
from jobs.controller import job_controller
from jobs.controller.job_controller import LOST, JobConsumer
from kube.resources import COMMANDS, JOBS, PODS
from tests.builders import owner, pod
from tests.jobs.control import command, job, remove, resize, state
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
KEY = "default/demo"
AGAIN = Timer(RETRY, KEY, 0)


@pytest.fixture
def late(controller):
    """A controller whose state is behind the store: what happens now is told later, by `tell`."""
    controller.start(replicas=1)
    with store.reading() as revision:
        loaded = JobConsumer().load(0, revision)
    loaded.touched.clear()
    return Late(loaded, revision)


class Late:
    consumer = JobConsumer()

    def __init__(self, loaded, revision):
        self.state, self.revision = loaded, revision

    def known(self, name="demo"):
        return self.state.entries[f"default/{name}"].known

    def tell(self, *, all_but=0, until=None):
        """Apply what happened since, up to a revision or except for the last changes."""
        changes = store.changes(self.revision, registry.get("jobs").resources, until=until)
        for change in changes[: len(changes) - all_but]:
            self.consumer.apply(self.state, change)

    def plan(self, *timers, now=None):
        return self.consumer.plan(self.state, [], timers, clock.milliseconds() if now is None else now)

    def commit(self, plan):
        self.consumer.committed(self.state, plan.groups, store.commit(plan.groups))


def made(plan):
    writes = [write for group in plan.groups for write in group.writes]
    return [each.object["metadata"]["name"] for each in writes if isinstance(each, Create) and each.resource == PODS]


@pytest.mark.shows("2.1/older version")
def test_older_spec_in_the_log_is_not_applied_over_a_newer_one_that_was_read(late):
    resize(3)
    resize(1)
    assert made(late.plan(AGAIN)) == []
    late.tell(all_but=1)  # three replicas
    assert made(late.plan()) == []
    late.tell()
    assert made(late.plan()) == []


def test_target_of_a_command_that_was_read_is_not_taken_back_to_an_older_spec(late):
    late.state.entries.clear()
    resize(3)
    resize(1)
    command("SyncJob")
    late.consumer.apply(late.state, store.changes(late.revision, [COMMANDS])[0])
    late.plan()
    assert late.known().job.tasks[0].replicas == 1
    late.revision = store.revision() - 3
    late.tell(all_but=2)
    assert late.known().job.tasks[0].replicas == 1


def test_deletion_of_an_earlier_job_does_not_take_a_newer_one_of_its_name_away(late):
    store.write(Delete(JOBS, "default", "demo"))
    newer = store.write(Create(JOBS, job(replicas=1)))[0]
    late.plan(AGAIN)
    late.tell(all_but=1)
    assert late.known().job.uid == newer.uid


@pytest.mark.shows("3.3/job deleted")
def test_job_or_pod_that_was_found_to_be_gone_does_not_come_back_by_an_older_change(late):
    store.write(Patch(PODS, "default", "demo-main-0", {"metadata": {"labels": {"a": "b"}}}))
    remove("demo-main-0")
    assert made(late.plan(AGAIN)) == ["demo-main-0"]
    late.tell(all_but=1)
    assert late.known().pods == {}
    resize(3)
    store.write(Delete(JOBS, "default", "demo"))
    late.plan(AGAIN)
    late.tell(all_but=1)
    assert late.state.entries == {}
    late.tell()
    assert late.state.entries == {}


def hold_a_name(*owners):
    store.write(Create(PODS, pod("demo-main-1", ownerReferences=[*owners])))


def test_name_that_was_found_to_be_held_is_not_free_by_an_older_change(late):
    resize(2)
    hold_a_name()
    remove("demo-main-1")
    hold_a_name()
    assert made(late.plan(AGAIN)) == []
    late.tell()
    remove("demo-main-1")
    late.revision = late.state.position
    late.tell()
    assert made(late.plan()) == ["demo-main-1"]


def test_pod_that_holds_a_name_is_missed_by_its_own_job_too(late):
    other = store.write(Create(JOBS, job("other", replicas=1)))[0]
    resize(2)
    hold_a_name(owner(other.object))
    late.tell()
    late.plan(AGAIN)
    assert "demo-main-1" in late.known("other").pods
    remove("demo-main-1")
    late.revision = late.state.position
    late.tell()
    assert late.known("other").pods == {}
    assert "demo-main-1" not in late.known().pods


@pytest.mark.parametrize("heir", [False, True], ids=["to nobody", "to another job"])
def test_pod_that_is_given_away_is_missed_by_its_job(late, heir):
    other = store.write(Create(JOBS, job("other", replicas=1)))[0]
    owners = {"ownerReferences": [owner(other.object)] if heir else None}
    store.write(Patch(PODS, "default", "demo-main-0", {"metadata": owners}))
    late.tell()
    known = late.known()
    assert known.pods["demo-main-0"].owner != known.job.uid, "it only holds its name"
    assert KEY in late.state.touched
    assert [*late.known("other").pods] == ["demo-main-0"] * heir


def test_nothing_is_remembered_of_a_read_once_the_log_has_come_as_far(late):
    resize(2)
    late.plan(AGAIN)
    assert late.state.ahead
    late.tell()
    late.plan()
    assert late.state.ahead == {}


def test_job_is_left_alone_until_the_log_shows_what_was_written_for_it(late):
    resize(3)
    late.tell()
    first = late.plan()
    assert made(first) == ["demo-main-1", "demo-main-2"]
    late.commit(first)
    late.state.touched[KEY] = None
    assert late.plan().groups == []
    late.tell()
    assert made(late.plan()) == []
    assert (late.state.sent, len(late.known().pods)) == ({}, 3)


def test_status_that_somebody_else_writes_is_not_taken_for_the_controllers_own(controller):
    controller.submit(job(replicas=1))
    controller.admit()
    wanted = state()
    for text in ("nonsense", wanted["state"]["message"]):
        store.write(Patch(JOBS, "default", "demo", {"status": {"state": {"message": text}, "running": 7}}, "status"))
        controller.settle()
        assert state() == wanted


def test_same_status_written_by_somebody_else_meanwhile_does_not_end_the_wait(late):
    """Not what a status says tells whose it is, but the revision that it got."""
    resize(2)
    late.tell()
    plan = late.plan()
    written = next(w for g in plan.groups for w in g.writes if getattr(w, "subresource", "") == "status")
    before = state()
    foreign = store.write(written)[0]
    store.write(Patch(JOBS, "default", "demo", {"status": {**before, "running": 5}}, "status"))
    late.commit(plan)
    late.tell(until=foreign.revision)
    late.state.touched[KEY] = None
    assert late.plan().groups == []


@pytest.mark.shows("3.6/tried again")
def test_group_that_was_not_written_is_planned_again_only_by_its_timer(late):
    resize(3)
    late.tell()
    store.write(Create(PODS, pod("demo-main-2")))
    late.commit(late.plan())
    late.tell()
    assert late.plan().groups == []
    assert made(late.plan(AGAIN)) == ["demo-main-1"]


def test_job_whose_writes_do_not_come_back_is_read_anew_in_the_end(late, caplog):
    resize(3)
    late.tell()
    now = clock.milliseconds()
    plan = late.plan(now=now)
    never = Stored(JOBS.id, "default", "demo", "", store.revision() + 1000, 0, b"{}")
    late.consumer.committed(late.state, plan.groups, [[never] for _ in plan.groups])
    waiting = late.plan(now=now + 1)
    (timer,) = waiting.timers
    assert (waiting.groups, timer.kind, timer.key, timer.due - now) == ([], LOST, "", 60_000)
    with caplog.at_level(logging.WARNING):
        again = late.plan(timer, now=timer.due)
    assert made(again) == ["demo-main-1", "demo-main-2"]
    assert KEY in caplog.text


@cases("attribute, value", {"no room": ("ROOM", 0), "behind": ("is_behind", True)})
def test_what_failed_and_is_put_off_stays_known_to_fail(late, monkeypatch, attribute, value):
    """Otherwise more of them than one plan has room for are tried again at once, without end."""
    monkeypatch.setattr(late.state if attribute == "is_behind" else job_controller, attribute, value)
    failed = {"error": "no", "tries": 9, "news": True}
    back = [each for each in late.plan(Timer(RETRY, KEY, 0, failed), now=7).timers if each.kind == RETRY]
    assert back == [Timer(RETRY, KEY, 7, {**failed, "news": False})]
