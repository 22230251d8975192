"""What came of Volcano's end-to-end suites, as a page: each spec, and why one fails that does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

# As Volcano's own continuous integration runs them, the quick ones first.
SUITES = (
    "vcctl",
    "jobp",
    "jobseq",
    "schedulingbase",
    "schedulingaction",
    "schedulinggates",
    "cronjob",
    "admission",
)
# Specs that Volcano's own runs leave out, and those that mount volumes of a real node.
LEFT_OUT = (r"\[sig-", "Volume Binding Test")
REASONS = Path(__file__).parent / "reasons.yaml"
HEAD = """# Volcano's end-to-end suites

Volcano's own tests of a running Volcano (`test/e2e` of its source, commit {commit}) against kube-apiserver and etcd with our
definitions of the kinds, and our controllers, scheduler and webhooks in place of Volcano's. The tests are unchanged, but that they wait
for a minute where they would wait for three, five or ten. Nodes and pods are played by kwok: a container's command is read, not run
(`tests/kubernetes/e2e/stages.yaml`), so a spec that passes says nothing of MPI or TensorFlow, and all of the jobs around them.
To run them again, with Go and a checkout of Volcano:

```sh
make volcano-e2e VOLCANO=./volcano
```

That writes this page anew, and ends with an error where a spec fails for which `tests/kubernetes/e2e/reasons.yaml` knows no reason.

"""
TAIL = """
Not run: `hypernode` and `gangevict` (network topology), which was not here when it was run; `dra` (device claims), `agentscheduler`, `schedulersharding` and
`shardingcontroller` (Volcano's other scheduler, and several at once), which are about what is not here; `stress`, which measures; and
the specs `Volume Binding Test`, which want nodes that mount volumes.
"""


class Spec(NamedTuple):
    """A spec of a suite, what came of it, and why it fails as far as is known."""

    suite: str
    name: str
    state: str
    why: str

    @property
    def is_unexplained(self):
        """Whether it fails and nobody knows why."""
        return self.state not in ("passed", "skipped") and not self.why


def read(folder, suites):
    """Return the specs of suites by what their runs reported."""
    reasons = {
        (suite, name): each["why"]
        for each in yaml.safe_load(REASONS.read_text())
        for suite, names in each["specs"].items()
        for name in names
    }
    found = []
    for suite in suites:
        (told,) = json.loads((folder / f"{suite}.json").read_text())
        for each in told["SpecReports"] or ():
            if each["LeafNodeType"] != "It" or _is_left_out(each):
                continue
            name = " ".join([*(each["ContainerHierarchyTexts"] or ()), each["LeafNodeText"]])
            state = each["State"]
            why = "" if state == "passed" else reasons.get((suite, name), "")
            if state in ("skipped", "pending"):
                state, why = "skipped", "Volcano's own runs skip it"
            found.append(Spec(suite, name, state, why))
    return found


def _is_left_out(told):
    return told["State"] == "skipped" and not (told.get("Failure") or {}).get("Message")


def summary(specs):
    """Return a line for each suite, and one for each spec that fails without a known reason."""
    lines = [
        f"{suite}: {', '.join(f'{count} {state}' for state, count in sorted(counts.items()))}"
        for suite, counts in _counts(specs).items()
    ]
    return [*lines, *(f"NOT KNOWN WHY: {each.suite}: {each.name}" for each in specs if each.is_unexplained)]


def _counts(specs):
    counts = {}
    for each in specs:
        counts.setdefault(each.suite, Counter())[each.state] += 1
    return counts


def page(specs, commit):
    """Return the page: the numbers, what fails and why, and what passes."""
    counts = _counts(specs)
    numbers = [
        f"| `{suite}` | {count['passed']} | {sum(count.values()) - count['passed'] - count['skipped']} | {count['skipped']} |"
        for suite, count in counts.items()
    ]
    failing = [
        f"| `{each.suite}` | {_cell(each.name)} | {_cell(each.why or 'not known yet')} |"
        for each in specs
        if each.state not in ("passed", "skipped")
    ]
    passing = [
        f"* `{suite}`: "
        + "; ".join(each.name for each in specs if (each.suite, each.state) == (suite, "passed"))
        for suite in counts
    ]
    parts = [
        "| suite | passed | failed | skipped by Volcano |\n|---|---|---|---|",
        *numbers,
        "\n## What fails, and why\n\n| suite | spec | why |\n|---|---|---|",
        *failing,
        "\n## What passes\n",
        *passing,
    ]
    return HEAD.format(commit=commit) + "\n".join(parts) + "\n" + TAIL


def _cell(text):
    return text.replace("|", "\\|")
