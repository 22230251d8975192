"""The supervisor over small shell programs, in a process of its own: it adopts and kills what is left."""

from __future__ import annotations

import os
import signal

import pytest

from proof.harness.waiting import HANG_S, until


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_restarts_wait_longer_each_time_and_say_the_last_line(run):
    process = run("""
        await supervisor.start(sh("short", "echo it broke; exit 3"))
        await until(lambda: says("short").count("again") >= 3)
        await supervisor.stop()
    """)
    lines = process.communicate(timeout=HANG_S)[0].splitlines()
    told = "✗ short ended with exit code 3 (it broke); starting it again in"
    assert lines[:3] == [f"{told} {wait} s" for wait in ("0.2", "0.4", "0.8")]


def test_without_a_folder_programs_write_where_the_supervisor_does(run, tmp_path):
    process = run(
        """
        await supervisor.start(sh("short", "echo $VOLCANO_UI_PROGRAM says so; [ -e once ] && touch twice; touch once; exit 3"))
        await until(lambda: (folder / "twice").exists())
        await supervisor.stop()
    """,
        logs=None,
    )
    lines = process.communicate(timeout=HANG_S)[0].splitlines()
    assert lines[:2] == ["short says so", "✗ short ended with exit code 3; starting it again in 0.2 s"]
    assert not list(tmp_path.glob("*.log"))


MARKS = """
        mark = "trap 'echo {} >> order; exit' TERM; echo up; while :; do sleep 0.05; done"
        stages = {"third": 2, "first": 0, "other": 0, "second": 1}
        named = {name: sh(name, mark.replace("{}", name), stage=stage) for name, stage in stages.items()}
        for program in named.values():
            await supervisor.start(program)
        await until(lambda: all(map(says, named)))
"""


def test_stages_end_one_after_the_other_and_some_may_end_and_start_again_while_others_go_on(run, tmp_path):
    process = run(f"""{MARKS}
        await supervisor.end([named["first"], named["second"]])
        print(text("order").split(), flush=True)
        for name in ("first", "second"):
            await supervisor.start(named[name])
        await until(lambda: [len(says(name).split()) for name in named] == [1, 2, 1, 2])
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0].splitlines() == ["['first', 'second']"]
    *together, second, third = (tmp_path / "order").read_text().split()[2:]
    assert (sorted(together), second, third) == (["first", "other"], "second", "third")


def test_program_that_ignores_the_signal_is_killed_after_its_patience(run):
    process = run("""
        await supervisor.start(sh("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done", patience_s=0.3))
        await until(lambda: says("deaf"))
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0] == "✗ deaf did not stop within 0.3 s; killed\n"


def test_what_a_program_left_in_another_session_is_killed_at_the_end(run, tmp_path):
    run("""
        await supervisor.start(sh("parent", "setsid sh -c 'echo $$ > child; sleep 600' & sleep 600"))
        await until(lambda: text("child"))
        await supervisor.stop()
    """).wait(HANG_S)
    assert not alive(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("when", ["at once", "long ago"])
def test_number_of_a_program_that_has_ended_is_left_alone(run, tmp_path, when):
    run(f"""
        kill = os.killpg
        def counted(group, number):
            (folder / "killed").open("a").write(f"{{group}} ")
            kill(group, number)
        os.killpg = counted
        await supervisor.start(sh("short", "exit 3"))
        await until(lambda: says("short"))  # that it is started again later
        {"await supervisor.stop()" if when == "long ago" else ""}
    """).wait(HANG_S)
    assert not (tmp_path / "killed").exists()


def test_group_of_a_program_that_has_ended_is_killed(run, tmp_path):
    run("""
        await supervisor.start(sh("parent", "sleep 600 & echo $! > child; exit 3"))
        await until(lambda: says("parent"))
        os._exit(0)
    """).wait(HANG_S)
    until(lambda: not alive(int((tmp_path / "child").read_text())), what="its end")


def test_killed_supervisor_sends_each_program_its_signal(run, tmp_path):
    process = run("""
        await supervisor.start(sh("soft", "trap 'echo bye > said; exit' TERM; echo $$ > soft; while :; do sleep 0.05; done",
                                  orphaned=signal.SIGTERM))
        await supervisor.start(sh("hard", "echo $$ > hard; exec sleep 600"))
        await asyncio.sleep(600)
    """)
    files = [tmp_path / "soft", tmp_path / "hard"]
    pids = [int(until(lambda file=file: file.exists() and file.read_text())) for file in files]
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
        await until(lambda: "sign of life" in says("deaf"))
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0].startswith("✗ deaf gave no sign of life")


def test_cancelled_call_takes_its_group_along(run, tmp_path):
    run("""
        call = asyncio.create_task(supervisor.call("sh", "-c", "sleep 600 & echo $! > inner; wait"))
        await until(lambda: text("inner"))
        call.cancel()
        await supervisor.stop()
    """).wait(HANG_S)
    assert not alive(int((tmp_path / "inner").read_text()))


def test_threads_that_end_meanwhile_keep_nobody_from_reading_who_is_left(run):
    """The end of `up` met one that had just waited for a program, and left the rest as it was."""
    process = run("""
        import threading
        from volcano_ui import supervisor

        def churn():
            while True:  # threads that end, as those do in which asyncio waits for programs
                thread = threading.Thread(target=lambda: None)
                thread.start()
                thread.join()

        child = await asyncio.create_subprocess_exec("sleep", "600", stdout=-3)
        threading.Thread(target=churn, daemon=True).start()
        met = 0
        while met < 12:
            assert child.pid in supervisor._own_children()
            try:
                [file.read_text() for file in Path("/proc/self/task").glob("*/children")]
            except (FileNotFoundError, ProcessLookupError):
                met += 1
        child.kill()
        print("read", flush=True)
        os._exit(0)
    """)
    assert process.communicate(timeout=HANG_S)[0] == "read\n"


def test_a_program_has_an_environment_of_its_own_beside_the_supervisors(run):
    process = run("""
        os.environ["SHARED"] = "shared"
        supervisor = Supervisor(logs=folder, cwd=folder, environment=dict(os.environ), say=print)
        await supervisor.start(sh("told", "echo $SHARED $OWN; sleep 60", environment={"OWN": "own"}))
        await supervisor.start(sh("other", "echo $SHARED $OWN; sleep 60"))
        await until(lambda: says("told") and says("other"))
        print(says("told") + says("other"), flush=True)
        await supervisor.stop()
    """)
    assert process.communicate(timeout=HANG_S)[0].split() == ["shared", "own", "shared"]
