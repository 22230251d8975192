"""The topics of the job pages: what a socket is sent equals what the page shows."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.store import Delete, store
from dashboard.live import messages, topics
from kube.errors import Forbidden
from kube.resources import EVENTS, JOBS, PODS
from tests.jobs.pages import world

TOPICS = ("jobs:detail", "jobs:timeline", "jobs:pods", "jobs:events", "jobs:yaml")


def render(user, address):
    name, params = topics.parse(address)
    with store.reading() as revision:
        parts = topics.find(name)(topics.TopicRequest(access.for_user(user), params))
    return parts, messages.parts(address, revision, parts.parts, parts.order)


@pytest.fixture
def job(alice):
    pods = [{"task": "worker", "index": i, "scheduled": world.START, "started": world.START} for i in range(4)]
    return world.make("train", "Running", pods=pods, counts={"running": 4})


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_of_a_job_can_be_sent(alice, job, topic):
    parts, message = render(alice, f"{topic}?name=train&namespace=default")
    assert parts.watches
    assert all(f'id=\\"{name}\\"' in message for name in parts.parts)


def test_the_page_and_the_socket_show_the_same_parts(alice, job, client):
    page = client.get("/jobs/default/train/").content.decode()
    for topic in TOPICS[:3]:
        parts, _ = render(alice, f"{topic}?name=train&namespace=default")
        for name, html in parts.parts.items():
            assert html.strip() in page, f"{topic} {name}"


def test_the_list_and_the_socket_show_the_same_rows(alice, job, client):
    parts, _ = render(alice, "jobs:list")
    assert parts.order == [f"job-{job.uid}"]
    assert parts.html() in client.get("/jobs/").content.decode()


@pytest.mark.parametrize("topic", TOPICS)
def test_a_job_that_is_deleted_while_somebody_looks_says_so(alice, job, topic):
    store.write(Delete(JOBS, "default", "train", grace=0))
    parts, _ = render(alice, f"{topic}?name=train&namespace=default")
    assert "This job was deleted" in "".join(parts.parts.values())
    assert parts.watches


@pytest.mark.parametrize("topic", TOPICS)
def test_a_job_of_another_namespace_is_refused(alice, topic):
    world.make("secret", "Running", namespace="other")
    with pytest.raises(Forbidden):
        render(alice, f"{topic}?name=secret&namespace=other")


def test_the_same_state_is_the_same_text(alice, job):
    first, _ = render(alice, "jobs:detail?name=train&namespace=default")
    second, _ = render(alice, "jobs:detail?name=train&namespace=default")
    assert first.parts == second.parts


def test_every_part_watches_the_jobs_pods_and_nobody_elses(alice, job):
    parts, _ = render(alice, "jobs:pods?name=train&namespace=default")
    owners = {watch.owner for watch in parts.watches if watch.resource == PODS.id}
    assert owners == {job.uid}


def test_the_timeline_hears_what_is_told_of_the_job_and_of_no_other(alice, job):
    parts, _ = render(alice, "jobs:timeline?name=train&namespace=default")
    (watch,) = (each for each in parts.watches if each.resource == EVENTS.id)
    assert watch.owner == job.uid
    assert EVENTS.index(world.event_object(job, "ExecuteAction", "Restarted.")).owner == job.uid
    assert (
        EVENTS.index(world.event_object(job, "Started", "Began.", about="Pod", name="train-worker-0")).owner != job.uid
    )
