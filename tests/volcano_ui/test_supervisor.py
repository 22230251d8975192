"""The supervisor over small shell programs, in a process of its own: it adopts and kills what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from django.conf import settings

from proof.harness.waiting import HANG_S, until

HARNESS = """
import asyncio, os, sys
from pathlib import Path
from volcano_ui.supervisor import Program, Supervisor

def sh(name, script, **options):
    return Program(name, ["sh", "-c", script], **options)

async def main(folder):
    supervisor = Supervisor(logs={logs}, cwd=folder, environment=dict(os.environ), say=lambda line: print(line, flush=True))
{body}

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def run(tmp_path):
    """Run a harness whose body is given; return the process."""
    processes = []

    def begin(body, logs="folder"):
        code = HARNESS.format(logs=logs, body=textwrap.indent(textwrap.dedent(body), "    "))
        command = [sys.executable, "-c", code, str(tmp_path)]
        processes.append(subprocess.Popen(command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_restarts_wait_longer_each_time_and_say_the_last_line(run):
    process = run("""
        await supervisor.start(sh("short", "echo it broke; exit 3"))
        while (folder / "short.log").read_text().count("again") < 3:
            await asyncio.sleep(0.01)
        await supervisor.stop()
    """)
    lines = process.communicate(timeout=HANG_S)[0].splitlines()
    told = "✗ short ended with exit code 3 (it broke); starting it again in"
    assert lines[:3] == [f"{told} {wait} s" for wait in ("0.2", "0.4", "0.8")]


def test_without_a_folder_programs_write_where_the_supervisor_does(run, tmp_path):
    process = run(
        """
        await supervisor.start(sh("short", "echo $VOLCANO_UI_PROGRAM says so; [ -e once ] && touch twice; touch once; exit 3"))
        while not (folder / "twice").exists():
            await asyncio.sleep(0.01)
        await supervisor.stop()
    """,
        logs=None,
    )
    lines = process.communicate(timeout=HANG_S)[0].splitlines()
    assert lines[:2] == ["short says so", "✗ short ended with exit code 3; starting it again in 0.2 s"]
    assert not list(tmp_path.glob("*.log"))


def test_some_are_ended_in_their_stages_while_others_go_on_and_all_may_be_started_again(run, tmp_path):
    process = run("""
        mark = "trap 'echo {} >> order; exit' TERM; echo up; while :; do sleep 0.05; done"
        second, first, other = (
            sh(name, mark.replace("{}", name), stage=stage) for name, stage in (("second", 1), ("first", 0), ("other", 0))
        )
        async def up(times):
            while [len((folder / f"{name}.log").read_text().split()) for name in ("first", "second", "other")] != times:
                await asyncio.sleep(0.05)
        for program in (second, first, other):
            await supervisor.start(program)
        await up([1, 1, 1])
        await supervisor.end([first, second])
        print((folder / "order").read_text().split(), flush=True)
        for program in (first, second):
            await supervisor.start(program)
        await up([2, 2, 1])
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0].splitlines() == ["['first', 'second']"]
    *together, last = (tmp_path / "order").read_text().split()[2:]
    assert (sorted(together), last) == (["first", "other"], "second")


def test_later_stages_outlive_earlier_ones(run, tmp_path):
    run("""
        mark = "trap 'echo {} >> order; exit' TERM; echo up; while :; do sleep 0.05; done"
        for name, stage in (("third", 2), ("first", 0), ("second", 1)):
            await supervisor.start(sh(name, mark.replace("{}", name), stage=stage))
        while not all((folder / f"{name}.log").read_text() for name in ("first", "second", "third")):
            await asyncio.sleep(0.05)
        await supervisor.stop()
    """).wait(HANG_S)
    assert (tmp_path / "order").read_text().split() == ["first", "second", "third"]


def test_program_that_ignores_the_signal_is_killed_after_its_patience(run):
    process = run("""
        await supervisor.start(sh("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done", patience_s=0.3))
        while not (folder / "deaf.log").read_text():
            await asyncio.sleep(0.05)
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0] == "✗ deaf did not stop within 0.3 s; killed\n"


def test_what_a_program_left_in_another_session_is_killed_at_the_end(run, tmp_path):
    run("""
        await supervisor.start(sh("parent", "setsid sh -c 'echo $$ > child; sleep 600' & sleep 600"))
        while not (folder / "child").exists() or not (folder / "child").read_text():
            await asyncio.sleep(0.05)
        await supervisor.stop()
    """).wait(HANG_S)
    assert not alive(int((tmp_path / "child").read_text()))


COUNTED = """
    kill = os.killpg
    def counted(group, number):
        (folder / "killed").open("a").write(f"{group} ")
        kill(group, number)
    os.killpg = counted
"""


@pytest.mark.parametrize("when", ["at once", "long ago"])
def test_number_of_a_program_that_has_ended_is_left_alone(run, tmp_path, when):
    run(f"""
        {COUNTED.strip()}
        await supervisor.start(sh("short", "exit 3"))
        while (folder / "short.log").stat().st_size == 0:  # that it is started again later
            await asyncio.sleep(0.01)
        {"await supervisor.stop()" if when == "long ago" else ""}
    """).wait(HANG_S)
    assert not (tmp_path / "killed").exists()


def test_group_of_a_program_that_has_ended_is_killed(run, tmp_path):
    run("""
        await supervisor.start(sh("parent", "sleep 600 & echo $! > child; exit 3"))
        while not (folder / "parent.log").stat().st_size:
            await asyncio.sleep(0.01)
        os._exit(0)
    """).wait(HANG_S)
    until(lambda: not alive(int((tmp_path / "child").read_text())), what="its end")


def test_killed_supervisor_sends_each_program_its_signal(run, tmp_path):
    process = run("""
        await supervisor.start(sh("soft", "trap 'echo bye > said; exit' TERM; echo $$ > soft; while :; do sleep 0.05; done",
                                  orphaned=__import__("signal").SIGTERM))
        await supervisor.start(sh("hard", "echo $$ > hard; exec sleep 600"))
        await asyncio.sleep(600)
    """)
    pids = [int(until(lambda name=name: (tmp_path / name).exists() and (tmp_path / name).read_text())) for name in ("soft", "hard")]  # fmt: skip
    process.send_signal(signal.SIGKILL)
    until(lambda: (tmp_path / "said").exists() and not any(map(alive, pids)), what="their end")


def test_a_program_that_has_not_answered_yet_is_asked_again_soon(run):
    process = run("""
        from volcano_ui import supervisor as module
        module.LOOK_S, module.SILENT_S, module.ASK_EVERY_S = 0.05, 0.3, 600
        asked = []

        def ask():
            asked.append(None)
            if len(asked) != 2:
                raise OSError

        await supervisor.start(sh("deaf", "exec sleep 600", ask=ask))
        while "sign of life" not in (folder / "deaf.log").read_text():
            await asyncio.sleep(0.01)
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0].startswith("✗ deaf gave no sign of life")


def test_cancelled_call_takes_its_group_along(run, tmp_path):
    run("""
        call = asyncio.create_task(supervisor.call("sh", "-c", "sleep 600 & echo $! > inner; wait"))
        while not (folder / "inner").exists() or not (folder / "inner").read_text():
            await asyncio.sleep(0.05)
        call.cancel()
        await supervisor.stop()
    """).wait(HANG_S)
    assert not alive(int((tmp_path / "inner").read_text()))


READING = """
    import threading
    from volcano_ui import supervisor

    def churn():
        while True:  # threads that end, as those do in which asyncio waits for programs
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()

    def plain():
        return [file.read_text() for file in Path("/proc/self/task").glob("*/children")]

    child = await asyncio.create_subprocess_exec("sleep", "600", stdout=-3)
    threading.Thread(target=churn, daemon=True).start()
    met = 0
    while met < 12:
        assert child.pid in supervisor._own_children()
        try:
            plain()
        except (FileNotFoundError, ProcessLookupError):
            met += 1
    child.kill()
    print("read", flush=True)
    os._exit(0)
"""


def test_threads_that_end_meanwhile_keep_nobody_from_reading_who_is_left(run):
    """The end of `up` met one that had just waited for a program, and left the rest as it was."""
    assert run(READING).communicate(timeout=HANG_S)[0] == "read\n"


def test_a_program_has_an_environment_of_its_own_beside_the_supervisors(run):
    process = run("""
        os.environ["SHARED"] = "shared"
        supervisor = Supervisor(logs=folder, cwd=folder, environment=dict(os.environ), say=print)
        await supervisor.start(sh("told", "echo $SHARED $OWN; sleep 60", environment={"OWN": "own"}))
        await supervisor.start(sh("other", "echo $SHARED $OWN; sleep 60"))
        while not all((folder / name).read_text() for name in ("told.log", "other.log")):
            await asyncio.sleep(0.01)
        print((folder / "told.log").read_text() + (folder / "other.log").read_text(), flush=True)
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0].split() == ["shared", "own", "shared"]
