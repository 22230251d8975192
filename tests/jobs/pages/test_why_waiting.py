"""What the page of a job says while it waits: the reason with what helps, and that a controller is behind."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.access import SYSTEM
from cluster.models import Cursor
from cluster.runtime import behind
from cluster.store import Patch, store
from dashboard.pages import overview
from jobs.pages.detail import Detail
from kube.meta import now_text
from kube.resources import JOBS, POD_GROUPS, PODS
from tests.jobs.pages import world
from tests.tables import cases

CONDITION = {
    "type": "Unschedulable",
    "status": "True",
    "reason": "ParentQueueLimit",
    "message": "Queue team, which is above its own, is at its limit: … 2/2 tasks in gang unschedulable: pod group is not ready",
    "lastTransitionTime": "2026-05-28T20:26:41Z",
}


def why(client, parse, name="wait"):
    return world.words(client.get(f"/jobs/default/{name}/"), parse, "job-why")


def read_by(consumer, position=None):
    Cursor.objects.update_or_create(
        name=f"{consumer}/0", defaults={"position": store.revision() if position is None else position}
    )


@pytest.fixture
def waiting(alice):
    world.make("wait", "Pending")
    (group,) = store.find(POD_GROUPS)
    store.write(
        Patch(POD_GROUPS, group.namespace, group.name, {"status": {"conditions": [CONDITION]}}, "status"),
        now=clock.milliseconds(),
    )
    read_by("jobs")
    read_by("scheduler")


def test_a_waiting_job_says_what_helps(client, waiting, parse):
    shown = why(client, parse)
    assert "Queue team, which is above its own, is at its limit" in shown
    assert "What helps: Wait for jobs of the queues below it, or have that capability raised. ParentQueueLimit" in shown
    assert "behind" not in shown


@cases("consumer, named", {
    "jobs": ("jobs", "The job controller is behind."),
    "scheduler": ("scheduler", "The scheduler is behind."),
})  # fmt: skip
def test_a_controller_that_has_not_read_the_newest_change_is_named(
    client, waiting, parse, monkeypatch, consumer, named
):
    read_by(consumer, 0)
    found = Detail.of(SYSTEM, "default", "wait").waiting
    late = found.unread.since + behind.LATE_MS
    monkeypatch.setattr(clock, "milliseconds", lambda: late - 1)
    assert named not in why(client, parse)
    assert Detail.of(SYSTEM, "default", "wait").waiting.again == late
    monkeypatch.setattr(clock, "milliseconds", lambda: late)
    assert named in why(client, parse)
    assert Detail.of(SYSTEM, "default", "wait").waiting.again == late + 5000


def test_a_job_that_runs_says_why_some_of_its_pods_wait(client, alice, parse):
    pods = [{"task": "worker", "index": index, "phase": "Pending"} for index in (1, 2)]
    running = {"task": "worker", "index": 0, "scheduled": 1, "started": 1}
    world.make("runs", "Running", tasks=(("worker", 3),), minimum=1, pods=[running, *pods])
    told = {"type": "PodScheduled", "status": "False", "message": "1 of 3 pods have a node; each of the others"}
    change = {"status": {"conditions": [told]}}
    store.write(*(Patch(PODS, "default", f"runs-worker-{n}", change, "status") for n in (1, 2)))
    assert "2 pods wait. 1 of 3 pods have a node; each of the others" in why(client, parse, "runs")


def test_a_job_that_runs_says_that_tasks_wait_for_others(client, alice, parse):
    world.make("runs", "Running")
    state = {
        "phase": "Running",
        "reason": "WaitingForTasks",
        "message": "Task b waits for a.",
        "lastTransitionTime": now_text(1),
    }
    store.write(Patch(JOBS, "default", "runs", {"status": {"state": state}}, "status"))
    shown = why(client, parse, "runs")
    assert "Task b waits for a." in shown
    assert "Nothing, while those others get on" in shown


def test_a_job_whose_tasks_wait_for_each_other_says_so_and_not_what_the_scheduler_counts(client, waiting, parse):
    state = {"phase": "Pending", "reason": "TaskDeadlock", "message": "This can never start: b waits for a."}
    store.write(Patch(JOBS, "default", "wait", {"status": {"state": state}}, "status"))
    shown = why(client, parse)
    assert "This can never start: b waits for a." in shown
    assert "Set minAvailable" in shown
    assert "Place in queue" not in shown


def test_a_waiting_job_says_its_place_and_who_is_before_it(client, alice, parse):
    for number, namespace in enumerate(("default", "other", "default", "default")):
        world.make(f"job-{number}", "Pending", namespace=namespace, now=world.START + number * 60_000)
    assert "Place in queue default: 4 of 4, after 1 other and job-0, job-2." in why(client, parse, "job-3")
    assert "Place in queue default: 1 of 4." in why(client, parse, "job-0")
    store.write(Patch(POD_GROUPS, "default", group_of("job-0"), {"status": {"phase": "Running"}}, "status"))
    assert "Place in queue default: 3 of 3, after 1 other and job-2." in why(client, parse, "job-3")
    assert "2 of 3; 1 before it belongs to namespaces that you may not see." in why(client, parse, "job-2")


@pytest.mark.parametrize("reason", sorted(overview.HOPELESS))
def test_a_job_that_cannot_start_is_told_no_place(client, waiting, parse, reason):
    told = {"type": "Unschedulable", "status": "True", "reason": reason, "message": "This can never start."}
    patch = {"status": {"phase": "Inqueue", "conditions": [told]}}
    store.write(Patch(POD_GROUPS, "default", group_of("wait"), patch, "status"))
    shown = why(client, parse)
    assert "This can never start." in shown
    assert "Place in queue" not in shown


def group_of(job):
    return next(each.name for each in store.find(POD_GROUPS) if each.name.startswith(f"{job}-"))


def test_image_that_cannot_be_had_is_told_with_what_the_registry_said_and_what_helps(client, alice, parse):
    world.make("wait", "Running", pods=[{"task": "worker", "index": each} for each in (0, 1)], counts={"pending": 2})
    said = 'ErrImagePull: failed to pull image "r.example.org/a:1": reading manifest 1: manifest unknown'
    waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "r.example.org/a:1": {said}'}
    found = sorted(store.find(PODS), key=lambda each: each.name)[:2]
    for pod in found:
        status = {"name": "main", "image": "r.example.org/a:1", "state": {"waiting": waiting}}
        patch = {"status": {"phase": "Pending", "containerStatuses": [status]}}
        store.write(Patch(PODS, pod.namespace, pod.name, patch, "status"), now=clock.milliseconds())
    shown = why(client, parse)
    assert (
        "2 pods wait for the image r.example.org/a:1, which cannot be had: reading manifest 1: manifest unknown."
        in shown
    )
    assert "What helps: The registry has no such image: check its name and tag." in shown
