"""Amounts of resources as whole numbers, which add up exactly and fit an array.

`cpu` counts thousandths of a CPU; everything else whole units: bytes, devices,
pods. A resource that is absent is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from kube import quantity
from kube.kinds.core import ContainerRestartPolicy, ResourceRequirements
from kube.kinds.fields import Quantities, View

Amounts = dict[str, int]

TEN_CPU = 10_000
_BINARY_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_NO_AMOUNTS: Amounts = {}


class _RequestContainer(View):
    restart_policy: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class _RequestPod(View):
    """As much of a pod spec as its request depends on."""

    containers: list[_RequestContainer] = []
    init_containers: list[_RequestContainer] = []
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None


class _Container(Protocol):
    @property
    def restart_policy(self) -> str: ...
    @property
    def resources(self) -> ResourceRequirements: ...


class PodSpecLike(Protocol):
    """What `pod_request` reads; `kube.kinds.core.PodSpec` has it."""

    @property
    def containers(self) -> Sequence[_Container]: ...
    @property
    def init_containers(self) -> Sequence[_Container]: ...
    @property
    def overhead(self) -> Quantities: ...
    @property
    def resources(self) -> ResourceRequirements | None: ...


def of(resource_list: Mapping[str, Any] | None) -> Amounts:
    """Return the amounts of a Kubernetes resource list; QuantityError if one cannot be read."""
    if not resource_list:
        return {}
    return {name: one(name, written) for name, written in resource_list.items()}


def pod_request(pod_spec: PodSpecLike | dict[str, Any]) -> Amounts:
    """Return what a pod requests of a node, from its spec as JSON or as a struct.

    Kubernetes' rule (reference: volcano-scheduler §1.2): the sum of the
    containers, or an init container where that is more, plus overhead; an init
    container that keeps running (restartPolicy Always) counts for all that
    start after it. Limits stand in for missing requests; requests of the pod as
    a whole replace the sum. One pod always counts as `pods: 1`.
    """
    spec: PodSpecLike = msgspec.convert(pod_spec, _RequestPod) if isinstance(pod_spec, dict) else pod_spec
    running: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        own_request = _container_request(container.resources)
        if container.restart_policy == ContainerRestartPolicy.ALWAYS:
            _grow(running, own_request)
            own_request = _NO_AMOUNTS
        starting = _larger(starting, add(running, own_request))
    for container in spec.containers:
        _grow(running, _container_request(container.resources))
    request = _larger(running, starting) if starting else running
    if spec.resources is not None:
        request |= _container_request(spec.resources)
    if spec.overhead:
        _grow(request, of(spec.overhead))
    request["pods"] = 1
    return request


def pod_limits(pod_spec: dict[str, Any]) -> Amounts:
    """Return what a pod is limited to, added up as `pod_request` adds up requests; pods are not counted.

    Overhead comes on top of what is limited; it is no limit by itself.
    """

    def limits(owner: dict[str, Any]) -> dict[str, Any]:
        return {"requests": (owner.get("resources") or {}).get("limits") or {}}

    kinds = ("containers", "initContainers")
    owners = (pod_spec, *(each for kind in kinds for each in pod_spec.get(kind) or ()))
    if not any((owner.get("resources") or {}).get("limits") for owner in owners):
        return {}
    spec: dict[str, Any] = {
        kind: [{**each, "resources": limits(each)} for each in pod_spec.get(kind) or ()] for kind in kinds
    }
    limited = pod_request({**spec, "resources": limits(pod_spec)})
    del limited["pods"]
    for name, amount in of(pod_spec.get("overhead")).items():
        if limited.get(name):
            limited[name] += amount
    return limited


def add(a: Mapping[str, int], b: Mapping[str, int]) -> Amounts:
    """Return a + b, resource by resource."""
    total = dict(a)
    _grow(total, b)
    return total


def subtract(a: Mapping[str, int], b: Mapping[str, int]) -> Amounts:
    """Return a - b, resource by resource; a result may be negative."""
    rest = dict(a)
    for name, amount in b.items():
        rest[name] = rest.get(name, 0) - amount
    return rest


def fits(request: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Whether every resource of request is free in that amount; an empty request always fits."""
    return all(amount <= 0 or amount <= free.get(name, 0) for name, amount in request.items())


def show(name: str, amount: int) -> str:
    """Write an amount for people: `1.25 CPU`, `1.25 GiB memory`, `3 pods`, `1 nvidia.com/gpu`.

    CPU is exact; bytes have two decimals below ten of their unit, and one from there on.
    """
    if name == "cpu":
        return f"{_decimals(amount, 1000, 3)} CPU"
    if name in ("memory", "ephemeral-storage", "storage") or name.startswith("hugepages-"):
        return f"{_bytes(amount)} {name}"
    if name == "pods":
        return f"{amount} pod" if amount == 1 else f"{amount} pods"
    return f"{amount} {name}"


def about(name: str, amount: int) -> str:
    """Write an amount that was reckoned, such as a share, for people: as `show`, with one decimal of 10 CPU and more."""
    return show(name, round(amount, -2) if name == "cpu" and amount >= TEN_CPU else amount)


def resource_list(amounts: Mapping[str, int]) -> dict[str, str]:
    """Write amounts as a Kubernetes resource list, sorted by name; also under names such as `limits.cpu`."""
    return {name: _text(name, amount) for name, amount in sorted(amounts.items())}


@lru_cache(maxsize=8192)
def _text(name: str, amount: int) -> str:
    if name.rpartition(".")[2] == "cpu":
        return quantity.canonical(f"{amount}m")
    binary = name.endswith(("memory", "storage")) or "hugepages-" in name
    return quantity.canonical(f"{amount}", binary=binary)


def one(name: str, written: Any) -> int:
    """Return the amount of one resource; QuantityError if it cannot be read."""
    if type(written) is str:
        return _milli(written) if name == "cpu" else _units(written)
    value = quantity.parse(written)
    return quantity.milli(value) if name == "cpu" else quantity.units(value)


@lru_cache(maxsize=8192)
def _milli(text: str) -> int:
    return quantity.milli(quantity.parse(text))


@lru_cache(maxsize=8192)
def _units(text: str) -> int:
    return quantity.units(quantity.parse(text))


def _container_request(resources: ResourceRequirements) -> Amounts:
    if not resources.limits:
        return of(resources.requests)
    return of({**resources.limits, **resources.requests})


def _grow(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _larger(a: Amounts, b: Amounts) -> Amounts:
    result = dict(a)
    for name, amount in b.items():
        result[name] = max(amount, result.get(name, 0))
    return result


def _bytes(amount: int) -> str:
    power = 0
    while abs(amount) >= 1024 ** (power + 1) and power < len(_BINARY_UNITS) - 1:
        power += 1
    unit = 1024**power
    return f"{_decimals(amount, unit, 1 if abs(amount) >= 10 * unit else 2)} {_BINARY_UNITS[power]}"


def _decimals(amount: int, unit: int, places: int) -> str:
    text = f"{amount / unit:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
