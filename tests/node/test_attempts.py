"""What the agent knows of attempts and asks of their shims."""

import asyncio
import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
from pathlib import Path

import pytest

from node import attempts as disk
from node import pipes, shim_claims
from node.agent.shims import Shims
from node.attempt import AttemptState
from node.paths import Layout
from node.port_client import AnswerLine
from node.shim import linux, tree
from node.shim.order import Order
from node.shim.shim import write_json
from proof.escapes.attempts import PATH, deaf
from proof.harness.waiting import HANG_S, until
from tests.node.driving import asking, executing
from tests.tables import cases


class TestOnDisk:
    def test_everybody_reads_the_same_of_an_attempt_whose_shim_was_killed_while_it_was_stopped(self, tmp_path):
        directory = tmp_path / "0"
        directory.mkdir()
        (directory / "claim").write_text("0 0\n")
        write_json(f"{directory}/started.json", {"startedAt": 1, "streak": 2})
        write_json(f"{directory}/stop.json", {"reason": "DeadlineExceeded", "grace": 30.0})
        first, second = disk.read(directory, 5), disk.read(directory, 9)
        assert first == second
        assert first.attempt.stopped == "DeadlineExceeded"

    def test_shim_that_comes_after_its_order_was_taken_back_is_refused_until_it_is_given_again(self, attempts):
        directory = attempts.directory()
        disk.withdraw(directory.parent)
        attempts.shell("echo ran >> ran", directory=directory)
        assert attempts.reply.startswith("refused")
        assert not (attempts.root / "work" / "ran").exists()
        directory.mkdir(parents=True)
        attempts.shell("exit 4", directory=directory)
        assert attempts.end(directory)["exitCode"] == 4

    def test_order_is_taken_back_also_after_an_agent_that_was_killed_at_it_and_no_attempt_that_runs(self, attempts):
        directory = attempts.directory()
        (directory / "claim").touch()
        assert disk.read(directory, 0) is None
        disk.withdraw(directory.parent)
        assert not directory.exists()
        directory = attempts.shell("sleep 60")
        disk.withdraw(directory.parent)
        assert disk.read(directory, 0).attempt.state is AttemptState.RUNNING
        attempts.stop(directory, grace=0)
        attempts.end(directory)
        disk.withdraw(directory.parent)
        assert disk.read(directory, 0).attempt.state is AttemptState.ENDED


def test_shims_that_live_are_found_by_their_claims_and_what_pods_write_beside_is_none(tmp_path):
    ticks = linux.start_ticks(os.getpid())
    claims = {"main/0": ticks + 1, "main/1": ticks, "_volumes/data": ticks, "_work/0": ticks, "_tmp/0": ticks}
    for path, since in claims.items():
        (tmp_path / "uid" / path).mkdir(parents=True)
        (tmp_path / "uid" / path / "claim").write_text(f"{os.getpid()} {since}\n")
    (tmp_path / "uid" / "_tmp" / "mine").mkdir()
    os.mkfifo(tmp_path / "uid" / "_tmp" / "mine" / "claim")  # whoever opens it waits
    assert shim_claims.shims(tmp_path) == {os.getpid(): "uid"}
    shutil.rmtree(tmp_path / "uid" / "main")
    assert shim_claims.shims(tmp_path) == {}


UID, NAME = "uid", "main"


def ordered(shims, number, script, *, is_there=True):
    """Order an attempt of the container, which nobody can carry out without its directory; return its run in the end."""
    directory = shims.layout.attempt(UID, NAME, number)
    if is_there:
        directory.mkdir(parents=True)
    shims.start(UID, NAME, Order(str(directory), ["sh", "-c", script], {"PATH": PATH}, "/"))

    def listen():
        for key, _ in shims.selector.select(0.02):
            shims.on_ready(key.data)
        shims.settle()
        return not shims.active(UID) and not shims.unsettled

    until(listen, every_s=0)
    return shims.runs(UID)[NAME]


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_after_an_order_that_was_refused_the_container_is_where_it_was_before(attempts, before):
    with selectors.DefaultSelector() as selector:
        shims, previous = Shims(Layout(attempts.root), attempts.spawner, selector), None
        for number in range(before):
            previous = ordered(shims, number, f"exit {number + 1}")
        run = ordered(shims, before, "true", is_there=False)
        assert shims.refused(UID, NAME)
        assert [each and each.exit_code for each in run] == [before or None, before - 1 if before > 1 else None]
        assert previous in (None, run)
        shims.close()


def connecting(directory, port=1, host="127.0.0.1", seconds=HANG_S, **request):
    return asking(directory, key="key", do="connect", host=host, port=port, seconds=seconds, **request)


def answer(line):
    received, descriptors = b"", []
    while True:
        data, fds, _, _ = socket.recv_fds(line, 4096, 1)
        received, descriptors = received + data, descriptors + fds
        if not data:
            return json.loads(received), [socket.socket(fileno=fd) for fd in descriptors]


def beside(attempts, directory):
    return set(tree.children(attempts.shim(directory))) - {attempts.started(directory)["pid"]}


def test_a_command_is_not_ended_for_one_that_ended_in_the_same_moment(attempts):
    """Its line gets the number of the other's, whose end the shim is told of together with the request."""
    container = attempts.start("sleep", "600", key="key")
    shim = attempts.shim(container)
    with executing(container, "sh", "-c", "exec sleep 60", key="key") as line:
        pid = json.loads(line.recv(4096))["started"]
        os.kill(shim, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        until(lambda: "State:\tZ" in Path(f"/proc/{pid}/status").read_text())
    with executing(container, "sh", "-c", "sleep 0.1; exit 7", key="key") as line:
        os.kill(shim, signal.SIGCONT)
        assert b"".join(iter(lambda: line.recv(4096), b"")).endswith(b'{"exitCode": 7}\n')


class TestConnections:
    @pytest.fixture
    def container(self, attempts):
        return attempts.start("sleep", "600", key="key")

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_the_connection_comes_back_and_the_line_ends(self, attempts, container, host):
        with socket.create_server(("127.0.0.1", 0)) as server:
            with connecting(container, server.getsockname()[1], host) as line:
                response, (connected,) = answer(line)
            far, _ = server.accept()
        assert response == {"connected": True}
        with far, connected:
            far.sendall(b"there")
            assert connected.recv(5) == b"there"
            connected.close()
            assert far.recv(1) == b"", "nobody else holds it"
        assert not beside(attempts, container)

    @cases("host, port, why", {
        "nobody listens": ("127.0.0.1", None, "connection refused"),
        "no port": ("127.0.0.1", 70_000, "port must be 1-65535"),
        "no name": ("a..b", 80, "not known"),
        "no international name": ("\u00e4..b", 80, "label empty"),
    })  # fmt: skip
    def test_why_there_is_no_connection(self, attempts, container, host, port, why):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            with connecting(container, port or free.getsockname()[1], host) as line:
                response, connected = answer(line)
        assert why in response["refused"]
        assert (response["timedOut"], connected) == (False, [])

    def test_a_wait_that_was_too_long_is_told_apart_and_a_request_that_cannot_be_read_is_not_tried(self, container):
        with deaf() as port, connecting(container, port, seconds=0.1) as line:
            assert answer(line) == ({"refused": "no answer in time", "timedOut": True}, [])
        for fields in ({"port": "x"}, {"seconds": None}, {"host": None, "port": None}):
            with connecting(container, **fields) as line:
                response, _ = answer(line)
            assert ("refused" in response, "timedOut" in response) == (True, False)

    @pytest.mark.parametrize("ending", ["its line", "its shim", "its container"])
    def test_an_attempt_ends_with_what_it_belongs_to(self, attempts, container, ending):
        with deaf() as port, connecting(container, port) as line:
            (child,) = until(lambda: beside(attempts, container))
            if ending == "its line":
                line.close()
            elif ending == "its shim":
                attempts.kill_shim(container)
            else:
                attempts.stop(container)
                attempts.end(container)
                assert line.recv(1) == b""
            until(lambda: not linux.start_ticks(child))
        assert ending != "its line" or linux.start_ticks(attempts.started(container)["pid"])

    def test_other_lines_end_while_an_attempt_waits_which_counts_towards_no_limit(self, attempts):
        container = attempts.start("sleep", "600", key="key", memory_bytes=4 << 20, processes=1)
        with deaf() as port, connecting(container, port, seconds=2.0) as line:
            assert answer(line)[0]["timedOut"], "the limits were looked at meanwhile"
        assert not (container / "status.json").exists()
        container = attempts.start("sleep", "600", key="key")
        with deaf() as port, connecting(container, port):
            until(lambda: beside(attempts, container))
            with executing(container, "true", key="key") as line:
                output = b"".join(iter(lambda: line.recv(4096), b""))
            assert b'"exitCode": 0' in output


@contextlib.contextmanager
def answering():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)
        yield AnswerLine(ours), theirs


async def test_answers_come_one_by_one_and_what_is_no_answer_or_has_no_end_is_nobody_s():
    with answering() as (line, theirs):
        theirs.sendall(b'{"started": 1}\n{"exit')
        assert await line.receive() == ({"started": 1}, [])
        theirs.sendall(b'Code": 0}\n')
        theirs.close()
        assert [await line.receive(), await line.receive()] == [({"exitCode": 0}, []), ({}, [])]
    for data in (b"no JSON\n", b"[1]\n", b"[" * 50_000 + b"\n", b"9" * 5000 + b"\n", b"\xff\n"):
        with answering() as (line, theirs):
            theirs.sendall(data)
            assert await line.receive() == ({}, [])
    with answering() as (line, theirs):
        writing = asyncio.ensure_future(pipes.write(theirs.fileno(), bytes(64 * 1024 * 1024)))
        assert await line.receive() == ({}, [])
        assert not writing.done()
        writing.cancel()
