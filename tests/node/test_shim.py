"""What a shim promises of the command that it runs, behind whatever wall."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from node.agent import reach, spawn
from node.shim import absent, control_socket, linux, tree
from node.shim.order import Bind
from proof.escapes.attempts import layers
from proof.harness.waiting import until
from tests.node.driving import ran
from tests.tables import cases

WALLS = ("no wall", "every layer", "a user namespace")
PYTHON = (sys.executable, "-c")
READY = "echo ready; while :; do sleep 0.01; done"


@pytest.fixture(params=WALLS)
def attempts(request, attempts):
    """Attempts behind walls of this machine: what a shim does to processes must not depend on them."""
    if request.param == "no wall":
        return attempts
    found = attempts.spawner.probe(attempts.root / "probe")
    if request.param == "a user namespace":
        if found.mounts != "root":
            pytest.skip("it is among the layers")
        found = found._replace(mounts="user")
    read = (*reach.of_this_machine(attempts.root), sys.prefix)
    attempts.layers = {**layers(found), "read": read, "binds": (Bind(str(attempts.root), str(attempts.root)),)}
    return attempts


# What is said and written is the same behind each of them.
behind_no_wall = pytest.mark.parametrize("attempts", ["no wall"], indirect=True)
behind_all = pytest.mark.parametrize("attempts", ["every layer"], indirect=True)


class TestStopping:
    def ready(self, attempts, trap):
        directory = attempts.shell(f"trap {trap} TERM; {READY}")
        until(lambda: b"ready" in attempts.log(directory))
        return directory

    def test_sigterm_comes_first_to_the_whole_group_and_to_who_is_stopped(self, attempts):
        directory, group = self.ready(attempts, "'echo bye; exit 4'"), attempts.shell("sleep 60; echo not reached")
        stopped = attempts.shell("trap 'exit 9' TERM; kill -STOP $$; sleep 60")
        pid = attempts.started(stopped)["pid"]
        until(lambda: "T (stopped)" in Path(f"/proc/{pid}/status").read_text())
        for each, code in ((directory, 4), (group, 143), (stopped, 9)):
            attempts.stop(each)
            assert attempts.end(each)["exitCode"] == code
        assert json.loads((directory / "status.json").read_text())["stopped"] == "Deleted"
        assert attempts.output(directory) == b"ready\nbye\n"

    @cases("graces", {"after the grace": [0.4], "sooner by a second request": [600, 0.4]})
    def test_who_ignores_sigterm_is_killed(self, attempts, graces):
        directory = self.ready(attempts, "''")
        begin = time.monotonic()
        for grace in graces:
            attempts.stop(directory, grace=grace)
        status = attempts.end(directory)
        assert (status["exitCode"], status["signal"]) == (137, 9)
        assert time.monotonic() - begin > 0.35

    def test_daemons_do_not_escape(self, attempts):
        daemon = "(setsid sh -c 'trap \"\" TERM HUP; touch daemon; while :; do sleep 0.01; done' &) "
        directory = attempts.shell(f"{daemon}; until [ -e go ]; do sleep 0.01; done; exit 2")
        until((attempts.root / "work" / "daemon").exists)
        before = {pid: linux.start_ticks(pid) for pid in tree.below(attempts.shim(directory))}
        (attempts.root / "work" / "go").touch()
        assert attempts.end(directory)["exitCode"] == 2
        assert [pid for pid, ticks in before.items() if ticks and linux.start_ticks(pid) == ticks] == []


class TestLimits:
    def test_memory(self, attempts):
        script = "import time; data = []\nwhile True: data.append(bytearray(4 << 20)); time.sleep(0.01)"
        status, _ = ran(attempts, *PYTHON, script, memory_bytes=64 << 20)
        assert (status["exitCode"], status["reason"]) == (137, "OOMKilled")
        assert "its limit is 67108864" in status["message"]

    @cases("closed", {"mapped": "", "never mapped": "m.close();"})
    def test_files_in_memory_without_a_name_count(self, attempts, closed):
        script = (
            "import mmap, os, time; fd = os.memfd_create('x'); os.truncate(fd, 60 << 20);"
            f"m = mmap.mmap(fd, 60 << 20); m.write(b'x' * (60 << 20)); {closed} time.sleep(600)"
        )
        assert ran(attempts, "python3", "-c", script, memory_bytes=32 << 20)[0]["reason"] == "OOMKilled"

    @behind_all
    def test_memory_shared_by_forked_processes_counts_once(self, attempts):
        script = "import os, time; data = bytearray(48 << 20)\nfor _ in range(3): os.fork()\ntime.sleep(1.2)"
        assert ran(attempts, *PYTHON, script, memory_bytes=160 << 20)[0]["reason"] == "Completed"

    def test_fork_bomb_is_ended_whole(self, attempts):
        status, _ = ran(attempts, "while :; do sleep 60 & done", processes=200)
        assert status["reason"] in ("ProcessLimitExceeded", "Error")
        assert status["exitCode"] != 0

    def test_processors_and_open_files(self, attempts):
        script = "python3 -c 'import os; print(len(os.sched_getaffinity(0)))'; ulimit -n; ulimit -c"
        assert ran(attempts, script, cpus=1, files=123)[1] == b"1\n123\n0\n"


@behind_no_wall
class TestOutput:
    def test_binary_stays_binary_and_long_lines_are_split(self, attempts):
        script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 300 + b'x' * 50_000)"
        directory = attempts.start(*PYTHON, script)
        attempts.end(directory)
        assert attempts.output(directory) == bytes(range(256)) * 300 + b"x" * 50_000
        assert max(map(len, attempts.log(directory).split(b"\n"))) < 17_000

    def test_output_appears_while_the_command_lives_and_is_complete_with_both_streams_told_apart(self, attempts):
        directory = attempts.shell("seq 20000; echo err >&2; printf 50%%; sleep 60")
        wanted = "".join(f"{n}\n" for n in range(1, 20001)).encode() + b"50%"
        until(lambda: attempts.output(directory) == wanted)
        assert attempts.output(directory, "stderr") == b"err\n"
        directory = attempts.shell("seq 20000; exit 1")
        attempts.end(directory)
        assert attempts.output(directory) == wanted[:-3]

    def test_flood_keeps_the_newest(self, attempts):
        directory = attempts.shell("seq 400000", segment_bytes=1 << 20, segments=3)
        assert attempts.end(directory)["exitCode"] == 0
        assert attempts.output(directory).endswith(b"\n400000\n")
        files = sorted(directory.glob("log.*"))
        assert (len(files), all(file.stat().st_size < 8 << 20 for file in files)) == (3, True)


class TestCommands:
    def test_end_of_a_command_is_recorded(self, attempts):
        for script, *expected in (
            ("exit 0", 0, 0, "Completed"), ("exit 3", 3, 0, "Error"), ("exec /nonexistent", 127, 0, "Error"),
            ("kill -9 $$", 137, 9, "Error"), ("kill -11 $$", 139, 11, "Error"),
        ):  # fmt: skip
            status, _ = ran(attempts, script)
            assert [status["exitCode"], status["signal"], status["reason"]] == expected, script
            assert status["startedAt"] <= status["finishedAt"] <= time.time() * 1e6

    @behind_all
    @cases("argv, message", {
        "not in PATH": (["nosuch"], 'exec: "nosuch": executable file not found in $PATH'),
        "no such file": (["/nosuch"], 'exec: "/nosuch": no such file or directory'),
        "not executable": (["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
        "a name that no file can have": (["a\0b"], "embedded null"),
        "a name that cannot be encoded": (["\ud800"], "surrogates"),
        "one that a plugin needs": (["/nosuch/mpirun"], "or install Debian's openmpi-bin on node n1, "),
        "no directory": ([], 'work" cannot be entered: no such file or directory.'),
    })  # fmt: skip
    def test_command_that_cannot_start_is_a_start_error(self, attempts, argv, message):
        directory = attempts.directory()
        if not argv:
            shutil.rmtree(attempts.root / "work")
        status = attempts.end(attempts.start(*(argv or ["true"]), directory=directory, node="n1"))
        assert (status["exitCode"], status["reason"]) == (128, "StartError")
        assert message in status["message"]

    @behind_no_wall
    def test_program_that_a_shell_does_not_find_is_said(self, attempts):
        for script, message in (
            ("nosuch; echo >&2; echo bye >&2; exit 127", r"sh: .*nosuch: .*; give another command, .* on node n1, .*"),
            ("echo x: not found; exit 127", ""), ("nosuch; exit 0", ""),
        ):  # fmt: skip
            assert re.fullmatch(message, ran(attempts, script, node="n1")[0]["message"])

    @cases("code, words, package", {
        "dash": (127, "sh: 1: ray: not found", "the Python package ray[default]"),
        "bash": (127, "bash: line 1: mpirun: command not found", "Debian's openmpi-bin"),
        "env": (127, "env: ‘ssh’: No such file or directory", "Debian's openssh-client"),
        "by its path": (127, "sh: 1: /usr/sbin/sshd: not found", "Debian's openssh-server"),
        "another program's words": (127, "ls: cannot access 'ssh x': No such file or directory", "it"),
        "another exit code": (1, "x: not found", ""),
        "silent": (127, "", ""),
    })  # fmt: skip
    def test_program_that_a_plugin_needs_is_said_with_its_package(self, code, words, package):
        said = absent.by_a_shell(code, words.encode(), "n1")
        wanted = f"{words}; give another command, or install {package} on node n1, "
        assert said.startswith(wanted) if package else said == ""

    def test_attempt_runs_at_most_once_and_may_be_asked_at_once_for_another_command(self, attempts):
        directory = attempts.shell("echo ran >> ran; sleep 60")
        assert attempts.said == "started\n"
        assert (directory / control_socket.NAME).exists()
        started = attempts.started(directory)
        assert linux.start_ticks(started["pid"]) == started["ticks"]
        for stops in (False, False, True):
            attempts.shell("echo ran >> ran", directory=directory)
            assert attempts.said.startswith("refused")
            if stops:
                attempts.stop(directory, grace=0)
                attempts.end(directory)
        attempts.shell("echo ran >> ran", directory=directory)
        assert attempts.said.startswith("refused")
        assert (attempts.root / "work" / "ran").read_text() == "ran\n"

    @behind_no_wall
    def test_command_outlives_the_spawner_which_is_replaced(self, attempts):
        directory = attempts.shell("until [ -e go ]; do sleep 0.01; done; exit 7")
        os.kill(attempts.spawner._process.pid, signal.SIGKILL)
        assert ran(attempts, "exit 5")[0]["exitCode"] == 5
        attempts.spawner.close()
        (attempts.root / "work" / "go").touch()
        assert attempts.end(directory)["exitCode"] == 7

    def test_command_does_not_outlive_its_shim(self, attempts):
        directory = attempts.start("sleep", "60")
        pid = attempts.started(directory)["pid"]
        attempts.kill_shim(directory)
        attempts.until_gone(pid)
        assert not (directory / "status.json").exists()

    def test_environment_descriptors_and_signals_are_clean(self, attempts):
        script = "import os; print(sorted(os.environ)); print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
        _, output = ran(attempts, sys.executable, "-I", "-c", script, env={"A": "1", "LC_ALL": "C.UTF-8"})
        assert output == b"['A', 'LC_ALL', 'PATH']\n[0, 1, 2]\n"
        _, output = ran(attempts, "grep -E 'Sig(Blk|Ign)' /proc/self/status")
        blocked, ignored = (int(line.split()[1], 16) for line in output.splitlines())
        # Not all bits: two signals are the C library's own. No program can set them, and
        # who is started by posix_spawn, as by make, inherits them ignored.
        assert [number for number in signal.valid_signals() if (blocked | ignored) >> (number - 1) & 1] == []

    def test_shim_shares_its_memory_and_holds_no_secret(self, attempts, monkeypatch):
        monkeypatch.setenv("VOLCANO_UI_SECRET_KEY", "hush")
        pid = attempts.shim(attempts.start("sleep", "60"))
        assert b"hush" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert tree.proportional_bytes([pid]) < 6 * 2**20

    def test_spawner_carries_little(self):
        """Its image is forked four times for each container behind a whole wall, so each of them pays for a module.

        `random` even does work in every forked process; `dataclasses` brings Python's parser and disassembler along.
        """
        program = "import sys; sys.path.insert(0, sys.argv[1]); import node.shim.spawner; print(*sys.modules)"
        command = [sys.executable, "-I", "-S", "-c", program, str(spawn.ROOT)]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        heavy = {"dataclasses", "inspect", "random", "pathlib", "traceback", "logging", "subprocess", "asyncio"}
        assert heavy.isdisjoint(said.stdout.split())
