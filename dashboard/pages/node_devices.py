"""The devices of a node: their holders, health and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from cluster import access, clock
from cluster.access import Actor
from cluster.api import backend
from cluster.rules.node import node_devices
from cluster.rules.node.node_devices import NodeDevice
from cluster.store import store
from dashboard.parts import svg
from kube import amounts
from kube.kinds.core import Node, PodPhase
from kube.resources import JOBS, PODS

_HERE = (PodPhase.PENDING, PodPhase.RUNNING)


class Holder(NamedTuple):
    """The pod that has a device; all fields are "" if the reader may not see it."""

    namespace: str = ""
    name: str = ""
    job: str = ""


class Figure(NamedTuple):
    """A measurement of a device: as text, and as a bar if it has a maximum."""

    text: str
    bar: SafeString | str = ""


class Row(NamedTuple):
    """A device as its node's page shows it."""

    device: NodeDevice
    holder: Holder | None
    figures: list[Figure]


def rows(actor: Actor, node: Node) -> tuple[list[Row], int | None]:
    """Return the devices of a node, and when they were measured (epoch ms), None if they are not.

    Without devices neither the store nor the node is queried.
    """
    listed = node_devices.read(node.metadata.annotations)
    if not listed:
        return [], None
    holders = _holders(actor, node.metadata.name)
    usage = backend.nodes.usage(clock.milliseconds())
    figures = next((each for each in usage if each["node"] == node.metadata.name), {})
    measured: Mapping[str, Any] = figures.get("devices") or {}
    device_rows = [
        Row(
            each,
            holders.get((each.resource, each.id)),
            _figures(each, (measured.get(each.resource) or {}).get(each.id) or {}),
        )
        for each in listed
    ]
    return device_rows, figures["at"] if measured else None


def _holders(actor: Actor, node: str) -> dict[tuple[str, str], Holder]:
    visible = access.namespaces(actor, PODS)
    holders: dict[tuple[str, str], Holder] = {}
    for stored in store.find(PODS, node=node, phase=_HERE):
        holder = Holder()
        if visible is access.ALL or stored.namespace in visible:
            owners = stored.object["metadata"].get("ownerReferences") or ()
            jobs = (each["name"] for each in owners if each.get("controller") and each.get("kind") == JOBS.kind)
            holder = Holder(stored.namespace, stored.name, next(jobs, ""))
        holders |= dict.fromkeys(node_devices.of_pod(stored.object), holder)
    return holders


def _figures(device: NodeDevice, measured: Mapping[str, float]) -> list[Figure]:
    use, memory, total = (measured.get(name) for name in ("use", "memory", "memoryTotal"))
    figures = []
    if use is not None:
        heat = f", {measured['temperature']:.0f} °C" if "temperature" in measured else ""
        figures.append(Figure(f"{use:.0%} busy{heat}", svg.bar(use, 1, f"{device.id}: {use:.0%} busy")))
    elif "temperature" in measured:
        figures.append(Figure(f"{measured['temperature']:.0f} °C"))
    if memory is not None and total:
        text = f"{_bytes(memory)} of {_bytes(total)}"
        figures.append(Figure(text, svg.bar(memory, total, f"{device.id}: memory {text}")))
    return figures


def _bytes(number: float) -> str:
    return amounts.show("memory", int(number)).rpartition(" ")[0]
