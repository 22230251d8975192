"""Whatever a policy or a plugin may say has words for it."""

from __future__ import annotations

import pytest

from jobs.plugins.table import PLUGINS
from jobs.rules import policies, words
from kube.kinds.batch import JobEvent


def test_every_event_that_happens_has_words():
    assert set(words.EVENT_WORDS) == set(policies.ALLOWED_EVENTS) - {JobEvent.JOB_UPDATED}


def test_every_action_has_words_and_all_that_make_sense_are_offered():
    assert set(words.ACTION_WORDS) == set(policies.ALLOWED_ACTIONS)
    assert [each.action for each in words.ACTIONS if not each.is_offered] == ["ResumeJob"]


def test_every_plugin_has_words_and_all_its_arguments_with_their_defaults():
    assert set(words.PLUGIN_WORDS) == set(PLUGINS)
    for plugin in words.PLUGINS:
        written = dict(each.written.removeprefix("--").split("=") for each in plugin.arguments)
        flags = PLUGINS[plugin.name].flags
        assert written.keys() == flags.keys(), plugin.name
        for name, default in flags.items():
            assert written[name] == (str(default).lower() if isinstance(default, bool) else str(default) or "…")


def test_a_task_is_offered_what_reaches_its_policies():
    assert "Unknown" in dict(words.event_choices(of_task=False))
    assert "Unknown" not in dict(words.event_choices(of_task=True))
    assert dict(words.event_choices(of_task=True))["PodFailed"] == "a pod of this task fails"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (words.event("PodFailed"), "a pod fails"),
        (words.event("PodFailed", "worker"), "a pod of worker fails"),
        (words.event("Unknown", "worker"), "pods of the gang are lost and cannot be placed again"),
        (words.event("JobUpdated"), "JobUpdated happens"),
        (words.action("RestartJob"), "restart the whole job"),
        (words.action("Dance"), "Dance"),
    ],
)
def test_words(said, expected):
    assert said == expected
