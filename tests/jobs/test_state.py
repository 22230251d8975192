"""What the controller counts while jobs come, change and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from jobs.controller import facts
from jobs.controller.plan import Known
from jobs.controller.state import JobEntry, JobsState
from kube.kinds.batch import JobEvent
from tests.jobs.builders import job, task

EVENTS = st.lists(st.sampled_from(["PodFailed", "PodEvicted", "TaskCompleted", "Unknown"]), max_size=2)
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.tuples(EVENTS, EVENTS)), max_size=12)


def known(name, of_job, of_task):
    lists = ([{"event": event, "action": "AbortJob"} for event in each] for each in (of_job, of_task))
    obj = job(task(policies=next(lists)), name=name, policies=next(lists))
    return Known(facts.read_job(json.encode(obj)))


@given(STEPS)
def test_an_event_is_heeded_as_long_as_a_job_answers_it(steps):
    state = JobsState(0, 1)
    answered = {}
    for name, policies in steps:
        key = f"default/{name}"
        if policies is None:
            state.forget(key)
            answered.pop(key, None)
        else:
            state.keep(JobEntry(known(name, *policies)))
            answered[key] = {JobEvent(event) for events in policies for event in events}
        assert state.heeded == set().union(*answered.values())
