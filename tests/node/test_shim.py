"""What a shim promises of the command that it runs, behind whatever wall, and its filter of system calls."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.containers import spawn
from node.shim import absent, control_socket, linux, tree
from node.shim.isolation import seccomp
from proof.harness.waiting import until
from tests.node.driving import behind_all, ran
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
    behind_all(attempts, found)
    return attempts


# What is said and written is the same behind each of them.
behind_no_wall = pytest.mark.parametrize("attempts", ["no wall"], indirect=True)
whole_wall = pytest.mark.parametrize("attempts", ["every layer"], indirect=True)


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

    @whole_wall
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
    def test_output_appears_while_the_command_lives_and_is_complete_with_both_streams_told_apart(self, attempts):
        directory = attempts.shell("seq 20000; echo err >&2; printf 50%%; sleep 60")
        wanted = "".join(f"{n}\n" for n in range(1, 20001)).encode() + b"50%"
        until(lambda: attempts.output(directory) == wanted)
        assert attempts.output(directory, "stderr") == b"err\n"
        directory = attempts.shell("seq 20000; exit 1")
        attempts.end(directory)
        assert attempts.output(directory) == wanted[:-3]


class TestCommands:
    def test_end_of_a_command_is_recorded(self, attempts):
        for script, *expected in (
            ("exit 0", 0, 0, "Completed"), ("exit 3", 3, 0, "Error"), ("exec /nonexistent", 127, 0, "Error"),
            ("kill -9 $$", 137, 9, "Error"), ("kill -11 $$", 139, 11, "Error"),
        ):  # fmt: skip
            status, _ = ran(attempts, script)
            assert [status["exitCode"], status["signal"], status["reason"]] == expected, script
            assert status["startedAt"] <= status["finishedAt"] <= time.time() * 1e6

    @whole_wall
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
        message = absent.shell_message(code, words.encode(), "n1")
        wanted = f"{words}; give another command, or install {package} on node n1, "
        assert message.startswith(wanted) if package else message == ""

    def test_attempt_runs_at_most_once_and_may_be_asked_at_once_for_another_command(self, attempts):
        directory = attempts.shell("echo ran >> ran; sleep 60")
        assert attempts.reply == "started\n"
        assert (directory / control_socket.NAME).exists()
        started = attempts.started(directory)
        assert linux.start_ticks(started["pid"]) == started["ticks"]
        for stops in (False, False, True):
            attempts.shell("echo ran >> ran", directory=directory)
            assert attempts.reply.startswith("refused")
            if stops:
                attempts.stop(directory, grace=0)
                attempts.end(directory)
        attempts.shell("echo ran >> ran", directory=directory)
        assert attempts.reply.startswith("refused")
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
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        heavy = {"dataclasses", "inspect", "random", "pathlib", "traceback", "logging", "subprocess", "asyncio"}
        assert heavy.isdisjoint(result.stdout.split())


ALLOW, EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT = (0x7FFF0000, 0x00050001, 0x00050026, 0x00050061, 0x0005005D)
NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
NETLINK = (socket.AF_NETLINK, socket.SOCK_RAW)
FORK, THREAD = 17, 0x3D0F00  # the flags of fork() and of pthread_create()


def answer(code, audit, number, *arguments):
    given = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    seen = struct.pack("=IIQ6Q", number, audit, 0, *(each & (2**64 - 1) for each in given))
    lines = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at, loaded = 0, 0
    while True:
        operation, then, otherwise, value = lines[at]
        at += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            (loaded,) = struct.unpack_from("=I", seen, value)
        else:
            passed = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[operation]
            at += then if passed else otherwise


ARGUMENTS = st.integers(0, 64) | st.sampled_from((*NAMESPACES, FORK, THREAD, 0x80, 0x5412, 0x541C, 0x5401))


def judged(machine, name, arguments):
    tests = {
        "EQ": lambda given, value, _: given == value, "NE": lambda given, value, _: given != value,
        "GT": lambda given, value, _: given > value, "MASKED_EQ": lambda given, mask, value: given & mask == value,
    }  # fmt: skip
    for rule in seccomp.profile(machine)["syscalls"]:
        passed = (
            tests[each["op"].removeprefix("SCMP_CMP_")](arguments[each["index"]], each["value"], each["valueTwo"])
            for each in rule["args"]
        )
        if name in rule["names"] and all(passed):
            return 0x00050000 | rule["errnoRet"]
    return ALLOW


class TestFilter:
    @pytest.fixture(params=sorted(seccomp.MACHINES))
    def machine(self, request):
        return request.param

    @pytest.mark.parametrize("tracing", [False, True])
    def test_every_number_is_refused_or_allowed_as_the_table_says(self, machine, tracing):
        architecture = seccomp.MACHINES[machine]
        code = seccomp.program(machine, tracing=tracing, limiting=tracing)
        by_argument = ("ioctl", "clone", "unshare", "clone3", "socket", "socketpair", "prlimit64")
        refused = {number for name, number in architecture.calls.items() if name not in by_argument}
        if tracing:
            refused -= {architecture.calls[name] for name in seccomp.TRACING}
        verdicts = {number: answer(code, architecture.audit, number) for number in range(1200)}
        other = {architecture.calls["clone3"]: ENOSYS}
        other |= {architecture.calls[name]: EAFNOSUPPORT for name in ("socket", "socketpair")}  # of no family
        assert verdicts == {number: EPERM if number in refused else other.get(number, ALLOW) for number in range(1200)}

    def verdict_of(self, machine, name, *arguments, allowing=False):
        """What a filter says to a call; `allowing` is one that allows tracing, and limits of others."""
        architecture = seccomp.MACHINES[machine]
        code = seccomp.program(machine, tracing=allowing, limiting=allowing)
        return answer(code, architecture.audit, architecture.calls[name], *arguments)

    @pytest.mark.parametrize("name", ["clone", "unshare"])
    def test_flags_of_namespaces_are_refused(self, machine, name):
        for flag in NAMESPACES:
            for flags in (flag | FORK, flag | 1 << 40):
                assert self.verdict_of(machine, name, flags, allowing=True) == EPERM, hex(flags)

    def test_limits_of_others_are_its_containers_where_only_those_can_be_named(self, machine):
        assert self.verdict_of(machine, "prlimit64", 7, 0, allowing=True) == ALLOW
        code = seccomp.program(machine, tracing=False, limiting=False)
        assert len(code) // 8 < 4096, "short enough for the kernel"
        assert struct.unpack("=HBBI", code[-8:])[0] == 0x06, "it ends everywhere"

    @pytest.mark.parametrize("name", ["socket", "socketpair"])
    def test_sockets_are_of_four_families(self, machine, name):
        verdicts = {family: self.verdict_of(machine, name, family, 1, 0) for family in range(64)}
        allowed = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
        assert verdicts == {family: ALLOW if family in allowed else EAFNOSUPPORT for family in range(64)}

    @cases("name, arguments, verdict", {
        "fork": ("clone", [FORK], ALLOW),
        "thread": ("clone", [THREAD], ALLOW),
        "vfork": ("clone", [0x4111], ALLOW),
        "TIOCSTI": ("ioctl", [0, 0x5412], EPERM),
        "TIOCLINUX": ("ioctl", [0, 0x541C], EPERM),
        "TIOCSTI, with upper bits that the kernel does not look at": ("ioctl", [0, 0x5412 | 1 << 32], EPERM),
        "TIOCGWINSZ": ("ioctl", [0, 0x5413], ALLOW),
        "TCGETS": ("ioctl", [0, 0x5401], ALLOW),
        "limits of its own": ("prlimit64", [0, 0], ALLOW),
        "those of another process of the user": ("prlimit64", [7, 0], EPERM),
        "another family than netlink": ("socket", [socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP], ALLOW),
        "netlink: addresses and routes": ("socket", [*NETLINK, 0], ALLOW),
        "with upper bits that the kernel does not look at": ("socket", [*NETLINK, 1 << 32], ALLOW),
        **{
            f"netlink: {name}": ("socket", [*NETLINK, number], EPROTONOSUPPORT)
            for name, number in {"sock_diag": 4, "audit": 9, "uevent": 15, "generic": 16, "rdma": 20}.items()
        },
    })  # fmt: skip
    def test_calls_are_judged_by_their_arguments(self, machine, name, arguments, verdict):
        assert self.verdict_of(machine, name, *arguments) == verdict

    @given(audit=st.integers(0, 2**32 - 1), number=st.integers(0, 2**32 - 1))
    def test_calls_of_other_architectures_and_with_short_pointers_are_refused(self, audit, number):
        for machine, architecture in seccomp.MACHINES.items():
            code = seccomp.program(machine, tracing=True, limiting=True)
            if audit != architecture.audit:
                assert answer(code, audit, number) == EPERM
            assert answer(code, architecture.audit, number | 0x40000000) == EPERM

    @given(data=st.data(), arguments=st.tuples(*[ARGUMENTS] * 3), upper=st.sampled_from((0, 0, 1 << 32)))
    def test_engines_are_given_the_same_filter(self, data, arguments, upper):
        for machine, architecture in seccomp.MACHINES.items():
            name = data.draw(st.sampled_from(sorted(architecture.calls)))
            values = [each | upper for each in arguments]
            ours = self.verdict_of(machine, name, *values, allowing=True)
            theirs = judged(machine, name, values)
            # What the kernel does not look at, theirs refuses where it cannot tell.
            assert theirs == ours or (upper and ours == ALLOW)
