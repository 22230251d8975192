"""The page about Volcano's end-to-end suites: what is known of a failure is said, and what is not known fails the run."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.kubernetes.e2e import report


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Return specs read of what a suite reported; `known` is why one of them fails."""
    reasons = [{"why": "no | such thing here", "specs": {"jobp": ["Jobs known"]}}]
    (tmp_path / "reasons.yaml").write_text(yaml.safe_dump(reasons))
    monkeypatch.setattr(report, "REASONS", tmp_path / "reasons.yaml")

    def read(**states):
        specs = [spec(name, state) for name, state in states.items()]
        (tmp_path / "jobp.json").write_text(json.dumps([{"SpecReports": specs}]))
        return report.read(tmp_path, ["jobp"])

    return read


def spec(name, state):
    failure = {"Message": "Skip: flaky"} if state == "skipped" and name != "elsewhere" else None
    return {
        "LeafNodeType": "It",
        "ContainerHierarchyTexts": ["Jobs"],
        "LeafNodeText": name,
        "State": state,
        "Failure": failure,
    }


@pytest.mark.parametrize(
    ("name", "state", "why", "is_unexplained"),
    [
        ("known", "passed", "", False),
        ("known", "failed", "no | such thing here", False),
        ("other", "failed", "", True),
        ("other", "timedout", "", True),
        ("other", "skipped", "Volcano's own runs skip it", False),
    ],
)
def test_each_spec_is_told_with_why_it_fails(told, name, state, why, is_unexplained):
    (found,) = told(**{name: state})
    assert found == report.Spec("jobp", f"Jobs {name}", state, why)
    assert found.is_unexplained == is_unexplained


def test_what_a_run_left_out_is_no_part_of_it(told):
    assert told(elsewhere="skipped") == []


def test_page_counts_and_names_all(told):
    specs = told(fine="passed", known="failed", other="failed", flaky="skipped")
    page = report.page(specs, "abc123")
    assert "commit abc123" in page
    assert "| `jobp` | 1 | 2 | 1 |" in page
    assert "| `jobp` | Jobs known | no \\| such thing here |" in page
    assert "| `jobp` | Jobs other | not known yet |" in page
    assert "* `jobp`: Jobs fine\n" in page
    assert report.summary(specs)[1:] == ["NOT KNOWN WHY: jobp: Jobs other"]


def test_every_reason_is_about_a_suite_that_is_run():
    assert {suite for each in yaml.safe_load(report.REASONS.read_text()) for suite in each["specs"]} <= set(
        report.SUITES
    )
