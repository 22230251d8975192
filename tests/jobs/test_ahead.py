"""What the controller read beside the log, and what it wrote itself, against what the log tells later."""

import logging

import pytest

from cluster import clock
from cluster.consumers.consumer import RETRY
from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, Stored, store
from cluster.writes import Timer
from jobs.consumers import job_controller
from jobs.consumers.job_controller import LOST, JobConsumer
from kube.resources import COMMANDS, JOBS, PODS
from tests.builders import owner, pod
from tests.jobs.control import command, job, remove, resize, state
from tests.jobs.story import Script
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
KEY = "default/demo"
AGAIN = Timer(RETRY, KEY, 0)


@pytest.fixture
def late(controller):
    """A controller whose state is behind the store: what happens now is told later, by `hear`."""
    controller.start(replicas=1)
    with store.reading() as revision:
        loaded = JobConsumer().load(0, revision)
    loaded.touched.clear()
    return Late(loaded, revision)


class Late(Script):
    consumer = JobConsumer()

    def __init__(self, loaded, revision):
        self.state, self.since, self.planned = loaded, revision, None

    def seen(self):
        groups = self.planned.groups if self.planned else ()
        writes = [write for group in groups for write in group.writes]
        pods = [each.object for each in writes if isinstance(each, Create) and each.resource == PODS]
        entry = self.state.entries.get(KEY)
        current = store.find(JOBS, name="demo")
        return {
            "made": " ".join(each["metadata"]["name"].removeprefix("demo-") for each in pods),
            "plans": str(len(groups)),
            "pods": " ".join(name.removeprefix("demo-") for name in sorted(entry.observed.pods)) if entry else "",
            "others": " ".join(self.observed("other").pods) if "default/other" in self.state.entries else "",
            "job": ""
            if not entry
            else "current"
            if entry.observed.job.uid in {each.uid for each in current}
            else "old",
            "replicas": str(entry.observed.job.tasks[0].replicas) if entry else "",
            "remembers": "more" if self.state.ahead or self.state.sent else "nothing",
        }

    def observed(self, name="demo"):
        return self.state.entries[f"default/{name}"].observed

    def plan(self, *timers, now=None):
        now = clock.milliseconds() if now is None else now
        self.planned = self.consumer.plan(self.state, [], timers, now)
        return self.planned

    def commit(self, plan=None):
        plan = plan or self.planned
        self.consumer.committed(self.state, plan.groups, store.commit(plan.groups))

    def retry(self):
        """Plan with the timer of what failed, which has all be read again."""
        self.plan(AGAIN)

    def touch(self):
        self.state.touched[KEY] = None

    def hear(self, but=0, until=None):
        """Apply what happened since, except for the last changes, or up to a revision."""
        changes = store.changes(self.since, registry.get("jobs").resources, until=until)
        for change in changes[: len(changes) - int(but)]:
            self.consumer.apply(self.state, change)

    def on(self):
        """Apply what happened since the state's own position."""
        self.since = self.state.position
        self.hear()

    # ---- what happens

    def scale(self, replicas):
        resize(int(replicas))

    def label(self, name):
        store.write(Patch(PODS, "default", f"demo-{name}", {"metadata": {"labels": {"a": "b"}}}))

    def evict(self, name):
        remove(f"demo-{name}")

    def gone(self):
        store.write(Delete(JOBS, "default", "demo"))

    def anew(self):
        self.gone()
        store.write(Create(JOBS, job(replicas=1)))

    def other(self):
        store.write(Create(JOBS, job("other", replicas=1)))

    def hold(self, name, whose=""):
        owners = [owner(store.get(JOBS, "default", whose).object)] if whose else []
        store.write(Create(PODS, pod(f"demo-{name}", ownerReferences=owners)))

    def give(self, name, whose=""):
        owners = [owner(store.get(JOBS, "default", whose).object)] if whose else None
        store.write(Patch(PODS, "default", f"demo-{name}", {"metadata": {"ownerReferences": owners}}))


@cases("story", {
    "an older spec in the log is not applied over a newer one that was read | 2.1/older version": """
        scale 3, scale 1, retry → made
        hear 1, plan → made; replicas 1
        hear, plan → made""",
    "the deletion of an earlier job does not take a newer one of its name away": "anew, retry, hear 1 → job current",
    "a pod that was found to be gone does not come back by an older change | 3.3/job deleted": """
        label main-0, evict main-0, retry → made main-0
        hear 1 → pods""",
    "nor does a job | 3.3/job deleted": """
        scale 3, gone, retry, hear 1 → job
        hear → job""",
    "a name that was found to be held is not free by an older change": """
        scale 2, hold main-1, evict main-1, hold main-1, retry → made
        hear, evict main-1, on, plan → made main-1""",
    "a pod that holds a name is missed by its own job too": """
        other, scale 2, hold main-1 other, hear, retry → others demo-main-1
        evict main-1, on → others; pods main-0""",
    "nothing is remembered of a read once the log has come as far": """
        scale 2, retry → remembers more
        hear, plan → remembers nothing""",
    "a job is left alone until the log shows what was written for it": """
        scale 3, hear, plan → made main-1 main-2
        commit, touch, plan → plans 0
        hear, plan → made; pods main-0 main-1 main-2; remembers nothing""",
    "a group that was not written is planned again only by its timer | 3.6/tried again": """
        scale 3, hear, hold main-2, plan, commit, hear, plan → plans 0
        retry → made main-1""",
})  # fmt: skip
def test_story(late, story):
    late.goes(story)


def test_target_of_a_command_that_was_read_is_not_taken_back_to_an_older_spec(late):
    late.state.entries.clear()
    resize(3)
    resize(1)
    command("SyncJob")
    late.consumer.apply(late.state, store.changes(late.since, [COMMANDS])[0])
    late.plan()
    assert late.observed().job.tasks[0].replicas == 1
    late.since = store.revision() - 3
    late.hear(2)
    assert late.observed().job.tasks[0].replicas == 1


@pytest.mark.parametrize("heir", ["", "other"], ids=["to nobody", "to another job"])
def test_pod_that_is_given_away_is_missed_by_its_job(late, heir):
    late.goes(f"other, give main-0 {heir}, hear")
    observed = late.observed()
    assert observed.pods["demo-main-0"].owner != observed.job.uid, "it only holds its name"
    assert KEY in late.state.touched
    assert [*late.observed("other").pods] == ["demo-main-0"] * bool(heir)


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
    late.goes("scale 2, hear")
    plan = late.plan()
    written = next(w for g in plan.groups for w in g.writes if getattr(w, "subresource", "") == "status")
    before = state()
    foreign = store.write(written)[0]
    store.write(Patch(JOBS, "default", "demo", {"status": {**before, "running": 5}}, "status"))
    late.commit(plan)
    late.hear(until=foreign.revision)
    late.touch()
    assert late.plan().groups == []


def test_job_whose_writes_do_not_come_back_is_read_anew_in_the_end(late, caplog):
    late.goes("scale 3, hear")
    now = clock.milliseconds()
    plan = late.plan(now=now)
    never = Stored(JOBS.id, "default", "demo", "", store.revision() + 1000, 0, b"{}")
    late.consumer.committed(late.state, plan.groups, [[never] for _ in plan.groups])
    waiting = late.plan(now=now + 1)
    (timer,) = waiting.timers
    assert (waiting.groups, timer.kind, timer.key, timer.due - now) == ([], LOST, "", 60_000)
    with caplog.at_level(logging.WARNING):
        late.plan(timer, now=timer.due)
    assert late.seen()["made"] == "main-1 main-2"
    assert KEY in caplog.text


@cases("attribute, value", {"no room": ("ROOM", 0), "behind": ("is_behind", True)})
def test_what_failed_and_is_put_off_stays_known_to_fail(late, monkeypatch, attribute, value):
    """Otherwise more of them than one plan has room for are tried again at once, without end."""
    monkeypatch.setattr(late.state if attribute == "is_behind" else job_controller, attribute, value)
    failed = {"error": "no", "tries": 9, "news": True}
    back = [each for each in late.plan(Timer(RETRY, KEY, 0, failed), now=7).timers if each.kind == RETRY]
    assert back == [Timer(RETRY, KEY, 7, {**failed, "news": False})]
