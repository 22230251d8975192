"""The network of a namespace's pods: a network namespace, in which they reach each other and nobody of their machine.

A small process, its *keeper*, makes it and keeps a program running that carries its traffic out as an ordinary user would
(pasta or slirp4netns). It stays as long as somebody holds the network: the agent, or a shim whose container is in it.

```
agent ── spawner ── keeper ── pasta
           └── shim, in the keeper's network; holds the other end of the keeper's pipe
```

A later agent finds the keeper by a control socket (`node.shim.control_socket`) in the network's directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
from typing import NamedTuple, NoReturn

from node.shim import control_socket, init, linux, users
from node.shim.control_socket import Line
from node.shim.launch import LaunchError
from node.shim.path_walk import WRITE

KEEPER_NAME = b"volcano-network"
OWNER = users.LAST  # whose networks are where root starts the cluster: nobody's, so that its programs are nobody, too
UPLINKS = ("pasta", "slirp4netns")  # programs that carry traffic out, the best first
RESOLVERS = {"pasta": "169.254.1.1", "slirp4netns": "10.0.2.3"}  # the address at which names are looked up
ANSWER_S = 5.0
READY_S = 10.0  # that a container waits for the way out
# Before a program that has ended is started again, as on a machine that is offline.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
_TUNSETIFF, _TAP = 0x400454CA, 0x0002 | 0x1000  # see linux/if_tun.h
_UP = 0x1
_NEW_ROUTE = 24
_ROUTES = 0x40 | 0x400  # groups of netlink: routes of IPv4 and of IPv6


class Network(NamedTuple):
    """A network as its members hold it: descriptors."""

    hold: int  # keeps it; an error is to be seen on it when the keeper is gone
    ready: int  # ends when there is a way out, or can be none for now
    users: int  # the user namespace that it belongs to
    net: int

    @classmethod
    def received(cls, line: socket.socket) -> Network:
        """Receive a network from its keeper, which answers on a line; OSError says why there is none."""
        line.settimeout(ANSWER_S)
        with line:
            data, fds, _, _ = socket.recv_fds(line, 4096, len(cls._fields))
        for fd in fds:
            os.set_inheritable(fd, False)
        if len(fds) == len(cls._fields):
            return cls(*fds)
        control_socket.close(fds)
        reason = json.loads(data).get("refused", "") if data else "its process ended"
        raise OSError(f"the network of the namespace cannot be made: {reason}")

    def is_alive(self) -> bool:
        """Whether its keeper lives."""
        poll = select.poll()
        poll.register(self.hold, 0)
        return not poll.poll(0)

    def join(self) -> None:
        """Move this process there, when there is a way out; LaunchError."""
        poll = select.poll()
        poll.register(self.ready, 0)
        poll.poll(READY_S * 1000)
        try:
            if os.geteuid() != 0:  # only who has the network may
                linux.setns(self.users, linux.CLONE_NEWUSER)
            linux.setns(self.net, linux.CLONE_NEWNET)
        except OSError as error:
            raise LaunchError(f"the network of its namespace cannot be entered: {error}") from None

    def close(self) -> None:
        """Let go of it."""
        control_socket.close(list(self))


class Plan(NamedTuple):
    """What a keeper is to do."""

    directory: str  # of the network's own: for a claim, a control socket and a log, as an attempt has them
    key: str  # what requests at the control socket have to have
    uplink: str = ""  # the path of the program that carries traffic out; "" for none


def supported_networks() -> str:
    """Return which networks this machine lets containers have, in a process that ends afterwards: "", "closed" or "open"."""
    _become_owner()
    _own_network()
    try:
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH", b"tap0", _TAP))
    except OSError:
        return "closed"
    return "open"


def _become_owner() -> None:
    """Become the ordinary user that owns networks."""
    if os.geteuid() == 0:
        users.become((OWNER, OWNER, []))
        linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or its files in /proc would be root's


def _own_network() -> None:
    """Give this process a network namespace, in a user namespace of its own, with a loopback that works."""
    linux.own_users(linux.CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH", b"lo", _UP))  # SIOCSIFFLAGS
    with contextlib.suppress(OSError):  # pods listen at ports below 1024 without a capability, as in Kubernetes
        linux.write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")


class _Namespaces:
    """A new network's namespaces, and the process that is in them: programs that carry traffic out find them by that."""

    def __init__(self) -> None:
        self._line, child_end = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._line.close()
            _hold_namespaces(child_end)
        child_end.close()
        message, fds, _, _ = socket.recv_fds(self._line, 4096, 3)
        if not fds:
            raise OSError(message.decode() or "the process of the network ended")
        for fd in fds:
            os.set_inheritable(fd, False)
        self.users, self.net = fds[:2]
        self.routes = socket.socket(fileno=fds[2])  # tells of the network's routes

    def end(self) -> None:
        """End that process."""
        self._line.close()
        os.waitpid(self._pid, 0)

    def path(self, kind: str) -> str:
        """Return where a program finds one of them."""
        return f"/proc/{self._pid}/ns/{kind}"


def _hold_namespaces(line: socket.socket) -> NoReturn:
    """Make the namespaces, and stay in them as long as their keeper lives."""
    try:
        os.closerange(3, line.fileno())
        os.closerange(line.fileno() + 1, init.FILES)
        _own_network()
        namespaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("user", "net")]
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as routes:
            routes.bind((0, _ROUTES))
            socket.send_fds(line, [b"1"], [*namespaces, routes.fileno()])
        control_socket.close(namespaces)
        line.recv(1)
    except OSError as error:
        line.send(str(error).encode())
    finally:
        os._exit(0)


def run_keeper(plan: Plan, line: socket.socket) -> NoReturn:
    """Run as the keeper of a new network, which is handed over on a line, or the reason why there is none."""
    client = Line(line)
    try:
        os.setsid()
        linux.prctl(linux.PR_SET_NAME, KEEPER_NAME)
        init.default_signals()
        control = control_socket.bind(plan.directory)
        linux.write(f"{plan.directory}/claim", f"{os.getpid()} {linux.start_ticks(os.getpid())}")
        errors = os.open(f"{plan.directory}/log", WRITE | os.O_TRUNC, 0o600)
        _become_owner()
        keeper = _Keeper(plan, control, errors)
    except OSError as error:
        client.send({"refused": str(error)})
        os._exit(1)
    try:
        keeper.hand_over(client)
        line.close()
        keeper.live()
        keeper.end()
    finally:
        os._exit(1)


class _Keeper:
    """A network from inside."""

    def __init__(self, plan: Plan, control: socket.socket, errors: int) -> None:
        self._plan = plan
        self._control = control
        self._errors = errors
        self._namespaces = _Namespaces()
        self._pipe, self._hold = os.pipe2(os.O_CLOEXEC)
        self._ready, self._unready = os.pipe2(os.O_CLOEXEC)
        self._program = -1  # a pidfd of the one that carries traffic out
        self._wait_s = FIRST_WAIT_S

    def hand_over(self, client: Line) -> None:
        """Give the network to a client."""
        # A pipe's other end is opened by way of this one; were it held open, the pipe would never end.
        hold = os.open(f"/proc/self/fd/{self._pipe}", os.O_WRONLY | os.O_CLOEXEC) if self._hold < 0 else self._hold
        client.send({"network": True}, [hold, self._ready, self._namespaces.users, self._namespaces.net])
        os.close(hold)
        self._hold = -1

    def live(self) -> None:
        """Keep the network until nobody holds it any more."""
        poll = select.poll()
        for source in (self._pipe, self._control, self._namespaces.routes):
            poll.register(source, select.POLLIN)
        if self._plan.uplink:
            self._start_program(poll)
        else:
            self._signal_ready()
        while True:
            idle = bool(self._plan.uplink) and self._program < 0
            ready = {fd for fd, _ in poll.poll(self._wait_s * 1000 if idle else None)}
            if self._pipe in ready:
                return
            if self._control.fileno() in ready:
                self._on_request()
            if self._namespaces.routes.fileno() in ready:
                self._on_route_change()
            if self._program in ready:
                self._end_program(poll)
            elif idle and not ready:
                self._start_program(poll)

    def end(self) -> None:
        """End the processes of the network and wait for that: they have nobody else."""
        if self._program >= 0:
            signal.pidfd_send_signal(self._program, signal.SIGKILL)
            os.waitid(os.P_PIDFD, self._program, os.WEXITED)
        self._namespaces.end()

    def _on_route_change(self) -> None:
        """Notice that a program has set up its way out."""
        try:
            is_out = _has_default(self._namespaces.routes.recv(1 << 16))
        except OSError:  # there were more changes than there is room for
            is_out = True
        if is_out:
            self._signal_ready()
            self._wait_s = FIRST_WAIT_S

    def _on_request(self) -> None:
        received = control_socket.receive(self._control)
        if received is None:
            return
        request, fds = received
        if control_socket.has_key(request, self._plan.key):
            with socket.socket(fileno=fds.pop(0)) as line:
                self.hand_over(Line(line))
        control_socket.close(fds)

    def _signal_ready(self) -> None:
        if self._unready >= 0:
            os.close(self._unready)
            self._unready = -1

    def _start_program(self, poll: select.poll) -> None:
        keeper = os.pidfd_open(os.getpid())
        argv = command(self._plan.uplink, *(self._namespaces.path(kind) for kind in ("user", "net")))
        pid = os.fork()
        if pid == 0:
            _become_program(argv, keeper, self._errors)
        os.close(keeper)
        self._program = os.pidfd_open(pid)
        poll.register(self._program, select.POLLIN)

    def _end_program(self, poll: select.poll) -> None:
        """Go on without a way out, for a while: a machine that is offline has none either."""
        poll.unregister(self._program)
        os.waitid(os.P_PIDFD, self._program, os.WEXITED)
        os.close(self._program)
        self._program = -1
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        self._signal_ready()


def _has_default(messages: bytes) -> bool:
    """Whether messages of netlink say that there is a route to everywhere. See netlink(7) and rtnetlink(7)."""
    offset = 0
    while offset + 18 <= len(messages):
        length, kind, prefix = struct.unpack_from("=IH11xB", messages, offset)
        if kind == _NEW_ROUTE and prefix == 0:
            return True
        offset += max(16, length + 3 & ~3)
    return False


def _become_program(argv: list[str], keeper: int, errors: int) -> NoReturn:
    try:
        init.end_with(keeper)
        null = os.open(os.devnull, os.O_RDWR)
        for standard, fd in ((0, null), (1, errors), (2, errors)):
            os.dup2(fd, standard)
        os.closerange(3, init.FILES)
        os.execve(argv[0], argv, {"PATH": os.defpath})  # noqa: S606 - found by the agent on its search path
    finally:
        os._exit(127)


def command(path: str, user_namespace: str, network_namespace: str) -> list[str]:
    """Return the command line that carries the traffic of two namespaces out, and lets nothing in nor to the machine itself."""
    if os.path.basename(path) == "slirp4netns":
        return [
            path, "--configure", "--disable-host-loopback", "--mtu=65520",
            "--netns-type=path", f"--userns-path={user_namespace}", network_namespace, "eth0",
        ]  # fmt: skip
    return [
        path, "--quiet", "--foreground", "--config-net", "--no-map-gw", "--dns-forward", RESOLVERS["pasta"],
        "-t", "none", "-u", "none", "-T", "none", "-U", "none", "--userns", user_namespace, "--netns", network_namespace,
    ]  # fmt: skip
