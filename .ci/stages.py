"""The stages of CI: which there are, how they run, and what fails a run. `.ci/run` calls this.

What is in a lane runs one after the other: stages, and lanes that run beside each other.
Each stage has a log of its own in .cache/ci. When all have ended, times.md there says what took how long.

Only the standard library is there: the virtual environment is made by a stage.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import times

FOLDER = Path(".cache/ci").absolute()
STARTED = time.monotonic()
KUBERNETES_BEFORE_S = 3000
GRACE_S = 5  # from asking a stage to end until it is killed

# The rule of docs/flaky.md.
MAX_AGAIN = 3
NEVER_AGAIN = ("tests/invariants/", "tests/simulation/", "tests/drills/")
AGAIN_MINUTES = 20

MAX_NAMED = 20  # failed tests whose reasons stand at the end

# Each stage is a session of its own, and kernels with autogroups share processors among sessions: there nice is not enough.
IDLE = ("sh", "-c", '{ echo 19 > /proc/self/autogroup; } 2> /dev/null; exec nice -n 19 "$@"', "sh")

PASSING = ("passed", "flaky", "not tried")

ending = threading.Event()  # the run was asked to end
printing = threading.Lock()


@dataclass(frozen=True)
class Stage:
    """A command, and the minutes that it may take.

    pytest: it hands make's ARGS to pytest, and passes only if pytest says so. required: a run fails with it.
    is_idle: it gets what the stages beside it leave of the processors. obstacle: returns why it is not tried, or nothing.
    """

    name: str
    command: list[str]
    minutes: float
    pytest: bool = False
    required: bool = True
    is_idle: bool = False
    obstacle: Callable[[], str] = lambda: ""


@dataclass
class Result:
    """How a stage ended: passed, flaky, failed, timed out, ended (with the run), or not tried."""

    stage: Stage
    outcome: str
    wall_s: float = 0.0
    processor_s: float = 0.0
    record: times.Record = field(default_factory=times.Record)


def not_root() -> str:
    return "" if os.geteuid() == 0 else "it needs root"


def no_apt() -> str:
    return not_root() or ("" if shutil.which("apt-get") else "there is no apt-get")


def no_go() -> str:
    return "" if shutil.which("go") else "there is no Go"


def no_kubernetes() -> str:
    if reason := no_go():
        return reason
    if time.monotonic() - STARTED >= KUBERNETES_BEFORE_S:
        return "no time is left"
    built = subprocess.run(["make", "-q", "kubernetes-programs"], check=False, capture_output=True)
    return "" if built.returncode == 0 else "its programs are not built"


packages = Stage("packages", [".ci/packages"], 120, required=False, obstacle=no_apt)
# Its compiler needs the machine for some ten minutes where it has not built them before, and nothing where it has.
go_programs = Stage("kubernetes-programs", ["make", "kubernetes-programs"], 18, required=False, obstacle=no_go)
# `make programs` tries once more what could not be had, and says what it lacks.
big_packages = Stage("programs-installed", ["make", ".cache/programs/installed"], 20, required=False, obstacle=not_root)
environment = Stage("environment", ["make", ".venv/dev"], 10)
check = Stage("check", ["make", "check"], 20)
test = Stage("test", ["make", "test"], 50, pytest=True)
drills = Stage("test-drills", ["make", "test-drills"], 25, pytest=True)
clusters = Stage("test-clusters", ["make", "test-clusters"], 18, pytest=True)
escapes = Stage("escapes", ["make", "escapes"], 10, pytest=True)
package = Stage("package", ["make", "package"], 15, pytest=True)
programs = Stage("programs", ["make", "programs"], 20, pytest=True, obstacle=not_root)
# The same worlds each time: what a change breaks is found in its own run. Whoever types `make simulate` gets new ones.
stories = Stage("stories", ["make", "stories"], 15)
# A story that goes wrong is made short in a few minutes only: whoever works on it has the whole one, and time.
simulate = Stage("simulate", ["make", "simulate", "SEED=1", "HOURS=20", "ARGS=--plays=30"], 60, is_idle=True)
# It can be left out: on a machine that has built nothing yet the whole would take more than an hour.
kubernetes = Stage("test-kubernetes", ["make", "test-kubernetes"], 15, pytest=True, obstacle=no_kubernetes)

Lane = list["Stage | list[Lane]"]
"""What runs one after the other: stages, and lanes that run beside each other."""

# Tests of one package compute nearly all the time; drills wait for processes to start, stop and hang, and the others fit beside
# them. The simulation has what all of them leave.
ALL: Lane = [
    [[environment, check], [packages], [go_programs], [big_packages]],
    [[simulate], [test, [[drills, clusters], [kubernetes, stories, package, programs, escapes]]]],
]


def main(stages: Lane) -> int:
    """Run all stages, say what came of them, and return the exit status."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_lane, stages)
        # Python heeds a signal in its first thread, and one that another thread was sent does not wake that.
        while wait([running], timeout=0.5).not_done:
            pass
    results = running.result()
    flaky = run_again(results)
    conclude(results, flaky)
    good = all(each.outcome in PASSING for each in results if each.stage.required)
    return 0 if good and not ending.is_set() else 1


def run_lane(lane: Lane) -> list[Result]:
    """Run what is in a lane, one after the other; return what came of each stage, in their order."""
    results: list[Result] = []
    for each in lane:
        if isinstance(each, Stage):
            results.append(run(each))
            continue
        with ThreadPoolExecutor(len(each)) as pool:
            for found in pool.map(run_lane, each):
                results += found
    return results


def say(text: str) -> None:
    with printing:
        print(text, flush=True)


def run(stage: Stage) -> Result:
    """Run a stage, say how it went, and return what came of it."""
    if reason := "the run is ended" if ending.is_set() else stage.obstacle():
        say(f"• {stage.name} not tried: {reason}")
        return Result(stage, "not tried")
    log, recorded = FOLDER / f"{stage.name}.log", FOLDER / f"{stage.name}.jsonl"
    command = [*stage.command, f"ARGS=--record={recorded}"] if stage.pytest else stage.command
    if stage.is_idle:
        command = [*IDLE, *command]
    say(f"• {stage.name} begins: tail -f {log}")
    began = time.monotonic()
    with log.open("w") as output:
        outcome, processor_s = execute(command, stage.minutes * 60, output)
        result = Result(stage, outcome, time.monotonic() - began, processor_s, times.read(recorded))
        if outcome == "passed" and stage.pytest and result.record.exit != 0:
            result.outcome = "failed"
            output.write("It ended well, but pytest did not say so.\n")
    lines = log.read_text(errors="replace").splitlines()
    # Of what went well the end is enough, where pytest has its summary.
    shown = lines if result.outcome in ("failed", "timed out") else lines[-5:]
    told = f"• {stage.name} {result.outcome} in {clock(result.wall_s)}, {processor_s:.1f} processor seconds"
    say("\n".join([told, *(f"  {line}" for line in shown)]))
    return result


def execute(command: list[str], limit_s: float, output: IO[str]) -> tuple[str, float]:
    """Run a command; return its outcome, and the processor seconds of it and of all that it waited for."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        output.write(f"{error}\n")
        return "failed", 0.0
    deadline = time.monotonic() + limit_s
    while True:
        # Popen's own wait does not tell what was used.
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            outcome = "passed" if status == 0 else "failed"
            break
        if ending.is_set() or time.monotonic() >= deadline:
            outcome = "ended" if ending.is_set() else "timed out"
            used = end(process.pid)
            break
        time.sleep(0.1)
    process.returncode = status  # Popen would wait once more
    return outcome, used.ru_utime + used.ru_stime


def end(group: int) -> resource.struct_rusage:
    """Ask a process group to end, kill what does not, and return what its first process used."""
    used = None
    deadline = time.monotonic() + GRACE_S
    os.killpg(group, signal.SIGTERM)
    with contextlib.suppress(ProcessLookupError):  # nobody is left
        while time.monotonic() < deadline:
            if used is None:
                pid, _, usage = os.wait4(group, os.WNOHANG)
                used = usage if pid else None
            os.killpg(group, 0)
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)
    return used or os.wait4(group, 0)[2]


def run_again(results: list[Result]) -> list[str]:
    """Run failed tests a second time, each by itself, where docs/flaky.md lets them; return those that pass.

    They count as passed from then on, and so does a stage in which nothing else was wrong.
    """
    failed = sum(len(result.record.failed) for result in results)
    if failed > MAX_AGAIN:
        say(f"• no test is run a second time: {failed} failed, and at most {MAX_AGAIN} may")
        return []
    flaky: list[str] = []
    for result in filter(only_tests_failed, results):
        for number, test in enumerate(result.record.failed, 1):
            # With the same seed, so that what it meets at random is the same.
            name, seed = f"{result.stage.name}-again-{number}", result.record.seed
            options = ["-n", "0", f"--randomly-seed={seed}", f"--record={FOLDER / name}.jsonl"]
            again = run(Stage(name, [".venv/bin/pytest", *options, test["test"]], AGAIN_MINUTES))
            # One that is skipped now has not passed.
            if again.outcome == "passed" and again.record.counts() == (1, 0, 0):
                test["outcome"] = "passed"
                flaky.append(test["test"])
        if not result.record.failed:
            result.outcome = "flaky"
    return flaky


def only_tests_failed(result: Result) -> bool:
    """Tell whether a stage failed by nothing but tests that may run a second time."""
    failed = result.record.failed
    # pytest exits with 1 when tests failed. What has no tear-down is a worker's crash, or could not be collected.
    if result.outcome != "failed" or result.record.exit != 1 or not failed:
        return False
    return all(test["teardown"] is not None and not test["test"].startswith(NEVER_AGAIN) for test in failed)


def conclude(results: list[Result], flaky: list[str]) -> None:
    """Write times.md; print the slowest of it, and what there is to know. The last line counts the tests."""
    rows = []
    for each in results:
        counts = each.record.counts() if each.record.tests else ("", "", "")
        rows.append((each.stage.name, each.outcome, clock(each.wall_s), each.processor_s, *counts))
    stages = times.table(("stage", "result", "time", "processor seconds", "passed", "failed", "skipped"), rows)
    slowest = times.slowest([test for each in results for test in each.record.tests])
    entries = times.table(times.Entry._fields, slowest[:300])
    (FOLDER / "times.md").write_text(f"# What this run took\n\n{stages}\n\n{entries}\n")
    print(times.table(times.Entry._fields, slowest[:10]), stages, sep="\n\n", end="\n\n")
    for log in sorted(FOLDER.glob("*.log")):
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("NOT RUN"):
                print(line)
    for name in flaky:
        print(f"FLAKY {name}")
    lost = [(result.stage.name, test) for result in results for test in result.record.failed]
    for stage, test in lost[:MAX_NAMED]:
        print(f"FAILED {test['test']} of {stage}: {test['reason'][:300]}")
    if len(lost) > MAX_NAMED:
        print(f"FAILED and {len(lost) - MAX_NAMED} more: their logs name them")
    passed, failed, skipped = (sum(column) for column in zip(*(each.record.counts() for each in results), strict=True))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


def clock(seconds: float) -> str:
    return "{}:{:02}".format(*divmod(round(seconds), 60))


if __name__ == "__main__":
    sys.exit(main(ALL))
