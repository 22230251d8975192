"""What the page of a job says while it waits: why, what helps, its place, who is behind, what was decided."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.access import SYSTEM
from cluster.api import backend
from cluster.models import Cursor
from cluster.remote.backend import Remote
from cluster.runtime import behind
from cluster.store import Create, Delete, Patch, decisions, store
from cluster.writes import Decision
from dashboard.live.topics import TopicRequest
from dashboard.pages import overview
from dashboard.parts import decisions as rows
from jobs.pages import live
from jobs.pages.detail import Detail
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS
from scheduler.decided import Kind
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

AT_LIMIT = "Queue team, which is above its own, is at its limit"
OVERUSED = "resource in cluster is overused: overused cpu"
EMPTY_GANG = "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable"


def why(client, name="wait"):
    return JobPage(client, name).text("job-why")


def say(kind, name, said, **status):
    """Let a controller say something of an object in its status."""
    store.write(Patch(kind, "default", name, {"status": {**status, **said}}, "status"), now=clock.milliseconds())


def unschedulable(reason, message):
    return {"conditions": [{"type": "Unschedulable", "status": "True", "reason": reason, "message": message}]}


def group_of(job):
    return next(each.name for each in store.find(POD_GROUPS) if each.name.startswith(f"{job}-"))


def read_by(consumer, position=None):
    position = store.revision() if position is None else position
    Cursor.objects.update_or_create(name=f"{consumer}/0", defaults={"position": position})


@pytest.fixture
def waiting(alice):
    world.make("wait", "Pending")
    message = f"{AT_LIMIT}: … 2/2 tasks in gang unschedulable: pod group is not ready"
    say(POD_GROUPS, group_of("wait"), unschedulable("ParentQueueLimit", message))
    read_by("jobs")
    read_by("scheduler")


def test_a_waiting_job_says_what_helps(client, waiting):
    shown = why(client)
    assert AT_LIMIT in shown
    assert "What helps: Wait for jobs of the queues below it, or have that capability raised. ParentQueueLimit" in shown
    assert "behind" not in shown


@cases("consumer, named", {
    "jobs": ("jobs", "The job controller is behind."), "scheduler": ("scheduler", "The scheduler is behind."),
})  # fmt: skip
def test_a_controller_that_has_not_read_the_newest_change_is_named(client, waiting, monkeypatch, consumer, named):
    read_by(consumer, 0)
    late = Detail.of(SYSTEM, "default", "wait").waiting.unread.since + behind.LATE_MS
    for now, is_named, again in ((late - 1, False, late), (late, True, late + 5000)):
        monkeypatch.setattr(clock, "milliseconds", lambda now=now: now)
        assert (named in why(client)) == is_named
        assert Detail.of(SYSTEM, "default", "wait").waiting.again == again


def test_a_job_that_runs_says_why_some_of_its_pods_wait(client, alice):
    pods = [{"task": "worker", "index": index, "phase": "Pending"} for index in (1, 2)]
    running = {"task": "worker", "index": 0, "scheduled": 1, "started": 1}
    world.make("runs", "Running", tasks=(("worker", 3),), minimum=1, pods=[running, *pods])
    told = {"type": "PodScheduled", "status": "False", "message": "1 of 3 pods have a node; each of the others"}
    for number in (1, 2):
        say(PODS, f"runs-worker-{number}", {"conditions": [told]})
    assert "2 pods wait. 1 of 3 pods have a node; each of the others" in why(client, "runs")


@cases("phase, reason, message, helps", {
    "tasks wait for others": ("Running", "WaitingForTasks", "Task b waits for a.",
        "Nothing, while those others get on"),
    "and not what the scheduler counts": ("Pending", "TaskDeadlock", "This can never start: b waits for a.",
        "Set minAvailable"),
})  # fmt: skip
def test_a_job_says_which_tasks_wait_for_each_other(client, waiting, phase, reason, message, helps):
    say(JOBS, "wait", {"state": {"phase": phase, "reason": reason, "message": message}})
    shown = why(client)
    assert message in shown
    assert helps in shown
    assert "Place in queue" not in shown


def test_a_waiting_job_says_its_place_and_who_is_before_it(client, alice):
    for number, namespace in enumerate(("default", "other", "default", "default")):
        world.make(f"job-{number}", "Pending", namespace=namespace, now=world.START + number * 60_000)
    assert "Place in queue default: 4 of 4, after 1 other and job-0, job-2." in why(client, "job-3")
    assert "Place in queue default: 1 of 4." in why(client, "job-0")
    say(POD_GROUPS, group_of("job-0"), {"phase": "Running"})
    assert "Place in queue default: 3 of 3, after 1 other and job-2." in why(client, "job-3")
    assert "2 of 3; 1 before it belongs to namespaces that you may not see." in why(client, "job-2")


@pytest.mark.parametrize("reason", sorted(overview.HOPELESS))
def test_a_job_that_cannot_start_is_told_no_place(client, waiting, reason):
    say(POD_GROUPS, group_of("wait"), unschedulable(reason, "This can never start."), phase="Inqueue")
    shown = why(client)
    assert "This can never start." in shown
    assert "Place in queue" not in shown


def test_image_that_cannot_be_had_is_told_with_what_the_registry_said_and_what_helps(client, alice):
    world.make("wait", "Running", pods=[{"task": "worker", "index": each} for each in (0, 1)], counts={"pending": 2})
    said = 'ErrImagePull: failed to pull image "r.example.org/a:1": reading manifest 1: manifest unknown'
    waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "r.example.org/a:1": {said}'}
    for number in (0, 1):
        status = {"name": "main", "image": "r.example.org/a:1", "state": {"waiting": waiting}}
        say(PODS, f"wait-worker-{number}", {"containerStatuses": [status]}, phase="Pending")
    cannot = "2 pods wait for the image r.example.org/a:1, which cannot be had: reading manifest 1: manifest unknown."
    assert cannot in why(client)
    assert "What helps: The registry has no such image: check its name and tag." in why(client)


@pytest.fixture
def beside_volcano(alice, monkeypatch):
    """Nothing but the events of Volcano's scheduler says why a job waits."""
    monkeypatch.setattr(backend, "runs", Remote().runs)


def tell(message, at, reason="Unschedulable"):
    """Tell something about the pod group of the job `wait`."""
    (group,) = store.find(POD_GROUPS)
    event = {
        "metadata": {"name": f"{group.name}.{at}", "namespace": group.namespace},
        "involvedObject": {"kind": "PodGroup", "name": group.name, "namespace": group.namespace, "uid": group.uid},
        "reason": reason,
        "type": "Warning" if message == EMPTY_GANG else "Normal",
        "message": message,
        "lastTimestamp": f"2026-11-23T12:00:{at:02}Z",
    }
    store.write(Create(EVENTS, event), now=world.START)


@cases("known, told, said", {
    "and that there is no pod": ({}, [OVERUSED, EMPTY_GANG], OVERUSED),
    "the newest": ({}, [OVERUSED, "queue resource quota insufficient"], "queue resource quota insufficient"),
    "only that there is no pod": ({}, [EMPTY_GANG], ""),
    "nothing": ({}, [], ""),
    "the group's own word goes first": ({"why": "Needs 4 CPU; 2 are free."}, [OVERUSED], "Needs 4 CPU; 2 are free."),
    "the job's own word goes first": ({"message": "The queue is closed."}, [OVERUSED], "The queue is closed."),
})  # fmt: skip
def test_newest_event_about_the_group_says_why_the_job_waits(client, beside_volcano, known, told, said):
    world.make("wait", "Pending", **known)
    tell("pod group is ready", 9, reason="Scheduled")
    for at, message in enumerate(told):
        tell(message, at)
    shown = why(client)
    assert said in shown
    assert bool(shown) == bool(said)
    assert (OVERUSED in shown) == (said == OVERUSED)


def test_events_of_the_group_bring_the_head_of_the_page_up_to_date(beside_volcano):
    world.make("wait", "Pending")
    (group,) = store.find(POD_GROUPS)
    parts = live.job_head(TopicRequest(SYSTEM, {"namespace": "default", "name": "wait"}))
    assert group.uid in {watch.owner for watch in parts.watches if watch.resource == EVENTS.id}


T = world.START


def decided(job, at, kind, reason, message, **more):
    name = f"{job.name}-{job.uid}"
    decisions.put([Decision(T + at, kind, reason, job.namespace, name, "default", 2, message, **more)])


@pytest.fixture
def job(alice):
    made = world.make("train", "Running")
    decided(made, 0, "refuse", "QueueLimit", "Queue default is at its limit.")
    decided(made, 1000, "bind", "MinimumFits", "2 pods got nodes.", nodes=[("n1", 2), ("n2", 1)])
    return made


def shown(client, query=""):
    return [words(row) for row in JobPage(client, "train", f"?tab=decisions{query}").tree.findall(".//tbody/tr")]


def test_every_kind_has_a_word():
    assert set(rows.WORDS) == set(Kind)


def test_decisions_stand_newest_first_with_reason_and_nodes_and_stay_when_the_job_is_gone(client, job):
    other = world.make("train", "Running", namespace="other")
    decided(other, 5, "bind", "MinimumFits", "of another namespace")
    newest, oldest = shown(client)
    assert "Bound 2 MinimumFits 2 pods got nodes. n1 ×2, n2" in newest
    assert "Waits 2 QueueLimit Queue default is at its limit. –" in oldest
    store.write(Delete(JOBS, "default", "train"), now=T + 5000)
    assert len(shown(client)) == 2
    world.make("train", "Pending")
    assert (len(shown(client)), len(shown(client, f"&of={job.uid}"))) == (0, 2)


def test_where_another_scheduler_works_there_is_no_such_tab(client, job, monkeypatch):
    assert "tab=decisions" in JobPage(client, "train").html
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert "tab=decisions" not in JobPage(client, "train").html
