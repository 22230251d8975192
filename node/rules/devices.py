"""Countable things of a machine that pods have to themselves, and which pod gets which of them: pure.

GPUs are found (`node.containers.found_devices`); licences, ports or instruments are
declared in the settings. A container that asks for n of a resource gets n
particular ones, whose ids are in a variable, and nobody else has them meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kube import amounts, names, quantity
from kube.kinds.core import Pod
from node.status import is_sidecar

Assigned = dict[str, tuple[str, ...]]  # ids by resource
FORM = "RESOURCE:VARIABLE=ID,ID, such as example.org/licence:LICENCE=blue,red or example.org/port:PORT=5000..5007"
NATIVE = ("cpu", "memory", "ephemeral-storage", "pods", "storage")
MOST = 10_000  # devices of one resource
_ID = re.compile(r"[!-+\--~]+")  # printable, without spaces and commas
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})")


class DevicesError(ValueError):
    """A text does not declare devices; the message says why, and what to do."""


class Short(Exception):
    """There are not enough free devices at the moment."""


class Device(NamedTuple):
    """One device, by the id that its pod gets, and the files of /dev that only its holder may open."""

    id: str
    name: str = ""
    files: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # more variables of who has it


class Kind(NamedTuple):
    """All devices of one resource.

    variables hold the ids, separated by commas, for holders of some; with `hides` they are empty for everybody else,
    where programs take a missing one for all devices.
    """

    resource: str
    variables: tuple[str, ...]
    devices: tuple[Device, ...]
    hides: bool = False


def parse(text: str) -> tuple[Kind, ...]:
    """Return the kinds that spaces or line breaks separate; DevicesError for what is none."""
    kinds = tuple(_kind(word) for word in text.split())
    for index, kind in enumerate(kinds):
        if kind.resource in {other.resource for other in kinds[:index]}:
            raise DevicesError(f"{kind.resource} is declared twice; give all its ids at once.")
    return kinds


def _kind(word: str) -> Kind:
    head, equals, ids = word.partition("=")
    resource, colon, variable = head.partition(":")
    if not equals or not colon:
        raise DevicesError(f"{word!r} does not have the form {FORM}.")
    if resource in NATIVE or "/" not in resource or names.qualified_name(resource):
        raise DevicesError(
            f"{resource!r} cannot be the name of a resource; write a domain before it, such as example.org/licence."
        )
    if names.env_name(variable) or "=" in variable:
        raise DevicesError(f"{variable!r} cannot be a variable's name; write letters, digits and _, such as LICENCE.")
    devices = tuple(
        Device(id_, files=(id_,) if id_.startswith("/dev/") else ()) for part in ids.split(",") for id_ in _ids(part)
    )
    if len({one.id for one in devices}) < len(devices):
        raise DevicesError(f"{resource} has an id twice; nothing may be given out twice.")
    return Kind(resource, (variable,), devices)


def _ids(part: str) -> Iterable[str]:
    """Return the ids of one word between commas: itself, or those of a range of numbers."""
    if span := _RANGE.fullmatch(part):
        first, last = int(span[1]), int(span[2])
        if not first <= last < first + MOST:
            raise DevicesError(f"{part!r} is no range; begin it with its least number, and name at most {MOST:,}.")
        return map(str, range(first, last + 1))
    if not _ID.fullmatch(part):
        raise DevicesError(f"{part!r} cannot be an id; write characters other than spaces and commas.")
    return (part,)


def requested(pod: Pod, kinds: Iterable[Kind]) -> dict[str, int]:
    """Return how many devices a pod asks for, by resource; QuantityError if an amount cannot be read."""
    requested = amounts.pod_request(pod.spec)
    return {kind.resource: requested[kind.resource] for kind in kinds if requested.get(kind.resource)}


def assign(
    kinds: Iterable[Kind],
    others: Iterable[Mapping[str, Iterable[str]]],
    wanted: Mapping[str, int],
    gone: Iterable[tuple[str, str]] = (),
) -> Assigned:
    """Return the ids that a pod gets, the first free ones; Short where there are too few. held are those of all other pods."""
    unavailable = {(resource, each) for one in others for resource, ids in one.items() for each in ids}.union(gone)
    offered = {kind.resource: kind for kind in kinds}
    assigned: Assigned = {}
    for resource, count in wanted.items():
        free = [one.id for one in offered[resource].devices if (resource, one.id) not in unavailable]
        if len(free) < count:
            raise Short(f"the pod asks for {count} {resource}, of which {len(free)} are free at the moment")
        assigned[resource] = tuple(free[:count])
    return assigned


def shares(pod: Pod, assigned: Mapping[str, Sequence[str]]) -> dict[str, Assigned]:
    """Return which of a pod's devices each of its containers has.

    Containers that run side by side share none. Init containers, which have
    ended before those begin, use the same ones (as a kubelet has it).
    """
    by_container: dict[str, Assigned] = {}
    for resource, ids in assigned.items():
        begin = 0
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            resources = container.resources
            text = resources.requests.get(resource, resources.limits.get(resource))
            count = quantity.units(text) if text is not None else 0
            if count:
                by_container.setdefault(container.name, {})[resource] = tuple(ids[begin : begin + count])
            if is_sidecar(container) or any(container is one for one in pod.spec.containers):
                begin += count
    return by_container


def variables(kinds: Iterable[Kind], share: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the variables with the ids of a container's devices."""
    values: dict[str, str] = {}
    for kind in kinds:
        ids = tuple(share.get(kind.resource, ()))
        if kind.hides or ids:
            values |= dict.fromkeys(kind.variables, ",".join(ids))
        for device in kind.devices:
            values |= dict(device.env) if device.id in ids else {}
    return values


def files(kinds: Iterable[Kind], share: Mapping[str, Iterable[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files of a container's own devices, and those of all others, which it may not open."""
    own: set[str] = set()
    others: set[str] = set()
    for kind in kinds:
        ids = set(share.get(kind.resource, ()))
        for device in kind.devices:
            (own if device.id in ids else others).update(device.files)
    return tuple(sorted(own)), tuple(sorted(others - own))
