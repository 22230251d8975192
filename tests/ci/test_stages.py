"""How .ci/stages.py runs stages, of which each test hands it its own."""

import importlib
import os
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings

from node.shim import linux
from proof.harness.waiting import HANG_S, until
from tests.tables import cases

TGKILL = 234 if os.uname().machine == "x86_64" else 131

ROOT = settings.BASE_DIR
RUN = """
import stages, sys
from stages import Stage

def sh(name, script, minutes=10, **options):
    return Stage(name, ["sh", "-c", script], minutes, **options)

stages.GRACE_S = {grace_s}
sys.exit(stages.main({lane}))
"""
PYTEST = 'Stage("test", ["make", "test"], 10, pytest=True)'


@pytest.fixture
def start(project):
    """Start a run of a lane, which is written as in Python."""

    def start(lane, grace_s=30):
        return project.start(sys.executable, "-c", RUN.format(lane=lane, grace_s=grace_s))

    return start


@pytest.fixture
def run(project, start):
    """Run a lane as start does; return the exit status, what was printed, and the files of .cache/ci."""

    def run(*arguments):
        process = start(*arguments)
        printed = process.communicate(timeout=HANG_S)[0]
        files = {file.name: file.read_text() for file in (project.folder / ".cache" / "ci").iterdir()}
        return SimpleNamespace(status=process.returncode, printed=printed, lines=printed.splitlines(), files=files)

    return run


def table(lines):
    """Return the cells of the rows of Markdown's tables."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]


def stages_of(lane):
    for each in lane:
        yield from stages_of(each) if isinstance(each, list) else [each]


def results(ran):
    """Return how each stage ended, by the table of stages, which has seven columns."""
    return {row[0]: row[1] for row in table(ran.files["times.md"].splitlines())[2:] if len(row) == 7}


def test_what_is_in_a_lane_follows_each_other_and_lanes_do_not(run):
    ran = run("""[
        [
            [sh("one", "touch a; until [ -e b ]; do sleep 0.01; done; sleep 0.3; touch c")],
            [sh("two", "touch b; until [ -e a ]; do sleep 0.01; done"), [[sh("within", "until [ -e c ]; do sleep 0.01; done")]]],
        ],
        sh("three", "[ -e c ] && sleep 0.3 && touch d"), sh("four", "[ -e d ]"),
    ]""")
    assert results(ran) == dict.fromkeys(["one", "two", "within", "three", "four"], "passed")
    assert ran.status == 0


@cases("stage, result, status", {
    "passes": ('sh("it", "true")', "passed", 0),
    "fails": ('sh("it", "exit 3")', "failed", 1),
    "may fail": ('sh("it", "exit 3", required=False)', "failed", 0),
    "not tried": ('sh("it", "exit 3", obstacle=lambda: "no Go")', "not tried", 0),
    "runs no pytest": ('sh("it", "true", pytest=True)', "failed", 1),
    "no such command": ('Stage("it", ["no-such-program"], 10)', "failed", 1),
})  # fmt: skip
def test_a_run_fails_with_what_it_requires(run, stage, result, status):
    ran = run(f'[[[{stage}, sh("next", "true")]]]')
    assert results(ran) == {"it": result, "next": "passed"}
    assert ran.status == status
    assert ran.lines[-1] == "0 passed, 0 failed, 0 skipped"


def test_of_what_failed_the_whole_log_is_printed_and_of_what_passed_its_end_and_what_was_not_run(run):
    ran = run("""[[[
        sh("good", "seq 1 20 | sed s/^/good-/"),
        sh("bad", "seq 1 20 | sed s/^/bad-/; exit 1"),
        sh("without", "exit 1", obstacle=lambda: "there is no Go"),
        sh("words", "echo NOT RUN: no Ray; seq 20"),
        sh("long", "sleep 1000", minutes=0.001),
    ]]]""")
    lines = [line.strip() for line in ran.lines]
    assert [line for line in lines if line.startswith("good-")] == [f"good-{n}" for n in range(16, 21)]
    assert [line for line in lines if line.startswith("bad-")] == [f"bad-{n}" for n in range(1, 21)]
    assert ran.files["good.log"].split() == [f"good-{n}" for n in range(1, 21)]
    assert "• without not tried: there is no Go" in lines
    assert results(ran)["long"] == "timed out"
    assert ran.lines[-2:] == ["NOT RUN: no Ray", "0 passed, 0 failed, 0 skipped"]


def test_processor_seconds_are_those_of_a_stages_children_as_well(run):
    busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass'"
    ran = run(f'[[[sh("busy", """{busy}"""), sh("idle", "sleep 0.5")]]]')
    used = dict(re.findall(r"• (\w+) passed in \d:\d\d, ([\d.]+) processor seconds", ran.printed))
    assert float(used["busy"]) >= 0.5 > float(used["idle"])


def alive(pid):
    """Tell whether a process runs; one that ended may wait to be fetched by a parent that is not of this test."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_idle_stage_gets_what_others_leave_of_the_processors(run):
    ran = run("""[[
        [sh("idle", "nice; cat /proc/self/autogroup || echo nice 19", is_idle=True)],
        [sh("other", "nice; cat /proc/self/autogroup || echo nice 0")],
    ]]""")
    for name, own, of_the_session in (("idle", "19", "nice 19"), ("other", str(os.nice(0)), "nice 0")):
        first, second = ran.files[f"{name}.log"].splitlines()
        assert first == own
        assert second.endswith(of_the_session)


@cases("number, child, grace_s, expected", {
    "that end when asked to": (signal.SIGTERM, "trap 'echo asked; exit' TERM", 30, "  asked"),
    "that have to be killed": (signal.SIGINT, "trap '' TERM", 0.3, "  begun"),
})  # fmt: skip
def test_a_signal_ends_stages_with_their_children(start, project, number, child, grace_s, expected):
    project.write({"child": f"{child}; echo begun; touch begun; while :; do sleep 0.1; done"})
    stages = '[[[sh("long", "sh child & echo $! > pid; wait", required=False), sh("next", "true")]]]'
    process = start(stages, grace_s)
    files = [project.folder / "begun", project.folder / "pid"]
    until(lambda: all(file.exists() for file in files) and files[1].read_text(), what="the child")
    # The kernel may give it to any thread.
    thread = max(int(each.name) for each in Path(f"/proc/{process.pid}/task").iterdir())
    linux.syscall(TGKILL, process.pid, thread, number)
    printed = process.communicate(timeout=HANG_S)[0].splitlines()
    until(lambda: not alive(int(files[1].read_text())), what="the end of the child")
    assert process.returncode == 1
    assert expected in printed
    assert "• next not tried: the run is ended" in printed
    assert any(line.startswith("• long ended in 0:") for line in printed)


# Each test of a project knows by its name whether it runs again.
AGAIN = """
import os, random, pytest
from pathlib import Path

def again(name):
    seen = Path(f"{name}.seen")
    known = seen.exists()
    seen.touch()
    return known
"""
ONE, TWO, THREE, FOUR = (f"def test_{name}(): assert again('{name}')\n" for name in ("one", "two", "three", "four"))
OTHERS = "def test_passes(): pass\ndef test_is_skipped(): pytest.skip()\n"
SET_UP = "@pytest.fixture\ndef world(): assert again('world')\ndef test_one(world): pass\n"
RANDOM = """
def test_one():
    number = str(random.random())
    if again("one"):
        assert Path("number").read_text() == number
    else:
        Path("number").write_text(number)
        assert False
"""
ALWAYS = "def test_always(): assert False, 'the second' if again('always') else 'the first'\n"
THEN_SKIPPED = "def test_one():\n    if again('one'): pytest.skip()\n    assert False\n"


def with_tests(project, files, workers=0):
    project.write({name: AGAIN + text for name, text in files.items()})
    project.write({"Makefile": f"test:\n\t@.venv/bin/pytest -n {workers} --randomly-dont-reorganize $(ARGS)\n"})


@cases("files, flaky, last", {
    "one": ({"test_a.py": ONE + OTHERS}, ["one"], "2 passed, 0 failed, 1 skipped"),
    "three": ({"test_a.py": ONE + TWO + THREE}, ["one", "two", "three"], "3 passed, 0 failed, 0 skipped"),
    "in a fixture": ({"test_a.py": SET_UP}, ["one"], "1 passed, 0 failed, 0 skipped"),
    "with the same random numbers": ({"test_a.py": RANDOM}, ["one"], "1 passed, 0 failed, 0 skipped"),
})  # fmt: skip
def test_a_test_that_passes_by_itself_is_flaky(run, project, files, flaky, last):
    with_tests(project, files)
    ran = run(f"[[[{PYTEST}]]]")
    assert ran.status == 0
    assert results(ran) == {"test": "flaky"}
    assert ran.lines[-len(flaky) - 1 :] == [*(f"FLAKY test_a.py::test_{name}" for name in flaky), last]


CRASH = {"test_a.py": ONE, "test_b.py": "def test_crashes(): again('crashes') or os._exit(1)\n"}
UNREADABLE = {"test_a.py": ONE, "test_b.py": "import nothing_such"}


@cases("files, workers, second, flaky, last", {
    "fails again": ({"test_a.py": ALWAYS}, 0, 1, [], "0 passed, 1 failed"),
    "is skipped then": ({"test_a.py": THEN_SKIPPED}, 0, 1, [], "0 passed, 1 failed"),
    "beside a flaky one": ({"test_a.py": ALWAYS + ONE}, 0, 2, ["one"], "1 passed, 1 failed"),
    "four": ({"test_a.py": ONE + TWO + THREE + FOUR}, 0, 0, [], "0 passed, 4 failed"),
    "an invariant": ({"tests/invariants/test_a.py": ONE}, 0, 0, [], "0 passed, 1 failed"),
    "a simulation": ({"tests/simulation/test_a.py": ONE}, 0, 0, [], "0 passed, 1 failed"),
    "a drill": ({"tests/drills/test_a.py": ONE}, 0, 0, [], "0 passed, 1 failed"),
    "beside a drill": ({"test_a.py": TWO, "tests/drills/test_b.py": ONE}, 0, 0, [], "0 passed, 2 failed"),
    "pytest is gone": ({"test_a.py": ONE + "def test_ends(): os._exit(1)"}, 0, 0, [], "0 passed, 1 failed"),
    "a worker crashes": (CRASH, 1, 0, [], "0 passed, 2 failed"),
    "not collected by a worker": (UNREADABLE, 1, 0, [], "0 passed, 2 failed"),
})  # fmt: skip
def test_others_fail_the_run(run, project, files, workers, second, flaky, last):
    with_tests(project, files, workers)
    ran = run(f"[[[{PYTEST}]]]")
    assert ran.status == 1
    assert results(ran) == {"test": "failed"}
    assert sum(name.startswith("test-again") and name.endswith(".log") for name in ran.files) == second
    assert [line for line in ran.lines if line.startswith("FLAKY")] == [
        f"FLAKY test_a.py::test_{each}" for each in flaky
    ]
    assert ran.lines[-1] == f"{last}, 0 skipped"
    matches = [re.fullmatch(r"FAILED \S+ of test: .+", line) for line in ran.lines if line.startswith("FAILED")]
    assert (len(matches), all(matches)) == (int(last.split()[-2]), True)
    if ALWAYS in "".join(files.values()):
        assert all(f"AssertionError: {which}" in ran.printed for which in ("the first", "the second"))


def test_three_tests_may_be_flaky_in_all_stages_together(run, project):
    with_tests(project, {"test_a.py": ONE + TWO, "test_b.py": THREE + FOUR})
    project.write({"Makefile": "a b:\n\t@.venv/bin/pytest -n 0 test_$@.py $(ARGS)\n"})
    a, b = (f'Stage("{name}", ["make", "{name}"], 10, pytest=True)' for name in "ab")
    ran = run(f"[[[{a}], [{b}]]]")
    assert ran.status == 1
    assert results(ran) == {"a": "failed", "b": "failed"}
    assert ran.lines[-1] == "0 passed, 4 failed, 0 skipped"


SLOW = """
import time

@pytest.fixture(scope="module", params=[1, 2])
def world(): time.sleep(0.4)

def test_waits(world): time.sleep(0.2)
def test_asks(world): pass
"""


def test_times_are_listed_slowest_first(run, project):
    with_tests(project, {"test_a.py": SLOW})
    ran = run(f"[[[{PYTEST}]]]")
    listed = [row for row in table(ran.files["times.md"].splitlines()) if "test_a." in row[2]]
    assert [float(row[0]) for row in listed] == sorted((float(row[0]) for row in listed), reverse=True)
    assert ["setup of fixture", "test_a.world", "module, 2 in all, the first with test_a.py::test_waits[1]"] in [
        row[1:] for row in listed
    ]
    assert {"setup", "call"} == {row[1] for row in listed if "test_waits[2]" in row[2] and float(row[0]) >= 0.2}
    assert listed[:10] == [row for row in table(ran.lines) if "test_a." in row[2]]


def test_the_stages_of_ci_are_targets_that_take_what_they_are_handed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    stages = importlib.import_module("stages")
    recipes = dict(re.findall(r"^([\w./-]+):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    everything = list(stages_of(stages.ALL))
    commands = [stage.command for stage in everything if stage.command[0] == "make"]
    assert [command for command in commands if command[1] not in {*recipes, "kubernetes-programs"}] == []
    assert all("$(ARGS)" in recipes[stage.command[1]] for stage in everything if stage.pytest)
    assert all((ROOT / folder).is_dir() for folder in stages.NEVER_AGAIN)


def test_a_run_goes_by_no_setting_of_whoever_calls_it(project):
    project.write(
        {".ci/run": (ROOT / ".ci" / "run").read_text(), ".ci/stages.py": "import os; print(sorted(os.environ))"}
    )
    project.environment |= {"VOLCANO_UI_PORT": "1", "MAKEFLAGS": "n"}
    status, printed = project.run("bash", ".ci/run")
    assert status == 0
    assert "'CI'" in printed
    assert "VOLCANO_UI_PORT" not in printed
    assert "MAKEFLAGS" not in printed
