"""What the controller reads of jobs, those that came by a cluster's own API and no admission filled in, too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from cluster.store import store
from jobs.controller import facts, unfilled
from jobs.controller.plan import Known
from jobs.controller.state import JobEntry, JobsState
from kube.kinds.batch import JobEvent
from kube.resources import POD_GROUPS
from tests.jobs.builders import defaulted, job, task
from tests.jobs.control import pods, state
from tests.tables import cases

events = st.lists(st.sampled_from(["PodFailed", "PodEvicted", "TaskCompleted", "Unknown"]), max_size=2)


def sent(**spec):
    """A job as vcctl sends it: without a queue, and tasks without names."""
    tasks = [{"replicas": 2, "template": task()["template"]}]
    return {"metadata": {"name": "tiny", "namespace": "default"}, "spec": {"tasks": tasks, **spec}}


@cases("spec", {
    "nothing": {},
    "of vcctl": {"minAvailable": 1, "schedulerName": "volcano"},
    "without a task's name": {"queue": "default", "schedulerName": "volcano", "maxRetry": 3},
    "without a queue": {"tasks": [task()]},
    "with a plugin that needs another": {"tasks": [task()], "plugins": {"pytorch": []}},
})  # fmt: skip
def test_job_is_read_as_admission_would_have_stored_it(spec):
    assert json.decode(unfilled.filled_in(json.encode(sent(**spec)))) == defaulted(sent(**spec))


@pytest.mark.django_db(transaction=True)
def test_unfilled_job_gets_its_pods_and_one_that_was_admitted_is_taken_as_it_is(controller):
    """Nobody judges it here, as in a cluster that has no webhooks."""
    lowered = defaulted(sent())
    lowered["spec"]["minAvailable"] = 0
    body = json.encode(lowered)
    assert unfilled.filled_in(body) is body
    assert facts.read_job(body).min_available == 0
    controller.submit(sent())
    assert [group.object["spec"]["minMember"] for group in store.find(POD_GROUPS)] == [2]
    controller.admit()
    assert (pods(), state("tiny")["pending"]) == (["tiny-default0-0", "tiny-default0-1"], 2)


def answering(name, of_job, of_task):
    written = ([{"event": event, "action": "AbortJob"} for event in events] for events in (of_task, of_job))
    obj = job(task(policies=next(written)), name=name, policies=next(written))
    return Known(facts.read_job(json.encode(obj)))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.tuples(events, events)), max_size=12))
def test_an_event_is_heeded_as_long_as_a_job_answers_it(steps):
    found, answered = JobsState(0, 1), {}
    for name, policies in steps:
        if policies is None:
            found.forget(f"default/{name}")
            answered.pop(name, None)
        else:
            found.keep(JobEntry(answering(name, *policies)))
            answered[name] = {JobEvent(event) for each in policies for event in each}
        assert found.heeded == set().union(*answered.values())
