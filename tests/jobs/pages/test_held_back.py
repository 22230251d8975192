"""Jobs of which nothing but a scheduler's events says why they wait, as beside Volcano."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.store import Create, store
from dashboard.live.topics import TopicRequest
from jobs.pages import live
from kube.resources import EVENTS, POD_GROUPS
from tests.jobs.pages import world
from tests.tables import cases

T = world.START
OVERUSED = "resource in cluster is overused: overused cpu"
EMPTY_GANG = "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable"


@pytest.fixture(autouse=True)
def _beside_volcano(monkeypatch):
    monkeypatch.setattr(backend, "runs", Remote().runs)


def tell(name, message, at, reason="Unschedulable"):
    """Tell something about the pod group of the job `wait`."""
    (group,) = store.find(POD_GROUPS)
    event = {
        "metadata": {"name": f"{group.name}.{name}", "namespace": group.namespace},
        "involvedObject": {"kind": "PodGroup", "name": group.name, "namespace": group.namespace, "uid": group.uid},
        "reason": reason,
        "type": "Warning" if message == EMPTY_GANG else "Normal",
        "message": message,
        "lastTimestamp": f"2026-11-23T12:00:{at:02}Z",
    }
    store.write(Create(EVENTS, event), now=T)


def why(client, parse):
    return world.words(client.get("/jobs/default/wait/"), parse, "job-why")


@cases("told, said", {
    "and that there is no pod": ([OVERUSED, EMPTY_GANG], OVERUSED),
    "the newest": ([OVERUSED, "queue resource quota insufficient"], "queue resource quota insufficient"),
    "only that there is no pod": ([EMPTY_GANG], ""),
    "nothing": ([], ""),
})  # fmt: skip
def test_newest_event_about_the_group_says_why_the_job_waits(client, alice, parse, told, said):
    world.make("wait", "Pending")
    for at, message in enumerate(told):
        tell(str(at), message, at)
    shown = why(client, parse)
    assert said in shown
    assert bool(shown) == bool(said)


def test_other_events_about_the_group_say_nothing_of_waiting(client, alice, parse):
    world.make("wait", "Pending")
    tell("0", "pod group is ready", 0, reason="Scheduled")
    assert why(client, parse) == ""


@pytest.mark.parametrize(
    "known", [{"why": "Needs 4 CPU; 2 are free."}, {"message": "The queue is closed."}], ids=["group", "job"]
)
def test_what_controllers_wrote_goes_before_events(client, alice, parse, known):
    world.make("wait", "Pending", **known)
    tell("0", OVERUSED, 0)
    (said,) = known.values()
    assert said in why(client, parse)
    assert OVERUSED not in why(client, parse)


def test_news_of_the_group_bring_the_head_of_the_page_up_to_date(alice):
    world.make("wait", "Pending")
    (group,) = store.find(POD_GROUPS)
    parts = live.job_head(TopicRequest(access.SYSTEM, {"namespace": "default", "name": "wait"}))
    assert group.uid in {watch.owner for watch in parts.watches if watch.resource == EVENTS.id}
