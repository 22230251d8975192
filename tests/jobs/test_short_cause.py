from __future__ import annotations

from jobs.rules import short_cause
from tests.tables import cases


@cases("name, message, said", {
    "exit code": ("a", "Exit 1 · w-0, w-3 and 2 more. 1 of 4 pods succeeded.", "exit 1 · w-0, w-3 and 2 more"),
    "at length": ("a", "Exited with code 1 · a-w-0, a-w-3 and 2 more. 1 of 4 pods succeeded.",
        "exit 1 · w-0, w-3 and 2 more"),
    "two codes": ("a", "Exited with code 3 · a-w-0; Exited with code 1 · a-w-1. 0 of 2.", "exit 3 · w-0; exit 1 · w-1"),
    "number with a point": ("a", "This can never start: a pod needs 1.5 CPU. 0 of 4 run.",
        "This can never start: a pod needs 1.5 CPU"),
    "end of another name": ("large", "Waiting for extra-large-0 and large-0", "Waiting for extra-large-0 and 0"),
    "name with a point": ("a.b", "Could not start · a.b-w-0.", "Could not start · w-0"),
    "no number": ("a", "Exited with code unknown", "Exited with code unknown"),
    "nothing": ("a", "", ""),
})  # fmt: skip
def test_the_cause_leads_and_is_all(name, message, said):
    cause, rest = short_cause.parted(name, message)
    assert cause == said
    assert short_cause.without_name(name, message).endswith(rest)
