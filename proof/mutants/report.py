"""docs/mutants.md: how many defects are found, by whom, and which are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from proof.mutants.hunting import SIMULATED, Stage
from proof.mutants.listing import ROOT, Mutant

PAGE = ROOT / "docs" / "mutants.md"
OUTCOMES = ("tests", "simulation", "survived", "open")  # a column each
HEAD = """# Mutants: what the tests would notice

`make mutants` makes small defects in the rules and controllers, one at a time, and looks who finds each: the tests that found
it the last time, then those of `make test` that reach it, then 60 seconds of the simulation. The list was drawn once by a seed, in proportion to the code of
each package, and stays: `proof/mutants/mutants.jsonl`. What is removed from the tests must not lower the score. Where nobody
found one, a test has been written since: the score says what is kept, and of a fresh list it would be lower.

Pages, migrations and the shim of containers have no defects here; browsers, `make escapes` and the drills are what holds those.
"""


def text(mutants: Sequence[Mutant]) -> str:
    """Return the page."""
    return "\n".join((HEAD, _table(mutants), _survivors(mutants), _equivalent(mutants)))


def score(mutants: Iterable[Mutant]) -> str:
    """Return how many of those that somebody could meet are found, in words."""
    real = [each for each in mutants if not each.equivalent]
    found = sum(bool(each.found_by) for each in real)
    return f"{found} of {len(real)}, {100 * found / max(1, len(real)):.1f} %"


def _table(mutants: Sequence[Mutant]) -> str:
    rows = [
        "| package | defects | found by tests | by the simulation alone | survived | not asked of everybody yet |",
        "|---|---|---|---|---|---|",
    ]
    real = [each for each in mutants if not each.equivalent]
    for name, some in (
        *((name, _of(name, real)) for name in sorted({each.package for each in real})),
        ("**all**", real),
    ):
        by = Counter(_outcome(each) for each in some)
        rows.append(f"| {name} | {len(some)} | {' | '.join(str(by[each]) for each in OUTCOMES)} |")
    return "\n".join((*rows, "", f"Found: {score(mutants)}.", ""))


def _outcome(mutant: Mutant) -> str:
    if mutant.found_by:
        return "simulation" if mutant.found_by == SIMULATED else "tests"
    return "survived" if mutant.asked == len(Stage) else "open"


def _of(package: str, mutants: Iterable[Mutant]) -> list[Mutant]:
    return [each for each in mutants if each.package == package]


def _survivors(mutants: Iterable[Mutant]) -> str:
    rows = [f"{_row(each)} {_stages(each)} |" for each in mutants if not (each.found_by or each.equivalent)]
    head = ["## Not found", "", "| | where | what is | what nobody notices | asked |", "|---|---|---|---|---|"]
    return "\n".join((*head, *rows, "")) if rows else "## Not found\n\nNone.\n"


def _stages(mutant: Mutant) -> str:
    return "everybody" if mutant.asked == len(Stage) else ", ".join(list(Stage)[: mutant.asked]) or "nobody yet"


def _equivalent(mutants: Iterable[Mutant]) -> str:
    rows = [f"{_row(each)} {each.equivalent} |" for each in mutants if each.equivalent]
    head = [
        "## Not counted, since nobody could meet them",
        "",
        "| | where | what is | what it becomes | why |",
        "|---|---|---|---|---|",
    ]
    return "\n".join((*head, *rows, "")) if rows else ""


def _row(each: Mutant) -> str:
    where = f"`{each.module}` {each.function.rpartition('.')[2]}".strip()
    after = _code(each.after) if each.after else "(left out)"
    return f"| {each.number} | {where} | {_code(each.before)} | {after} |"


def _code(source: str) -> str:
    short = " ".join(source.split())
    return f"`{short[:100]}{'…' * (len(short) > 100)}`".replace("|", "\\|")
