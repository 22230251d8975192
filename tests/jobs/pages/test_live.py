"""What the topics of a job's page watch: what `verify_action` cannot see, as it is only work that nobody needs."""

from __future__ import annotations

import pytest

from cluster.access import SYSTEM
from cluster.store import Delete, store
from dashboard.live import topics
from kube.resources import EVENTS, JOBS, PODS
from tests.jobs.pages import world


@pytest.fixture
def job(alice):
    return world.make("train", "Running", pods=[{"task": "worker", "index": 0, "scheduled": 1, "started": 1}])


def rendered(topic):
    with store.reading():
        return topics.find(topic)(topics.TopicRequest(SYSTEM, {"namespace": "default", "name": "train"}))


@pytest.mark.parametrize("topic", ["jobs:detail", "jobs:timeline", "jobs:pods", "jobs:events", "jobs:yaml"])
def test_a_job_that_is_deleted_while_somebody_looks_says_so(job, topic):
    store.write(Delete(JOBS, "default", "train", grace=0))
    parts = rendered(topic)
    assert "This job was deleted" in "".join(parts.parts.values())
    assert parts.watches


def test_a_part_hears_of_the_jobs_own_pods_and_events_and_of_no_others(job):
    for topic, resource in (("jobs:pods", PODS), ("jobs:timeline", EVENTS)):
        assert {watch.owner for watch in rendered(topic).watches if watch.resource == resource.id} == {job.uid}
    assert EVENTS.index(world.event_object(job, "ExecuteAction", "Restarted.")).owner == job.uid
    of_pod = world.event_object(job, "Started", "Began.", about="Pod", name="train-worker-0")
    assert EVENTS.index(of_pod).owner != job.uid
