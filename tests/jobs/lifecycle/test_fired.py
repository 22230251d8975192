"""Policies that fired, as sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.lifecycle import fired
from jobs.lifecycle.fired import Fired
from kube.kinds.batch import Action, JobEvent
from tests.tables import cases


@cases("text, pod, code", {
    "failed": ("PodFailed: a-0 exited with code 3 (Error): x. y. The policy for it is RestartJob.", "a-0", 3),
    "failed twice": ("PodFailed: a-0 exited with codes 3 and 42. The policy for it is RestartJob.", "a-0", 3),
    "did not start": ("PodFailed: a-0 could not start. The policy for it is RestartTask.", "a-0", None),
    "evicted": (
        "PodEvicted: a-0 was deleted, and not by the job controller. The policy for it is RestartPod after 1m0s.",
        "a-0", None),
    "task": (
        "TaskFailed: containers of task a were started again too often, last of a-1. The policy for it is AbortJob.",
        "a-1", None),
    "no pod": ("TaskCompleted: all pods of task a succeeded. The policy for it is CompleteJob.", "", None),
})  # fmt: skip
def test_a_sentence_tells_pod_and_exit_code(text, pod, code):
    found = fired.read(text)
    assert (found.pod, found.exit_code) == (pod, code)
    assert fired.write(found) == text


@pytest.mark.parametrize("text", ["", "Suspended by alice.", "alice asked: the policy for it is RestartJob."])
def test_other_sentences_are_no_policies(text):
    assert fired.read(text) is None


@given(
    st.sampled_from(list(JobEvent)[:-1]),
    st.text(max_size=40).filter(lambda text: "The policy for it" not in text),
    st.sampled_from(list(Action)),
    st.sampled_from(["", "1m0s", "5s"]),
)
def test_what_is_written_is_read(event, what, action, after):
    if not event.isalnum():
        return
    written = Fired(event, what, action, after)
    assert fired.read(fired.write(written)) == written
