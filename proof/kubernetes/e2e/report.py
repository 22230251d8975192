"""What came of Volcano's end-to-end suites, as a page: each spec, and why one fails that does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml

# Those of Volcano's own continuous integration that a cluster of four nodes is enough for; the one that waits for minutes of the clock last.
SUITES = ("vcctl", "jobp", "jobseq", "schedulingbase", "schedulingaction", "schedulinggates", "admission", "cronjob")
# Specs that Volcano's own runs leave out, and those that mount volumes of a real node.
LEFT_OUT = (r"\[sig-", "Volume Binding Test")
REASONS = Path(__file__).parent / "reasons.yaml"
AGAIN = "again"  # what a suite's second report is called, of specs that were run again alone
HEAD = """# Volcano's end-to-end suites

Volcano's own tests of a running Volcano (`test/e2e` of its source, commit {commit}) against kube-apiserver and etcd with our
definitions of the kinds, and our controllers, scheduler and webhooks in place of Volcano's, with the configuration of the scheduler
that Volcano's own runs have. The tests are unchanged, but that they wait for a minute where they would wait for three, five or ten,
and change that configuration under the name that our scheduler reads. Nodes and pods are played by kwok: a container's command is
read, not run (`proof/kubernetes/e2e/stages.yaml`), so a spec that passes says nothing of MPI or TensorFlow, and all of the jobs around them.
To run them again, with Go and a checkout of Volcano:

```sh
make volcano-e2e VOLCANO=./volcano
```

That writes this page anew, and ends with an error where a spec fails for which `proof/kubernetes/e2e/reasons.yaml` knows no reason.
With `ARGS=--again` it runs again what failed so, each alone in a cluster that has nothing else to do, and writes what came of that.

This page is of one run, of {when}: {passed} of {all} specs passed, and Volcano itself skips {skipped}. Suites that ran at the same time
had a cluster each.{again}{missing}

"""
TAIL = """
Not part of it: `hypernode` and `gangevict`, which want a cluster of their own, with eight played nodes of certain names and Helm; `dra` (device
claims), `agentscheduler`, `schedulersharding` and `shardingcontroller` (Volcano's other scheduler, and several at once), which are about what is
not here; `stress`, which measures; and the specs `Volume Binding Test`, which want nodes that mount volumes.
"""


class Spec(NamedTuple):
    """A spec of a suite, what came of it, and why it fails as far as is known."""

    suite: str
    name: str
    state: str
    why: str
    was_again: bool = False  # whether it was run again alone, and this came of it

    @property
    def is_unexplained(self) -> bool:
        """Whether it fails and nobody knows why."""
        return self.state not in ("passed", "skipped") and not self.why


class Times(NamedTuple):
    """When a suite began and ended."""

    began: datetime
    ended: datetime


def path_of(folder: Path, suite: str, *, again: bool = False) -> Path:
    """Return the file of a suite's report."""
    return folder / (f"{suite}.{AGAIN}.json" if again else f"{suite}.json")


def forget(folder: Path, suites: Iterable[str]) -> None:
    """Remove what earlier runs of suites reported, with which a page would not be of one run."""
    for suite in suites:
        for again in (False, True):
            path_of(folder, suite, again=again).unlink(missing_ok=True)


def times(folder: Path) -> dict[str, Times]:
    """Return when each suite was run; one that was not run to its end is left out."""
    reports = {suite: _report(path_of(folder, suite)) for suite in SUITES}
    return {
        suite: Times(*(datetime.fromisoformat(each[key]).astimezone(UTC) for key in ("StartTime", "EndTime")))
        for suite, each in reports.items()
        if each
    }


def read(folder: Path, suites: Iterable[str]) -> list[Spec]:
    """Return the specs of suites by what their runs reported; a suite that was not run to its end has none."""
    found = []
    for suite in suites:
        again = {spec.name: spec for spec in _specs(suite, path_of(folder, suite, again=True))}
        found += [
            again[spec.name]._replace(was_again=True) if spec.name in again else spec for spec in first(folder, [suite])
        ]
    return found


def first(folder: Path, suites: Iterable[str]) -> list[Spec]:
    """Return the specs of suites as they were before any was run again."""
    return [spec for suite in suites for spec in _specs(suite, path_of(folder, suite))]


def _report(path: Path) -> Mapping[str, Any] | None:
    """Return what ginkgo reported; None where it did not come to the end."""
    if not path.exists():
        return None
    (report,) = json.loads(path.read_text())
    why = report.get("SpecialSuiteFailureReasons") or ()
    return None if any(each.startswith(("Interrupted", "Suite Timeout")) for each in why) else report


def _reasons() -> dict[tuple[str, str], str]:
    """Return why specs fail, by suite and name."""
    return {
        (suite, name): each["why"]
        for each in yaml.safe_load(REASONS.read_text())
        for suite, names in each["specs"].items()
        for name in names
    }


def _specs(suite: str, path: Path) -> list[Spec]:
    reasons = _reasons()
    report, found = _report(path) or {}, []
    for each in report.get("SpecReports") or ():
        if each["LeafNodeType"] != "It" or _is_left_out(each):
            continue
        name = " ".join([*(each["ContainerHierarchyTexts"] or ()), each["LeafNodeText"]])
        state = each["State"]
        why = "" if state == "passed" else reasons.get((suite, name), "")
        if state in ("skipped", "pending"):
            state, why = "skipped", "Volcano's own runs skip it"
        found.append(Spec(suite, name, state, why))
    return found


def _is_left_out(spec: Mapping[str, Any]) -> bool:
    return spec["State"] == "skipped" and not (spec.get("Failure") or {}).get("Message")


def summary(specs: Sequence[Spec]) -> list[str]:
    """Return a line for each suite, one for each spec that fails without a known reason, and one for each reason that is none any more."""
    lines = [
        f"{suite}: {', '.join(f'{count} {state}' for state, count in sorted(counts.items()))}"
        for suite, counts in _counts(specs).items()
    ]
    states = {(each.suite, each.name): each.state for each in specs}
    return [
        *lines,
        *(f"NOT KNOWN WHY: {each.suite}: {each.name}" for each in specs if each.is_unexplained),
        *(f"FAILS NO MORE: {suite}: {name}" for suite, name in _reasons() if states.get((suite, name)) == "passed"),
    ]


def _counts(specs: Iterable[Spec]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for each in specs:
        counts.setdefault(each.suite, Counter())[each.state] += 1
    return counts


def page(specs: Sequence[Spec], commit: str, times: Mapping[str, Times]) -> str:
    """Return the page: which run it is of, the numbers, what fails and why, and what passes."""
    counts = _counts(specs)
    total = sum(counts.values(), Counter())
    numbers = [
        f"| `{suite}` | {_span(times[suite])} | {count['passed']} | {sum(count.values()) - count['passed'] - count['skipped']} | {count['skipped']} |"
        for suite, count in counts.items()
    ]
    failing = [
        f"| `{each.suite}` | {_cell(each.name)} | {_cell(each.why or 'not known yet')} |"
        for each in specs
        if each.state not in ("passed", "skipped")
    ]
    passing = [
        f"* `{suite}`: " + "; ".join(each.name for each in specs if (each.suite, each.state) == (suite, "passed"))
        for suite in counts
    ]
    parts = [
        "| suite | when (UTC) | passed | failed | skipped by Volcano |\n|---|---|---|---|---|",
        *numbers,
        "\n## What fails, and why\n\n| suite | spec | why |\n|---|---|---|",
        *failing,
        "\n## What passes\n",
        *passing,
    ]
    head = HEAD.format(
        commit=commit,
        when=f"{min(each.began for each in times.values()):%Y-%m-%d}",
        passed=total["passed"],
        all=sum(total.values()),
        skipped=total["skipped"],
        again=_rerun_note(specs),
        missing=_missing_note(counts),
    )
    return head + "\n".join(parts) + "\n" + TAIL


def _rerun_note(specs: Iterable[Spec]) -> str:
    """Return what to know of specs that failed at first, "" where there are none."""
    names = [f"`{each.suite}` {each.name}" for each in specs if each.was_again and each.state == "passed"]
    if not names:
        return ""
    return f"\nOf these {len(names)} failed at first and passed when they were run again alone: {'; '.join(names)}."


def _missing_note(counts: Collection[str]) -> str:
    """Return which suites the run did not get through, "" where it got through all."""
    missing = [f"`{suite}`" for suite in SUITES if suite not in counts]
    return f"\nIt was stopped before it got through {', '.join(missing)}." if missing else ""


def _span(times: Times) -> str:
    return f"{times.began:%H:%M} to {times.ended:%H:%M}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
