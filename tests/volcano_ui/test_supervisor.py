"""The supervisor over small programs, in a process of its own: it adopts and kills what is left."""

import os
import signal

import pytest

from proof.harness.waiting import HANG_S, until
from tests.tables import cases
from volcano_ui.heartbeat import Pulse


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_programs_are_started_again_have_their_own_surroundings_and_leave_nothing_behind(printed, tmp_path):
    lines = printed("""
        await supervisor.start(sh("short", "echo it broke; exit 3"))
        await supervisor.start(sh("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done", patience_s=0.3))
        await supervisor.start(sh("parent", "setsid sh -c 'echo $$ > child; sleep 600' & sleep 600"))
        await supervisor.start(sh("own", "echo $SHARED $OWN; sleep 60", environment={"OWN": "own"}))
        await supervisor.start(sh("other", "echo $SHARED $OWN; sleep 60"))
        call = asyncio.create_task(supervisor.call("sh", "-c", "sleep 600 & echo $! > inner; wait"))
        await until(lambda: says("short").count("again") >= 3)
        await until(lambda: all([says("deaf"), says("own"), says("other"), text("child"), text("inner")]))
        call.cancel()
    """)
    message = "✗ short ended with exit code 3 (it broke); starting it again in"
    assert [line for line in lines if "short" in line][:3] == [f"{message} {wait} s" for wait in ("0.2", "0.4", "0.8")]
    assert [line for line in lines if "short" not in line] == ["✗ deaf did not stop within 0.3 s; killed"]
    assert [(tmp_path / f"{name}.log").read_text() for name in ("own", "other")] == ["shared own\n", "shared\n"]
    assert not any(alive(int((tmp_path / name).read_text())) for name in ("child", "inner"))


def test_without_a_folder_programs_write_where_the_supervisor_does(printed, tmp_path):
    lines = printed(
        """
        await supervisor.start(sh("short", "echo $VOLCANO_UI_PROGRAM says so; [ -e once ] && touch twice; touch once; exit 3"))
        await until(lambda: (folder / "twice").exists())
        """,
        logs=None,
    )
    assert lines[:2] == ["short says so", "✗ short ended with exit code 3; starting it again in 0.2 s"]
    assert not list(tmp_path.glob("*.log"))


def test_stages_end_one_after_the_other_and_some_may_end_and_start_again_while_others_go_on(printed, tmp_path):
    lines = printed("""
        mark = "trap 'echo {} >> order; exit' TERM; echo up; while :; do sleep 0.05; done"
        stages = {"third": 2, "first": 0, "other": 0, "second": 1}
        named = {name: sh(name, mark.replace("{}", name), stage=stage) for name, stage in stages.items()}
        for program in named.values():
            await supervisor.start(program)
        await until(lambda: all(map(says, named)))
        await supervisor.end([named["first"], named["second"]])
        print(text("order").split(), flush=True)
        for name in ("first", "second"):
            await supervisor.start(named[name])
        await until(lambda: [len(says(name).split()) for name in named] == [1, 2, 1, 2])
    """)
    assert lines == ["['first', 'second']"]
    *together, second, third = (tmp_path / "order").read_text().split()[2:]
    assert (sorted(together), second, third) == (["first", "other"], "second", "third")


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


def test_a_program_that_has_not_answered_yet_is_asked_again_soon(printed):
    lines = printed("""
        from volcano_ui.supervision import supervisor as module
        module.LOOK_S, module.SILENT_S, module.ASK_EVERY_S = 0.05, 0.3, 600
        asked = []

        def ask():
            asked.append(None)
            if len(asked) != 2:
                raise OSError

        await supervisor.start(sh("deaf", "exec sleep 600", probe=ask))
        await until(lambda: "sign of life" in says("deaf"))
    """)
    assert lines[0].startswith("✗ deaf gave no sign of life")


def test_threads_that_end_meanwhile_keep_nobody_from_reading_who_is_left(printed):
    """The end of `up` met one that had just waited for a program, and left the rest as it was."""
    lines = printed("""
        import threading
        from volcano_ui.supervision import supervisor as module

        def churn():
            while True:  # threads that end, as those do in which asyncio waits for programs
                thread = threading.Thread(target=lambda: None)
                thread.start()
                thread.join()

        child = await asyncio.create_subprocess_exec("sleep", "600", stdout=-3)
        threading.Thread(target=churn, daemon=True).start()
        met = 0
        while met < 12:
            assert child.pid in module._child_pids()
            try:
                [file.read_text() for file in Path("/proc/self/task").glob("*/children")]
            except (FileNotFoundError, ProcessLookupError):
                met += 1
        child.kill()
        print("read", flush=True)
        os._exit(0)
    """)
    assert lines == ["read"]


@cases("looks, silent", {
    "not yet": ([(0, True), *((at, False) for at in range(1, 21))], False),
    "for too long": ([(0, True), *((at, False) for at in range(1, 22))], True),
    "now and then": ([(at, at % 20 == 0) for at in range(100)], False),
    "never heard: it is starting": ([(at, False) for at in range(100)], False),
    "the machine slept": ([(0, True), (1, False), (3600, False), (3601, True)], False),
    "it sleeps again and again": ([(0, True), *((60 * at, False) for at in range(1, 9))], False),
    "and did not wake": ([(0, True), (3600, False), *((3600 + at, False) for at in range(1, 21))], True),
})  # fmt: skip
def test_silence_counts_only_while_somebody_listens(looks, silent):
    pulse = Pulse(1.0, 20.0)
    assert [pulse.look(now, has_beat=has_beat) for now, has_beat in looks][-1] is silent


BEATS = """
import os, sys, time
sys.path.insert(0, os.getcwd())
from volcano_ui import heartbeat
heartbeat.EVERY_S = 0.05
heartbeat.from_a_thread()
print('up', flush=True)
time.sleep(600)
"""


def test_a_program_that_stands_still_is_killed_and_started_again(run):
    process = run(
        """
        from volcano_ui.supervision import supervisor as module
        module.LOOK_S, module.SILENT_S, module.ASK_EVERY_S = 0.05, 3.0, 0.05
        for name in ("still", "well"):
            await supervisor.start(ours(name, may_fork=False, gives_signs=True))
            await until(lambda: "up" in says(name))
        print(supervisor._children["still"].pid, flush=True)
        await until(lambda: says("still").count("up\\n") == 2)
        await supervisor.stop()
        print(says("well").count("up"), flush=True)
        """,
        cwd="Path.cwd()",
        still=BEATS,
        well=BEATS,
    )
    os.kill(int(process.stdout.readline()), signal.SIGSTOP)
    assert process.communicate(timeout=HANG_S)[0].splitlines() == [
        "✗ still gave no sign of life for 3 s; killing it",
        "✗ still was killed by SIGKILL; starting it again in 0.2 s",
        "1",
    ]
