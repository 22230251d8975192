"""The agent as a process of this machine: one thread that waits on descriptors, then lets the agent work.

The descriptors are the store's nudges, the starts and ends of containers, the
node's port and signals; it waits at most until the agent has something due.

A first SIGTERM or SIGINT stops it, with the running pods as the setting RUNNING
says (`node.leftovers.AtStop`); a second one has it wait for no pod any longer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TextIO

from django.conf import settings

from cluster import clock, pid_lock
from node.agent import reach
from node.agent.agent import Agent
from node.agent.machine import LOOPBACK, Machine, Occupied
from node.agent.readings import ThisMachine
from node.agent.server import Port
from node.agent.shims import Handle, Shims
from node.containers import control_groups, engines, networks, walls
from node.containers.engine_sweep import EngineSweep
from node.containers.found_devices import FoundDevices
from node.containers.images import Images
from node.containers.networks import Networks
from node.containers.spawn import Spawner
from node.leftovers import AtStop
from node.listen import RedisSubscription
from node.paths import Layout
from node.pods.cluster import AWAY, Cluster, Dismissed
from node.pods.local_cluster import LocalCluster
from node.pods.lookup import refused
from node.shim.order import Wall
from node.usage import Sampler

RETRY_S = 0.5  # after the cluster did not answer
SHUTDOWN_S = 4.8  # `up` gives the agent five seconds
ORDERED_S = 1.0
log = logging.getLogger(__name__)


class Companion(Protocol):
    """What works beside the agent, in a thread of its own: it must not use the agent's selector, nor keep it waiting.

    It is started when the node is announced, and stopped before descriptors are closed, whatever runs then.
    """

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Do no more; what was begun is let go."""


class Daemon:
    """`manage.py agent`.

    `connect` makes another cluster than the one of this machine's store, whose events wake the selector that it is given;
    `address` is where others reach the machine.
    What the machine allows and has is found out where `wall`, `groups` and `engine` do not say it.
    """

    def __init__(
        self,
        data: Path,
        *,
        name: str = "",
        wall: Wall | None = None,
        groups: control_groups.Groups | None = None,
        engine: engines.EngineLookup | None = None,
        connect: Callable[[selectors.BaseSelector], Cluster] | None = None,
        address: str = LOOPBACK,
    ) -> None:
        layout = Layout(data)
        self.lock = _lock(data)
        self.impatient = False
        self.selector = selectors.DefaultSelector()
        # Before there is a spawner: it may be one more process to move.
        groups = groups or control_groups.find(layout, leaves=settings.RUNNING == AtStop.LEAVE)
        self.groups = control_groups.ControlGroups(layout, groups)
        self.spawner = Spawner()
        self.port = Port(data)
        wall = wall or self.spawner.probe(layout.root / "probe")
        # Pods that others reach by the machine's address are in its network.
        wall = networks.chosen(wall, settings.POD_NETWORK, shared=address != LOOPBACK)
        engine = engine or engines.find(settings.ENGINE, wall)
        self.sweep = EngineSweep(layout, engine.engine)
        pod_networks = Networks(layout, self.spawner, self.port.key, wall.networks) if wall.networks else None
        self.shims = Shims(layout, self.spawner, self.selector, self.port.key, self.sweep, pod_networks, self.groups)
        devices = FoundDevices(settings.DEVICES)
        hostname = name or socket.gethostname()
        cluster = connect(self.selector) if connect else LocalCluster(RedisSubscription(self.selector))
        machine = Machine(
            ThisMachine(data),
            hostname,
            wall,
            reach.of_this_machine(data),
            cluster,
            devices,
            engine,
            address,
            groups,
            f"{socket.gethostname()}:{data}",
        )
        self.sampler = Sampler(layout, machine.name, self.shims.running, devices.figures)
        self.selector.register(self.port.socket, selectors.EVENT_READ, self.port)
        self.wake = os.fdopen(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), "r+b", buffering=0)
        self.selector.register(self.wake, selectors.EVENT_READ, None)
        self.images = Images(engine.engine, cluster.lookup, self._wake_up, layout.pulls) if engine.engine else None
        self.agent = Agent(layout, machine, self.shims, cluster, self.images)
        self.companions: list[Companion] = [self.sampler, self.agent.storage]

    def run(self) -> None:
        """Work until a signal asks for the end; then do with what runs as the settings say, and return."""
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self.selector.register(reader, selectors.EVENT_READ, None)
        self._begin()
        for companion in self.companions:
            companion.start()
        self.sweep.start()
        machine = self.agent.machine
        log.info(
            "agent ready: node %s, wall %s, limits %s",
            machine.name, walls.describe(machine.wall), walls.limits(machine.groups),
        )  # fmt: skip
        while not self.agent.stopping:
            self.turn()
        self.shut_down(AtStop.END if self.agent.is_dismissed else settings.RUNNING)
        os.close(writer)

    def _wake_up(self) -> None:
        """Have the agent work now; for other threads."""
        with contextlib.suppress(ValueError):  # closed: the agent has ended
            os.eventfd_write(self.wake.fileno(), 1)

    def _on_signal(self, *_: object) -> None:
        self.impatient = self.agent.stopping
        self.agent.stopping = True

    def _begin(self) -> None:
        """Begin when the cluster answers, however long it is away."""
        while not self.agent.stopping:
            try:
                self.agent.begin()
                self.agent.outage.over()
                return
            except AWAY as error:
                refused(self.agent.outage, "the cluster does not answer", error)
                time.sleep(RETRY_S)
            except Occupied as error:
                refused(self.agent.outage, "this agent waits", error)
                time.sleep(RETRY_S)
            except Dismissed as error:
                self.agent.leave_cluster(error)

    def turn(self) -> None:
        """Wait for the next thing to happen and handle it."""
        self._wait(self.agent.patience())
        self.agent.work()

    def _wait(self, timeout: float) -> None:
        listener = self.agent.listener
        listener.subscribe()
        for key, _ in self.selector.select(timeout):
            if isinstance(key.data, Handle):
                self.shims.on_ready(key.data)
            elif key.data is self.port:
                self.port.answer(self.shims)
            elif key.data is listener.subscription:
                listener.hear()
            else:
                os.read(key.fd, 512)

    def shut_down(self, running: AtStop) -> None:
        """Start nothing any more, and have running pods go on, wait for their ends, or end them and record how they ended."""
        self.agent.depart()
        match running:
            case AtStop.LEAVE:
                self._leave()
            case AtStop.WAIT:
                while not self.impatient and not self.agent.is_done:
                    self.turn()
                self._leave()
            case AtStop.END:
                # In order at first, by force after four seconds.
                deadline = clock.monotonic() + SHUTDOWN_S
                self.agent.stop_all()
                while clock.monotonic() < deadline and not self.agent.is_done:
                    self._wait(min(0.2, self.agent.patience()))
                    self.agent.wind_down()
        self.close()

    def _leave(self) -> None:
        """Wait for what was ordered a moment ago: it has begun, or it has not, and the disk says which."""
        deadline = clock.monotonic() + ORDERED_S
        while clock.monotonic() < deadline and not self.agent.is_certain:
            self.turn()

    def close(self) -> None:
        """Let go of every descriptor and of the spawner; containers are left as they are."""
        for companion in self.companions:
            companion.stop()
        if self.images:
            self.images.stop()
        self.agent.listener.close()
        self.port.close()
        self.shims.close()
        self.spawner.close()
        self.groups.close()
        self.selector.close()
        self.wake.close()
        self.lock.close()


def lock_of(data: Path) -> Path:
    """Return the file that an agent has locked while it works in a state directory."""
    folder = data / "run"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / "agent.lock"


def _lock(data: Path) -> TextIO:
    """Wait until no other agent works in the state directory.

    Two would take each other's orders back, and the one that is behind would
    write that a pod is not yet where the other has reported it to be.
    """
    path = lock_of(data)
    if lock := pid_lock.take(path):
        return lock
    log.warning("another agent works in %s, pid %s: waiting for its end", data, pid_lock.holder(path))
    return pid_lock.wait(path)
