"""The ports of a cluster that is stopped while pods go on: a real holder, and processes that stand for shims and their pods."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from node import port_holder
from node.shim import control_socket, linux
from proof.harness.ports import free_port
from proof.harness.waiting import HANG_S, until
from volcano_ui.supervision import held_ports, up
from volcano_ui.supervision.held_ports import HeldPorts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holders are Linux's")
HERE = "127.0.0.1"


class Cluster:
    """The state directory of a cluster, what runs of its pods, and the `up`s on it."""

    def __init__(self, state):
        self.state, self.port, self.messages, self.shims, self.begun = state, free_port(), [], [], []
        (state / "run").mkdir(parents=True)

    def pod(self):
        """Have something run that is a pod's shim, by its claim."""
        shim = subprocess.Popen(["sleep", "3600"])
        attempt = self.state / "node" / "pods" / f"uid-{len(self.shims)}" / "main" / "0"
        attempt.mkdir(parents=True)
        (attempt / "claim").write_text(f"{shim.pid} {linux.start_ticks(shim.pid)}\n")
        self.shims.append(shim)

    def end_pods(self):
        for shim in self.shims:
            shim.kill()
            shim.wait()

    def begin(self, data="."):
        """Begin as an `up` does; return it with whether a pod can have been where it listened before."""
        data = self.state / data
        (data / "run").mkdir(parents=True, exist_ok=True)
        ports = HeldPorts(self.state, data, log=None, say=self.messages.append)
        lapsed = ports.begin(has_pods=any(shim.poll() is None for shim in self.shims))
        self.begun.append((ports, ports.pid))
        return ports, lapsed

    def up(self, *ports):
        """Begin and listen; return the `up` and its sockets."""
        begun, _ = self.begin()
        listeners = [begun.listen(HERE, port) for port in ports or [self.port]]
        begun.settle()
        return begun, *listeners


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path / "state")
    yield cluster
    cluster.end_pods()
    for ports, _ in cluster.begun:
        close(ports)
    for ports, pid in cluster.begun:
        gone(pid)
        gone(ports.pid)


def die(ports):
    """Do what the kernel does when an `up` is killed."""
    asyncio.get_running_loop().remove_reader(ports._holding.channel)
    close(ports)


def close(ports):
    ports._holding.channel.close()
    for held in ports._held.values():
        held.close()


def leave(ports):
    assert ports.end(has_pods=True)


def gone(pid):
    until(lambda: not linux.start_ticks(pid), what="the end of the holder")
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def ask(port, request=b"GET / HTTP/1.1\r\nHost: here\r\nCookie: volcano_ui_session_1=secret\r\n\r\n"):
    """Return what is answered to a request, to the end of the connection."""
    with socket.create_connection((HERE, port), HANG_S) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def take(host, port, *options):
    """Try to listen, as a pod would; return what refuses it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as ours:
        if family == socket.AF_INET6:
            ours.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option in options:
            ours.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            ours.bind((host, port))
            ours.listen()
        except OSError as error:
            return error.errno
    return 0


@pytest.mark.parametrize("stop", [leave, die], ids=["in order", "killed"])
async def test_nobody_else_has_the_port_until_the_next_start_has_it(cluster, stop):
    cluster.pod()
    ports, before = cluster.up()
    inode = os.fstat(before.fileno()).st_ino
    stop(ports)
    answer = ask(cluster.port)
    for host in (HERE, "0.0.0.0", "::1", "::"):
        for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
            assert take(host, cluster.port, *options) == errno.EADDRINUSE, (host, options)
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"1 pod goes on. Start it with <code>make up</code>" in answer
    assert b"Cache-Control: no-store" in answer
    again, lapsed = cluster.begin()
    assert not lapsed
    assert os.fstat(again.listen(HERE, cluster.port).fileno()).st_ino == inode
    leave(again)


async def test_holder_ends_with_the_last_pod_or_without_any_with_the_up_and_frees_the_port(cluster):
    for _ in range(2):
        cluster.pod()
    ports, _ = cluster.up()
    holder = ports.end(has_pods=True)
    cluster.shims[0].kill()
    cluster.shims[0].wait()
    until(lambda: b"1 pod goes" in ask(cluster.port), what="the pod that is left")
    cluster.end_pods()
    gone(holder)
    assert take(HERE, cluster.port, socket.SO_REUSEADDR) == 0
    again, lapsed = cluster.begin()
    assert not lapsed, "no pod can have had the port"
    pid = again.pid
    assert again.end(has_pods=False) == 0
    gone(pid)


async def test_where_the_holder_was_killed_too_a_pod_can_have_been_there(cluster):
    cluster.pod()
    ports, lapsed = cluster.begin()
    assert lapsed, "a version without holders has started it"
    leave(ports)
    ports, _ = cluster.up()
    os.kill(ports.pid, signal.SIGKILL)
    gone(ports.pid)
    die(ports)
    # Also when that start fails before it has done anything about it, and there is a holder again.
    for _ in range(2):
        again, lapsed = cluster.begin()
        assert lapsed
        leave(again)


async def test_holder_that_is_killed_is_replaced(cluster):
    cluster.pod()
    ports, _ = cluster.up()
    first = ports.pid
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(HANG_S):
        while ports.pid in (0, first):
            await asyncio.sleep(0.1)
    assert cluster.messages == ["✗ the holder of the ports ended; starting another"]
    die(ports)
    assert ask(cluster.port).startswith(b"HTTP/1.1 503")
    assert not cluster.begin()[1]


async def test_port_of_before_is_held_beside_another(cluster):
    cluster.pod()
    leave(cluster.up()[0])
    other = free_port()
    ports, listener = cluster.up(other)
    assert ask(cluster.port).startswith(b"HTTP/1.1 503")
    with socket.create_connection((HERE, other), HANG_S):
        listener.accept()[0].close()  # this `up` answers at its own
    leave(ports)


async def test_up_on_the_same_state_directory_cannot_take_what_another_uses(cluster):
    ports, _ = cluster.up()
    second, _ = cluster.begin("clusters/other")
    assert second.pid == ports.pid
    with pytest.raises(OSError, match="in use"):
        second.listen(HERE, cluster.port)
    assert second.end(has_pods=False) == ports.pid, "the first goes on"
    assert ports.end(has_pods=False) == 0


async def test_port_is_held_with_the_remedy_told_and_nobody_keeps_others_out(cluster):
    cluster.pod()
    ports, _ = cluster.up()
    assert up._port_problem(cluster.port) == f"Port {cluster.port} is taken by another program."
    leave(ports)
    assert up._port_problem(cluster.port) == (
        f"Port {cluster.port} is held by process {ports.pid} for the cluster of {cluster.state}, which is stopped while"
        f" pods of it go on. To end them: make up DATA={cluster.state} RUNNING=end, and Ctrl-C."
    )
    head = ask(cluster.port, b"HEAD / HTTP/1.1\r\n\r\n")
    assert (head[:12], head[-4:]) == (b"HTTP/1.1 503", b"\r\n\r\n"), "no body"
    assert ask(cluster.port, b"\x16\x03\x01\x02\x00\x01") == b"", "who asks by TLS gets nothing"
    assert len(ask(cluster.port, b"POST / HTTP/1.1\r\n\r\n" + b"x" * 200_000)) > len(head)
    with contextlib.ExitStack() as silent:
        address, count = (HERE, cluster.port), port_holder.VISITORS + 1
        held = [silent.enter_context(socket.create_connection(address, HANG_S)) for _ in range(count)]
        assert ask(cluster.port).startswith(b"HTTP/1.1 503")
        assert held[0].recv(1) == b"", "the first of those who say nothing is cut off"


def come(folder, key):
    """Ask the holder whose socket is in a folder as an `up` does; return what it says."""
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = {"key": key, "mark": str(folder / "mark")}
    with line, theirs:
        control_socket.send(str(folder), request, [theirs.fileno()], port_holder.NAME)
        theirs.close()
        return line.recv(4096)


async def test_who_has_not_read_the_key_gets_nothing_and_another_user_not_even_with_it(cluster):
    ports, _ = cluster.up()
    key = (cluster.state / "run" / "node-key").read_text()
    door = cluster.state / "run" / port_holder.NAME
    assert come(door.parent, key)
    assert come(door.parent, "guessed") == b""
    assert door.stat().st_mode & 0o777 == 0o600
    if os.getuid():
        ports.end(has_pods=False)
        pytest.skip("only root can be somebody else")
    door.chmod(0o666)
    door.parent.chmod(0o755)
    child = os.fork()
    if not child:
        try:
            os.chdir(door.parent)
            os.setuid(65534)
            linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or it may not look at its own descriptors
            os._exit(0 if come(Path(), key) == b"" else 2)
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ports.end(has_pods=False)


def test_same_port_is_closed_where_browsers_may_look_for_it_too():
    for listens, closed in {
        "127.0.0.1": ("::1",), "localhost": ("::1",), "::1": ("127.0.0.1",), "0.0.0.0": ("::",), "192.0.2.1": ("::",),
        "2001:db8::1": ("0.0.0.0",), "::": (),
    }.items():  # fmt: skip
        assert held_ports.others(listens) == closed, listens
