"""docs/kubernetes-traffic.md: what clients ask, how often, how it was answered, and which tests ask it too."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from proof.traffic import exchange, touched, use

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes-traffic.md"
CLIENTS = ("kubectl", "vcctl", "client-go", "python", "helm")
HEAD = """\
# What clients ask of a Kubernetes API server

Recorded while clients were used on a kube-apiserver with Volcano's definitions: what was typed is in `proof/traffic/sessions/`, each
request with its answer in `proof/traffic/recordings/`. `tests/apiserver/test_traffic.py` asks our server all of it in the same order and
compares the answers; where they may differ, `proof/traffic/allowed.py` says, and [kubernetes-api-differences.md](kubernetes-api-differences.md) why.

The form is that of the body, or of the answer to a read. The numbers are requests. A last column names up to three other tests of
`tests/apiserver` that ask the same, those first that ask little else, once `touched` has collected them.
`python -m proof.traffic record` makes the recordings anew, `touched` that column, `table` this page.
"""


def write() -> None:
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the page."""
    counts: dict[use.Use, Counter[str]] = defaultdict(Counter)
    codes: dict[use.Use, set[int]] = defaultdict(set)
    for name in exchange.names():
        for each in exchange.load(name):
            if each.client != exchange.STAGE:
                counts[touched.of(each)][each.client] += each.times
                codes[touched.of(each)].add(each.status)
    tests = touched.load()
    clients = [each for each in CLIENTS if any(found[each] for found in counts.values())]
    total, kinds = sum(map(Counter.total, counts.values())), len(counts)
    lines = [HEAD, f"Clients: {', '.join(clients)}; {total} requests of {kinds} kinds.{_tests_note(counts, tests)}\n"]
    columns = ["Verb", "Form", *clients, "Answers", *(["Tests"] if tests else [])]
    for resource in sorted({row.resource for row in counts}, key=lambda name: (name == use.OTHER, name)):
        lines += [f"## {resource}\n", _line(columns), "|" + "---|" * len(columns)]
        for row in sorted(each for each in counts if each.resource == resource):
            cells = [row.verb, row.form, *(str(counts[row][client] or "") for client in clients)]
            cells.append(", ".join(map(str, sorted(codes[row]))))
            if tests:
                cells.append(", ".join(map(_link, tests.get(row.key, ()))))
            lines.append(_line(cells))
        lines.append("")
    return "\n".join(lines)


def _tests_note(counts: dict[use.Use, Counter[str]], tests: dict[str, list[str]]) -> str:
    if not tests:
        return " Which other tests ask them has not been collected."
    return f" {sum(row.key not in tests for row in counts)} of these no other test asks."


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _link(test: str) -> str:
    file, name = test.split("::")[:: len(test.split("::")) - 1]
    return f"[{name.removeprefix('test_')}](../{file})"
