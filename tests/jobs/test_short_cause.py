from __future__ import annotations

import pytest

from jobs.rules import short_cause


@pytest.mark.parametrize(
    ("name", "message", "said"),
    [
        pytest.param("a", "Exit 1 · w-0, w-3 and 2 more. 1 of 4 pods succeeded.", "exit 1 · w-0, w-3 and 2 more", id="exit code"),
        pytest.param("a", "Exited with code 1 · a-w-0, a-w-3 and 2 more. 1 of 4 pods succeeded.", "exit 1 · w-0, w-3 and 2 more", id="at length"),
        pytest.param("a", "Exited with code 3 · a-w-0; Exited with code 1 · a-w-1. 0 of 2.", "exit 3 · w-0; exit 1 · w-1", id="two codes"),
        pytest.param("a", "This can never start: a pod needs 1.5 CPU. 0 of 4 run.", "This can never start: a pod needs 1.5 CPU", id="number with a point"),
        pytest.param("large", "Waiting for extra-large-0 and large-0", "Waiting for extra-large-0 and 0", id="end of another name"),
        pytest.param("a.b", "Could not start · a.b-w-0.", "Could not start · w-0", id="name with a point"),
        pytest.param("a", "Exited with code unknown", "Exited with code unknown", id="no number"),
        pytest.param("a", "", "", id="nothing"),
    ],
)  # fmt: skip
def test_the_cause_leads_and_is_all(name, message, said):
    cause, rest = short_cause.parted(name, message)
    assert cause == said
    assert short_cause.without_name(name, message).endswith(rest)
