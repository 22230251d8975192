"""A container as processes of this machine: forked by the shim, behind the wall of `node.shim.isolation.wall`."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from node.shim import control_group, tree
from node.shim.isolation import wall
from node.shim.launch import Ending, Inside, LaunchError, launch, processors, separate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from node.shim.launch import Streams
    from node.shim.network import Network
    from node.shim.order import Order


class Processes:
    """A command, and whatever it forks: see `node.shim.container_runtime.ContainerRuntime`."""

    root = 0
    id = ""

    def __init__(self, order: Order, network: Network | None = None) -> None:
        self._order = order
        self._network = network
        self._inside = Inside()
        self.is_bound = order.group is not None
        wall.confine(order)

    def start(self, streams: Streams) -> int:
        """Fork and exec the command."""
        if self._network is not None:
            self._network.join()
        cpus = processors(self._order, 0)
        group = self._make_group(cpus)
        self._inside = separate(self._order)._replace(group=group)
        try:
            self._inside = launch(self._order, streams, self._inside, cpus)
        except LaunchError:
            # In this order: an init ends when all in its namespace have been collected.
            if self._inside.init:
                tree.end(self._inside.init)
            raise
        return self._inside.main

    def _make_group(self, cpus: list[int]) -> int:
        if self._order.group is None:
            return -1
        try:
            return control_group.make(self._order.group, self._order, cpus)
        except OSError as error:
            raise LaunchError(f"its control group cannot be made: {error}") from None

    def signal(self, number: int) -> None:
        """Send a signal to the command's group."""
        try:
            os.killpg(self._inside.main, number)
        except (ProcessLookupError, PermissionError):
            pass

    def kill(self) -> dict[int, int]:
        """Kill everything below the shim."""
        self.signal(signal.SIGKILL)
        return self._end_all()

    def clear(self) -> dict[int, int]:
        """Kill what is left below the shim, and remove its control group."""
        statuses = self._end_all()
        if self._order.group is not None:
            control_group.remove(self._order.group.path)
        return statuses

    def _end_all(self) -> dict[int, int]:
        if self._order.group is not None:
            control_group.kill(self._order.group.path)
        return tree.end_all(os.getpid())

    def ending(self, status: int) -> Ending:
        """Return how a wait status ended, and of a command that the kernel killed the reason."""
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL and (group := self._order.group):
            problem = control_group.memory_problem(group.path, self._order.memory_bytes)
            return Ending(128 - code, -code, "OOMKilled" if problem else "", problem)
        return Ending(128 - code if code < 0 else code, max(0, -code))

    def processes(self) -> list[int]:
        """Return everything below the shim but the init, which is the cluster's."""
        return [pid for pid in tree.below(os.getpid()) if pid != self._inside.init]

    def execute(self, argv: Sequence[str], streams: Streams, env: dict[str, str]) -> int:
        """Fork and exec a command that joins the first one's namespaces."""
        order = self._order._replace(argv=list(argv), env={**self._order.env, **env})
        return launch(order, streams, self._inside, processors(order, self._inside.main)).main

    def of_command(self, pid: int) -> list[int]:
        """Return what a command's session has below the shim."""
        return tree.session(os.getpid(), pid)
