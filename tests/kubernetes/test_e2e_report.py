"""The page about Volcano's end-to-end suites: what is known of a failure is said, and what is not known fails the run."""

import json
from datetime import UTC, datetime

import pytest
import yaml

from proof.kubernetes.e2e import report
from tests.tables import cases

TIMES = {
    "jobp": report.Times(datetime(2026, 11, 27, 11, 6, 10, 123456, UTC), datetime(2026, 11, 27, 11, 31, 9, 0, UTC))
}


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Return specs read of what a suite reported, and of what those did that were run again; `known` is why one of them fails."""
    reasons = [{"why": "no | such thing here", "specs": {"jobp": ["Jobs known"]}}]
    (tmp_path / "reasons.yaml").write_text(yaml.safe_dump(reasons))
    monkeypatch.setattr(report, "REASONS", tmp_path / "reasons.yaml")

    def read(*, again=None, stopped=(), **states):
        write(tmp_path, states, SpecialSuiteFailureReasons=stopped)
        if again:
            write(tmp_path, again, again=True)
        return report.read(tmp_path, ["jobp"])

    return read


def write(folder, states, *, again=False, **fields):
    specs = [
        {"LeafNodeType": "It", "ContainerHierarchyTexts": ["Jobs"], "LeafNodeText": name, "State": state,
         "Failure": {"Message": "Skip: flaky"} if state == "skipped" and name != "elsewhere" else None}
        for name, state in states.items()
    ]  # fmt: skip
    report.path_of(folder, "jobp", again=again).write_text(json.dumps([{"SpecReports": specs, **fields}]))


@cases("name, state, why, is_unexplained", {
    "it passed": ("known", "passed", "", False), "it failed": ("known", "failed", "no | such thing here", False),
    "another failed": ("other", "failed", "", True), "it took too long": ("other", "timedout", "", True),
    "skipped": ("other", "skipped", "Volcano's own runs skip it", False),
})  # fmt: skip
def test_each_spec_is_told_with_why_it_fails(told, name, state, why, is_unexplained):
    (found,) = told(**{name: state, "elsewhere": "skipped"})
    assert found == report.Spec("jobp", f"Jobs {name}", state, why)
    assert found.is_unexplained == is_unexplained


def test_page_counts_and_names_all_also_what_was_run_again(told, tmp_path):
    specs = told(fine="passed", known="failed", other="failed", flaky="skipped")
    page = report.page(specs, "abc123", TIMES)
    for words in (
        "commit abc123", "one run, of 2026-11-27: 1 of 4 specs passed, and Volcano itself skips 1.",
        "| `jobp` | 11:06 to 11:31 | 1 | 2 | 1 |", "| `jobp` | Jobs known | no \\| such thing here |",
        "| `jobp` | Jobs other | not known yet |", "* `jobp`: Jobs fine\n",
    ):  # fmt: skip
        assert words in page
    assert report.summary(specs)[1:] == ["NOT KNOWN WHY: jobp: Jobs other"]
    assert report.summary(told(known="passed"))[1:] == ["FAILS NO MORE: jobp: Jobs known"]
    specs = told(fine="passed", other="failed", worse="failed", again={"other": "passed", "worse": "failed"})
    assert [spec.state for spec in report.first(tmp_path, ["jobp"])] == ["passed", "failed", "failed"]
    assert [(spec.name[5:], spec.state) for spec in specs] == [
        ("fine", "passed"), ("other", "passed"), ("worse", "failed"),
    ]  # fmt: skip
    page = report.page(specs, "abc123", TIMES)
    assert "Of these 1 failed at first and passed when they were run again alone: `jobp` Jobs other.\n" in page


@pytest.mark.parametrize("stopped", ["Interrupted by User", "Suite Timeout Elapsed"])
def test_a_suite_that_was_stopped_is_named_and_counts_nothing(told, stopped):
    assert told(fine="passed", stopped=[stopped]) == []
    page = report.page([], "abc123", TIMES)
    assert "stopped before it got through `vcctl`, `jobp`," in page
    assert "| `jobp`" not in page


def test_every_reason_is_about_a_suite_that_is_run():
    reasons = yaml.safe_load(report.REASONS.read_text())
    assert {suite for each in reasons for suite in each["specs"]} <= set(report.SUITES)
