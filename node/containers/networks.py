"""The networks of this node's pods: one for each Kubernetes namespace that has pods here (see `node.shim.network`).

Pods of a namespace reach each other and, by a program that carries their traffic out, what this machine reaches, but neither
the machine itself nor pods of other namespaces. A pod with hostNetwork has the machine's network.
"""

from __future__ import annotations

import shutil
import socket

from node.containers.hosts import write as write_in_place
from node.containers.spawn import Spawner
from node.paths import Layout
from node.pods.environment import search_path
from node.shim import control_socket
from node.shim.network import RESOLVERS, UPLINKS, Network, Plan
from node.shim.order import Wall

OWN, CLOSED, MACHINE = "own", "closed", "machine"  # what VOLCANO_UI_POD_NETWORK may be
RESOLV_CONF = "/etc/resolv.conf"


def chosen(wall: Wall, setting: str, *, shared: bool = False) -> Wall:
    """Return a wall with the networks that pods have as the setting says and the machine allows: "", "closed" or a program.

    shared: pods are reached by the machine's address, and so are in its network.
    """
    wall = wall._replace(closed=setting == CLOSED)
    if shared or wall.mounts == "none":
        return wall._replace(networks="")
    uplink = next((name for name in UPLINKS if _program(name)), "") if wall.networks == "open" else ""
    networks = {OWN: uplink, CLOSED: CLOSED if wall.networks else "", MACHINE: ""}[setting]
    return wall._replace(networks=networks)


def _program(name: str) -> str:
    return shutil.which(name, path=search_path()) or ""


def resolver(network: str) -> str:
    """Return the text of /etc/resolv.conf in such a network: the machine's, with the name server that answers there."""
    try:
        with open(RESOLV_CONF) as file:  # noqa: PTH123 - the machine's
            lines = [line for line in file.read().splitlines() if not line.startswith("nameserver")]
    except OSError:
        lines = []
    address = RESOLVERS.get(network, "")
    return "".join(f"{line}\n" for line in [*lines, *([f"nameserver {address}"] if address else [])])


class Networks:
    """The networks that are used from here; their keepers outlive this process as long as containers are in them."""

    def __init__(self, layout: Layout, spawner: Spawner, key: str, kind: str) -> None:
        self._layout = layout
        self._spawner = spawner
        self._key = key
        self._kind = kind
        self._networks: dict[str, Network] = {}
        self._used: set[str] = set()

    def of(self, namespace: str) -> Network:
        """Return the network of a namespace, which is made where there is none; OSError when it cannot be had."""
        self._used.add(namespace)
        network = self._networks.get(namespace)
        if network is None or not network.is_alive():
            self._forget(namespace)
            network = self._running(namespace)
            if network is None:
                folder = self._layout.network(namespace)
                folder.mkdir(parents=True, exist_ok=True)
                write_in_place(self._layout.resolver, resolver(self._kind))
                plan = Plan(str(folder), self._key, _program(self._kind))
                network = Network.received(self._spawner.start_network(plan))
            self._networks[namespace] = network
        return network

    def tidy(self) -> None:
        """Let go of networks that were not used since the last call: those in which nobody is end."""
        for namespace in set(self._networks) - self._used:
            self._forget(namespace)
        self._used.clear()

    def close(self) -> None:
        """Let go of all."""
        for namespace in list(self._networks):
            self._forget(namespace)

    def _forget(self, namespace: str) -> None:
        if network := self._networks.pop(namespace, None):
            network.close()

    def _running(self, namespace: str) -> Network | None:
        """Return the network that an earlier agent has made, if its keeper lives."""
        line, keeper_end = socket.socketpair()
        with keeper_end:
            try:
                control_socket.send(str(self._layout.network(namespace)), {"key": self._key}, [keeper_end.fileno()])
            except OSError:  # nobody is behind it
                line.close()
                return None
        try:
            return Network.received(line)
        except OSError:  # it has just ended
            return None
