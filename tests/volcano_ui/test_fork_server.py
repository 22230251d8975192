"""Programs that are forks: as if they had been executed, and kept as those are."""

import json
import textwrap

import pytest

from proof.harness.waiting import until
from tests.tables import cases
from tests.volcano_ui.test_supervisor import alive

# What a program has, told by itself.
TELL = """
import ctypes, json, os, sys
from pathlib import Path

said = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(said), 0, 0, 0)  # PR_GET_PDEATHSIG
mask = os.umask(0)
names = {number: os.readlink(f"/proc/self/fd/{number}") for number in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{number}")}
Path(sys.argv[1]).write_text(json.dumps({
    "arguments": sys.argv, "name": __name__, "environment": {k: v for k, v in os.environ.items() if k != "LC_CTYPE"},
    "leads its session": os.getsid(0) == os.getpid(), "leads its group": os.getpgid(0) == os.getpid(),
    "parent": os.getppid(), "signal": said.value, "umask": mask, "folder": os.getcwd(), "input": sys.stdin.read(),
    "line": Path("/proc/self/cmdline").read_bytes().replace(b"\\0", b" ").decode().split(),
    "descriptors": {k: v for k, v in names.items() if not v.startswith("/proc")}, "threads": len(os.listdir("/proc/self/task")),
}))
print("hello", flush=True)
print("trouble", file=sys.stderr, flush=True)
"""
FORKS = "await supervisor.start_fork_server()\n"


@pytest.fixture
def forking(printed):
    """Run programs under a supervisor with a fork server; return what it printed."""
    return lambda body, **programs: printed(FORKS + textwrap.dedent(body), cwd="Path.cwd()", **programs)


def test_a_fork_has_what_an_executed_program_has(forking, tmp_path):
    (pid,) = forking(
        """
        import socket
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        os.set_inheritable(listener.fileno(), False)
        for number, may_fork in enumerate((True, False)):
            await supervisor.start(ours(
                "tell", str(folder / f"told-{number}"), "two words", may_fork=may_fork, umask=0o027, gives_signs=True,
                descriptors=(listener.fileno(),), environment={"OWN": "own"}))
            await until(lambda: says("tell").count("trouble") == number + 1)
            await supervisor.end([each.program for each in supervisor._children.values()])
        print(os.getpid())
        """,
        tell=TELL + "import time; time.sleep(600)",
    )
    forked, executed = (json.loads((tmp_path / f"told-{number}").read_text()) for number in range(2))
    for report in (forked, executed):
        report["arguments"].pop(1), report["line"].pop(2)  # where it is to tell
        # A pipe for signs of life and a socket, whose numbers are the program's; who they are is not the same twice.
        report["descriptors"] = {number: name.partition(":")[0] for number, name in report["descriptors"].items()}
        assert report["descriptors"].pop(report["environment"].pop("VOLCANO_UI_HEARTBEAT")) == "pipe"
    assert forked == executed
    assert forked["parent"] == int(pid)
    assert forked["line"][1:] == [str(tmp_path / "tell.py"), "two", "words"]
    assert (tmp_path / "tell.log").read_text() == "hello\ntrouble\n" * 2


# What a program does, and what is told of its end.
ENDS = {
    "code": ("raise SystemExit(3)", "ended with exit code 3"),
    "exception": ("1 / 0", "ended with exit code 1 (ZeroDivisionError: division by zero)"),
    "signal": ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    "sentence": ("import sys; sys.exit('no port')", "ended with exit code 1 (no port)"),
    "nothing": ("pass", "ended with exit code 0"),
}


def test_an_end_is_told_and_the_program_started_again(forking):
    lines = forking(
        f"""
        for name in {[*ENDS]}:
            await supervisor.start(ours(name))
            await until(lambda: says(name).count("again") >= 2)
        """,
        **{name: text for name, (text, _) in ENDS.items()},
    )
    for name, (_, message) in ENDS.items():
        first, second, *_ = [line for line in lines if line.startswith(f"✗ {name} ")]
        assert first == f"✗ {name} {message}; starting it again in 0.2 s"
        assert second.endswith("starting it again in 0.4 s")


STAYS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def test_a_fork_server_that_is_killed_is_started_again_and_its_programs_go_on(forking, tmp_path):
    lines = forking(
        """
        await supervisor.start(ours("stays"))
        await until(lambda: says("stays"))
        first = supervisor._fork_server.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: supervisor._fork_server.pid is None)
        os.kill(int(says("stays")), 0)
        await supervisor.start(ours("later"))
        await until(lambda: says("later"))
        assert supervisor._fork_server.pid not in (None, first)
        """,
        stays=STAYS,
        later=STAYS,
    )
    assert lines == []
    assert not any(alive(int((tmp_path / f"{name}.log").read_text())) for name in ("stays", "later"))


@cases("trouble, reason", {
    "ended, and nobody has seen it": ("server._channel.shutdown(2)", "[Errno 32] Broken pipe"),
    "stands still": ("os.kill(server.pid, signal.SIGSTOP)", "the fork server did not answer for 0.5 s"),
})  # fmt: skip
def test_what_the_fork_server_does_not_start_is_started_by_itself_and_later_ones_by_another(forking, trouble, reason):
    lines = forking(
        f"""
        from volcano_ui.supervision import forks
        server = supervisor._fork_server
        await supervisor.start(ours("first"))
        await until(lambda: says("first"))
        forks.PATIENCE_S, patience_s, before = 0.5, forks.PATIENCE_S, server.pid
        {trouble}
        await supervisor.start(ours("second"))
        await until(lambda: says("second").rstrip()[-1:].isdigit())
        await until(lambda: server.pid is None)
        forks.PATIENCE_S = patience_s
        await supervisor.start(ours("third"))
        await until(lambda: says("third"))
        assert server.pid not in (None, before)
        """,
        **dict.fromkeys(("first", "second", "third"), STAYS),
    )
    assert lines == [f"✗ second could not be forked ({reason}); starting it by itself"]


def test_a_program_whose_pid_got_lost_does_nothing_and_another_runs_in_its_place(forking, tmp_path):
    lines = forking(
        """
        from volcano_ui.supervision.supervisor import _child_pids
        loop, server = asyncio.get_running_loop(), supervisor._fork_server

        async def lost(channel, size):
            await receive(channel, size)
            return b""

        receive, loop.sock_recv = loop.sock_recv, lost
        await supervisor.start(ours("stays"))
        await until(lambda: says("stays").rstrip().split("\\n")[-1].isdigit())
        while len(_child_pids()) > 2:  # the fork server and the program
            supervisor._reap_orphans()
            await asyncio.sleep(0.01)
        """,
        stays=STAYS,
    )
    assert "✗ stays could not be forked" in lines[0]
    assert len([line for line in (tmp_path / "stays.log").read_text().splitlines() if line.isdigit()]) == 1


@pytest.mark.parametrize("when", ["while it loads", "in the middle of a start"])
def test_nothing_is_left_of_what_was_started_when_all_was_stopped(forking, tmp_path, when):
    forking(
        f"""
        if {when == "in the middle of a start"}:
            await supervisor.start(ours("stays"))
        starting = asyncio.create_task(supervisor.start(ours("stays")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        starting.cancel()
        """,
        stays=STAYS,
    )
    assert not any(alive(int(pid)) for pid in (tmp_path / "stays.log").read_text().split())


@pytest.mark.parametrize("begin", [FORKS, ""], ids=["forks", "by themselves"])
def test_programs_are_killed_with_their_supervisor(run, tmp_path, begin):
    process = run(
        begin
        + textwrap.dedent("""
        await supervisor.start(ours("stays"))
        await until(lambda: says("stays"))
        (folder / "server").write_text(str(getattr(supervisor._fork_server, "pid", "")) or says("stays"))
        await asyncio.sleep(600)
        """),
        cwd="Path.cwd()",
        stays=STAYS,
    )
    files = (tmp_path / "stays.log", tmp_path / "server")
    until(lambda: all(file.exists() and file.read_text() for file in files), what="its programs")
    pids = [int(file.read_text()) for file in files]
    process.kill()
    until(lambda: not any(map(alive, pids)), what="their end")
