"""Consumers read every change once, whoever fails when; which of them run; an outage is told twice; what is refused comes back."""

import asyncio
import json
import logging
from itertools import pairwise

import pytest
import redis
from celery.beat import ScheduleEntry
from django.db import InterfaceError, OperationalError, connection, transaction

from cluster import clock, tasks
from cluster.consumers import consumer
from cluster.consumers.backlog import Backlog
from cluster.consumers.consumer import Consumer, Plan, Runner
from cluster.models import Cursor
from cluster.runtime import nudge, registry, retries
from cluster.runtime.nudge import Announcer
from cluster.runtime.outage import Outage
from cluster.runtime.registry import Registration
from cluster.runtime.retries import REPORTED_AFTER, RETRY, Retries
from cluster.store import Create, Delete, Group, Patch, store
from cluster.writes import Timer
from kube.errors import AlreadyExists, Conflict, Forbidden
from kube.resources import CONFIGMAPS, JOBS, PODS
from proof.harness.services import redis_server
from proof.harness.waiting import HANG_S
from tests.builders import config_map, job, pod
from tests.tables import cases
from volcano_ui import celery_app
from volcano_ui.beat import Clock
from volcano_ui.celery import Messages, app

pytestmark = pytest.mark.django_db
HOUR_MS = 3_600_000


class Copier(Consumer[dict]):
    name = "copier"
    crash_after = 10**6  # plans
    conflict = False

    def __init__(self):
        self.loads = 0
        self.received = []
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
        self.received += [(c.verb, c.name) for c in changes]
        self.phases += [(phase(c.previous), phase(c.body)) for c in changes]
        self.timers += timers
        missing = sorted(set(state) - set(copies()))
        more = [Delete(PODS, "default", "never")] if self.conflict else []
        return Plan([Group([Create(CONFIGMAPS, config_map(name)), *more], key=name) for name in missing])


def phase(body):
    return None if body is None else json.loads(body).get("status", {}).get("phase", "")


def running(state=None, holder="the same", **options):
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
    assert runner.consumer.received == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [after for _, after in runner.consumer.phases] == ["", "Running", "Failed", "Failed"]
    assert runner.consumer.loads == 1
    generation = runner.generation
    store.write(Create(CONFIGMAPS, config_map("x")))
    drain(runner)
    assert runner.generation == generation
    assert len(runner.consumer.received) == 4


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
    assert next_one.consumer.received == [("ADDED", "a")]
    assert copies() == ["a"]


def test_first_run_looks_at_what_is_there_and_only_one_of_two_processes_handles_a_change(runner):
    add("a")
    drain(runner)
    other = running()
    drain(other)
    assert (copies(), other.consumer.received) == (["a"], [])
    add("b")
    drain(runner, other)
    assert runner.consumer.received[1:] + other.consumer.received == [("ADDED", "b")]
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
            self.received += unmarked
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
    assert sorted(runner.consumer.received) == names


@pytest.mark.parametrize(("hears", "replaced"), [("state", []), ("changes", [None, None]), ("edges", [None, ""])])
def test_who_asks_for_less_is_told_less_after_a_load(hears, replaced):
    drain(running(hears=hears))
    add("a")
    become("Running")
    runner, head = running(hears=hears), store.revision()
    drain(runner)
    assert [before for before, _ in runner.consumer.phases] == replaced
    assert runner._read_cursor().position == head


# Which run, and on which queues.

VOLCANO = ("jobs", "queues", "scheduler")


@pytest.fixture
def elsewhere(monkeypatch):
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


@pytest.fixture
def told(caplog):
    def read():
        lines = [record.getMessage() for record in caplog.records]
        return [line for line in lines if " is put off: " in line or " goes on after " in line]

    return read


def test_only_the_first_failure_and_the_first_success_are_told(told):
    outage = Outage("the work", logging.getLogger("test"))
    outage.over()
    for reason in ("gone\n\tIs it running?", "still gone"):
        outage.lasts(OperationalError(reason))
    outage.over()
    outage.over()
    first, last = told()
    assert (first, last[:25]) == ("the work is put off: gone", "the work goes on after 0.")
    outage.lasts(InterfaceError())
    assert told()[2:] == ["the work is put off: InterfaceError"]


def test_ticks_without_a_database_are_told_of_once(told, caplog, monkeypatch):
    monkeypatch.setattr(tasks, "_outages", {})
    with monkeypatch.context() as outage:
        outage.setattr(store, "revision", _away)
        for _ in range(3):
            tasks.tick("controllers")
    monkeypatch.setattr(tasks.registry, "every", list)
    for _ in range(3):
        tasks.tick("controllers")
    first, last = told()
    assert first == "the tick is put off: the server is gone"
    assert last.startswith("the tick goes on")
    assert not any(record.exc_info for record in caplog.records)


def _away(*_, **__):
    raise OperationalError("the server is gone")


@pytest.fixture
def redis_away(settings, tmp_path, monkeypatch):
    """As in a process that has not met an outage; in this one tests may have written without a Redis."""
    monkeypatch.setattr(nudge, "outage", Outage("news of commits through Redis", nudge.log))
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    nudge.client.cache_clear()
    yield
    nudge.client.cache_clear()


def test_one_redis_outage_is_told_of_once_by_who_announces_and_hears(redis_away, settings, told):
    for revision in (1, 2):
        nudge.send(frozenset(), revision)
        asyncio.run(nudge.listen(lambda _: None))
    assert [line.partition(":")[0].endswith("is put off") for line in told()] == [True]
    with redis_server() as url:
        settings.REDIS_URL = url
        nudge.client.cache_clear()
        for revision in (3, 4):
            nudge.send(frozenset(), revision)
    assert len(told()) == 2
    assert "goes on after" in told()[1]


def test_beat_tells_once_that_redis_is_away(tmp_path, told, caplog):
    broker = celery_app.conf.broker_url
    entry = ScheduleEntry("tick", "cluster.tasks.tick", schedule=1.0, app=celery_app)
    caplog.set_level(logging.WARNING, "amqp")
    try:
        celery_app.conf.broker_url = f"redis+socket://{tmp_path}/none.sock"
        clock = Clock(celery_app, lazy=True, schedule_filename=str(tmp_path / "schedule"))
        for _ in range(3):
            clock.apply_entry(entry, clock.producer)
    finally:
        celery_app.conf.broker_url = broker
    (line,) = told()
    assert line.startswith("waking the workers is put off: Couldn't apply scheduled task tick")


def test_a_nudge_from_a_thread_is_of_the_newest_revision(settings, redis_url):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    with redis.Redis.from_url(redis_url) as listener:
        channel = listener.pubsub(ignore_subscribe_messages=True)
        channel.subscribe(nudge.channel())
        channel.get_message(timeout=HANG_S)  # that the subscription holds
        announcer = Announcer()
        for revision in range(1, 51):
            announcer.note(frozenset({"nobody.reads.this"}), revision)
        revisions = []
        while not revisions or revisions[-1] < 50:
            message = channel.get_message(timeout=HANG_S)
            assert message is not None, f"heard only {revisions}"
            revisions.append(int(message["data"]))
        assert revisions == sorted(revisions)
        assert len(revisions) < 50
    nudge.client().close()
    nudge.client.cache_clear()


def test_asking_for_a_run_while_redis_is_away_raises_nothing():
    """A tick will find the work: whoever asks has committed already."""

    class Away:
        def queue(self, registration, shard, delay_s):
            raise ConnectionRefusedError

    before = nudge.use(Away())
    try:
        nudge.wake(registry.get("jobs"), 0)
    finally:
        nudge.use(before)


JOB = job("j", namespace="d", uid="u")
GROUP, KEYS = Group([], "d/j"), {"jobs": "d/j"}


def timer(tries=9, kind=RETRY, key="d/j", *, is_new=True):
    return Timer(kind, key, 0, {"error": "pods is forbidden: not here", "tries": tries, "news": is_new})


def retries_of_jobs():
    """What a new process knows."""
    return Retries("jobs", "jobs/0", "default")


def event_objects(*timers):
    return [group.writes[0].object for group in retries.event_groups(timers, {"d/j": JOB}.get, 1000, "c")]


def test_refusal_that_lasts_is_told_with_the_servers_words():
    (event,) = event_objects(timer())
    assert event["message"] == "Tried 9 times: pods is forbidden: not here"
    assert (event["type"], event["involvedObject"]["uid"]) == ("Warning", "u")
    assert event_objects(timer(is_new=False), timer(kind="other"), timer(key="d/gone"), Timer(RETRY, "d/j", 0)) == []


@cases("times, reported_at", {
    "quickly": ([0] * 20, [8, 16]),
    "slowly": ([0, 2000, 4000, 5000, 6000, 7000], [3, 4]),
    "a minute later": ([0, 60_000], [2]),
    "once": ([0], []),
})  # fmt: skip
def test_what_lasts_some_seconds_is_told_and_again_at_twice_as_many_tries(times, reported_at):
    counter = retries_of_jobs()
    found = [counter.timers([GROUP], [Forbidden("no")], at)[0].payload for at in times]
    assert [each["tries"] for each in found if each["news"]] == reported_at


def test_group_that_fails_comes_back_later_and_later_until_it_is_written():
    tries = retries_of_jobs()
    found = [tries.timers([GROUP], [Conflict("late")], 0)[0] for _ in range(14)]
    assert [each.due for each in found[:4]] == [0, 50, 100, 200]
    assert found[-1].due == retries.RETRY_MAX_MS
    assert found[3].payload == {"error": "late", "tries": 4, "news": False}
    assert tries.timers([GROUP], [[]], 0) == []
    assert tries.timers([GROUP], [Forbidden("no")], 0)[0].payload["tries"] == 1
    assert tries.timers([Group([])], [Conflict("late")], 0) == [], "a group without a key does not come back"


def refused(times, counter=None, start=0):
    """Have a group fail so often, a millisecond between; return who counts."""
    counter = counter or retries_of_jobs()
    for number in range(times):
        counter.timers([GROUP], [Forbidden(f"not here, {number}")], start + number)
    return counter


def test_refusal_that_lasts_stands_until_the_group_is_written_and_the_next_process_counts_on():
    counter = refused(REPORTED_AFTER - 1)
    assert retries.current_refusals(KEYS) == [], "what only met another change is over by then"
    refused(2, counter, start=50_000)
    (found,) = retries.current_refusals({**KEYS, "scheduler": "d/j"})
    assert (found.since, found.tries, found.error) == (0, REPORTED_AFTER + 1, "not here, 1")
    assert found.due > 51_000
    refused(1, start=59_000)
    assert retries.current_refusals(KEYS)[0].tries == REPORTED_AFTER + 2
    counter = retries_of_jobs()
    counter.timers([GROUP], [[]], 60_000)
    assert retries.current_refusals(KEYS) == []


@cases("planned, wanted, is_over", {
    "nothing is owed now": ([], [], True),
    "planned again": ([GROUP], [], False),
    "wanted back": ([], [Timer(RETRY, "d/j", 0)], False),
    "wanted for something else": ([], [Timer("other", "d/j", 0)], True),
})  # fmt: skip
def test_refusal_is_over_when_what_came_back_is_not_planned_again(planned, wanted, is_over):
    refused(REPORTED_AFTER).outlived([timer(REPORTED_AFTER)], planned, wanted)
    assert (retries.current_refusals(KEYS) == []) is is_over


def test_refusal_stands_when_the_transaction_that_ended_it_is_lost():
    counter = refused(REPORTED_AFTER)
    with transaction.atomic():
        counter.timers([GROUP], [[]], 60_000)
        transaction.set_rollback(True)
    counter.forget_memory()
    counter.timers([GROUP], [[]], 61_000)
    assert retries.current_refusals(KEYS) == []


def test_refusals_are_found_by_key_and_by_namespace():
    refused(REPORTED_AFTER)
    for key, found in (("d/j", ["d/j"]), ("d/*", ["d/j"]), ("dd/*", []), ("d/jj", [])):
        assert [each.key for each in retries.current_refusals({"jobs": key})] == found
        assert retries.current_refusals({"queues": key}) == []
