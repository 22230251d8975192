"""Additions to the containers of a pod spec; each returns a new spec and leaves the given one as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobs.plugins.contract import PodSpec
from kube.meta import Object

MAIN = ("containers",)
EVERY = ("initContainers", "containers")


def changed(spec: PodSpec, change: Callable[[Object], Object], kinds: Sequence[str] = EVERY) -> PodSpec:
    """Return a pod spec with each container of these kinds changed."""
    return {**spec, **{kind: [change(each) for each in spec[kind]] for kind in kinds if spec.get(kind)}}


def with_variables(spec: PodSpec, variables: Sequence[Object], kinds: Sequence[str] = EVERY) -> PodSpec:
    """Add environment variables after those that a container has."""
    return changed(spec, lambda each: {**each, "env": [*(each.get("env") or ()), *variables]}, kinds)


def with_port(spec: PodSpec, port: int, name: str, kinds: Sequence[str] = EVERY) -> PodSpec:
    """Declare a port in each container, unless the container declares that number already."""
    return changed(spec, lambda each: opened(each, port, name), kinds)


def opened(container: Object, port: int, name: str) -> Object:
    """Declare a port in one container, unless it declares that number already."""
    ports = container.get("ports") or ()
    if any(each.get("containerPort") == port for each in ports):
        return container
    added = {"name": name, "containerPort": port, "protocol": "TCP"}
    return {**container, "ports": [*ports, added]}


def with_volume(spec: PodSpec, volume: Object, mount: dict[str, Any]) -> PodSpec:
    """Add a volume and mount it in every container; `mount` need not name the volume."""
    mounted = {"name": volume["name"], **mount}
    mounting = changed(spec, lambda each: {**each, "volumeMounts": [*(each.get("volumeMounts") or ()), mounted]})
    return {**mounting, "volumes": [*(spec.get("volumes") or ()), volume]}


def volume_name(text: str) -> str:
    """Return a volume name for an object's name: it must be a DNS label, which the object's name need not be."""
    return text.replace(".", "-")
