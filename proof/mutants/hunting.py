"""Wakes a defect, and runs the tests that reach it, then the simulation, until one finds it."""

from __future__ import annotations

import bisect
import enum
import functools
import itertools
import os
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from proof.mutants.listing import ROOT

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
# What `make test` runs.
SELECTION = (
    "-m",
    "not clusters",
    *(f"--ignore=tests/{name}" for name in ("programs", "package", "clusters", "drills", "kubernetes")),
)
# In shares of what all tests take: the nearest and quickest, which find most, and all that are tried of those that reach it.
NEAR, MOST = 0.003, 0.1
# These start whole systems and browsers; they come last.
WHOLE = ("tests/browser/", "tests/dashboard/browser/", "tests/system/", "tests/contract/")
SIMULATION = ("-m", "proof.simulation", "--seed", "1", "--hours", "100", "--plays", "0")
SIMULATION_S = 60.0
SIMULATED = "simulation"  # what a defect is found by where no test finds it
USUAL_S = 60.0  # what a file of tests takes at most while nobody has measured it
# Exit statuses of pytest; the last two also where a module cannot be imported.
FAILED, INTERRUPTED, USAGE = 1, 2, 4
NOT_IMPORTED = re.compile(r"^\d+ errors? in ", re.MULTILINE)
FOUND = re.compile(r"^(?:FAILED|ERROR) ([^: ]+)", re.MULTILINE)


@dataclass(frozen=True)
class Reach:
    """Which tests reach which defect, and the seconds that each test takes. A file stands for all of its tests."""

    tests: Mapping[int, frozenset[str]]
    seconds: Mapping[str, float]

    def of(self, number: int, module: str, *, at_import: bool) -> list[str]:
        """Return the tests that can find a defect: the nearest and quickest first.

        Of what is met at an import, such as an entry of a table, nobody knows which tests use it: then these are all.
        """
        folders = PurePosixPath(module).with_suffix("").parts

        def distance(test: str) -> tuple[int, float]:
            file = PurePosixPath(test.partition("::")[0])
            near = sum(word in file.parts or f"test_{word}.py" == file.name for word in folders)
            near += 2 * (".".join(folders[:-1]) in _text(file))
            return (-near, self.seconds.get(test, 0.0))

        reaching = set()
        for test in self.tests.get(number, frozenset()):
            reaching |= {test} if "::" in test else {each for each in self.seconds if each.startswith(f"{test}::")}
        reaching &= self.seconds.keys()
        return sorted(reaching if reaching and not at_import else self.seconds, key=distance)

    def taken_s(self, tests: Iterable[str]) -> float:
        """Return how long tests take."""
        return sum(self.seconds[test] for test in tests)


def record(tree: Path) -> Reach:
    """Run all tests of a planted tree, and return which reach what. Those that fail there are left out."""
    reached, taken = tree / "reached", tree / "taken.jsonl"
    for file in (reached, taken):
        file.unlink(missing_ok=True)
    command = [*PYTEST, "-n", "3", *SELECTION, "-p", "proof.mutants.recorder", "--record", str(taken)]
    environment = {**os.environ, "MUTANTS_REACHED": str(reached)}
    subprocess.run(command, cwd=tree, env=environment, check=False)
    return read(tree)


def read(tree: Path) -> Reach:
    """Return what `record` has found."""
    lines = [msgspec.json.decode(line) for line in (tree / "taken.jsonl").read_bytes().splitlines()]
    ended: list[dict[str, Any]] = [line for line in lines if "test" in line]
    bad = [line["test"] for line in ended if line["outcome"] in ("failed", "error")]
    if bad:
        sys.stdout.write(f"{len(bad)} tests fail without a defect, and are left out: {' '.join(bad[:20])}\n")
    seconds = {
        line["test"]: sum(line[phase] or 0.0 for phase in ("setup", "call", "teardown"))
        for line in ended
        if line["outcome"] == "passed"
    }
    tests: dict[int, set[str]] = defaultdict(set)
    for line in (tree / "reached").read_text().splitlines():
        number, _, test = line.partition(" ")
        if test:
            tests[int(number)].add(test)
    return Reach({number: frozenset(each) for number, each in tests.items()}, seconds)


@functools.cache
def _text(test: PurePosixPath) -> str:
    return (ROOT / test).read_text()


class Stage(enum.StrEnum):
    """Who is asked, one after the other: each of them is asked of all defects that nobody before has found."""

    LAST = "the tests that found it the last time"
    NEAR = "the nearest tests"
    REACHING = "tests that reach it"
    SIMULATION = "the simulation"
    SYSTEMS = "tests of whole systems"


def passing(tree: Path, files: Iterable[str]) -> set[str]:
    """Return those files of tests that are there and pass while every defect sleeps: only these can find one."""
    present = sorted(file for file in files if (tree / file).exists())
    command = [*PYTEST, "-n", "3", *SELECTION, *present]
    run = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode not in (0, FAILED):
        raise RuntimeError(f"pytest ended with {run.returncode}:\n{run.stdout[-3000:]}")
    return set(present) - set(FOUND.findall(run.stdout))


def hunt_last(tree: Path, number: int, found_by: str, passing: Set[str]) -> str:
    """Return who found a defect the last time, if that finds it again: else nothing. passing: see there."""
    if found_by == SIMULATED:
        return SIMULATED if _by_simulation(tree, number) else ""
    return _by_tests(tree, number, [found_by], USUAL_S) if found_by in passing else ""


def hunt(
    tree: Path, number: int, module: str, reach: Reach, stage: Stage, most: float, *, at_import: bool = False
) -> str:
    """Return who of a stage after the first finds a defect: the file of a test, "simulation", or nothing.

    most: which share of what all tests take those that reach it may take.
    """
    if stage is Stage.SIMULATION:
        return SIMULATED if _by_simulation(tree, number) else ""
    tests, all_s = reach.of(number, module, at_import=at_import), reach.taken_s(reach.seconds)
    alone = [test for test in tests if not test.startswith(WHOLE)]
    passed = list(itertools.accumulate(reach.seconds[test] for test in alone))
    first, last = (bisect.bisect(passed, share * all_s) + 1 for share in (NEAR, most))
    chosen = {
        Stage.NEAR: alone[:first],
        Stage.REACHING: alone[first:last],
        Stage.SYSTEMS: [test for test in tests if test.startswith(WHOLE)],
    }[stage]
    return _by_tests(tree, number, chosen, reach.taken_s(chosen)) if chosen else ""


def _by_tests(tree: Path, number: int, tests: Sequence[str], usual_s: float) -> str:
    names = tree / f"tests-{number}"
    names.write_text("\n".join(tests))
    # Far more than they take: who does not come to an end has found it as well.
    status, output = _run(tree, number, (*PYTEST, "-x", f"@{names}"), 60 + 4 * usual_s, 300 + 10 * usual_s)
    names.unlink()
    if status == 0:
        return ""
    if status in (FAILED, INTERRUPTED) or status < 0 or (status == USAGE and NOT_IMPORTED.search(output)):
        found = FOUND.search(output)
        return found[1] if found else tests[0].partition("::")[0]
    raise RuntimeError(f"pytest ended with {status} for defect {number}:\n{output[-3000:]}")


def _by_simulation(tree: Path, number: int) -> bool:
    command = (sys.executable, *SIMULATION, "--seconds", str(SIMULATION_S), "--keep", str(tree / "stories"))
    return _run(tree, number, command, 4 * SIMULATION_S, 40 * SIMULATION_S)[0] != 0


def _run(tree: Path, number: int, command: Sequence[str], cpu_s: float, wall_s: float) -> tuple[int, str]:
    """Run a command with a defect awake; return its exit status, below 0 if a limit ended it, and what it printed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))

    environment = {**os.environ, "MUTANT": str(number)}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        preexec_fn=limit,
    )
    try:
        output, _ = process.communicate(timeout=wall_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return -9, process.communicate()[0]
    return process.returncode, output


def cpu_s() -> float:
    """Return the processor seconds of all that has been run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + time.process_time()
