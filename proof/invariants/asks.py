"""What pods ask for, by Kubernetes' rules (reference: volcano-scheduler §1.2; kubernetes-api §6.3).

Written down here once more: it is what nodes, queues and quotas are judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from kube import amounts
from kube.amounts import Amounts
from kube.kinds.fields import View

# The bytes of what containers, and init containers with their restartPolicy, ask for; overhead; the pod as a whole.
_Template = tuple[tuple[bytes, ...], tuple[tuple[bytes, str], ...], bytes, bytes]
_decode = msgspec.json.Decoder(dict[str, Any] | None).decode
COMPUTE = ("cpu", "memory", "ephemeral-storage")
NOTHING = Raw(b"")


class AskingContainer(View):
    """What a container asks for, as bytes: equal bytes ask for the same."""

    resources: Raw = NOTHING
    restart_policy: str = ""


class PodSpec(View):
    """What is wished of a pod."""

    containers: list[AskingContainer] = []
    init_containers: list[AskingContainer] = []
    overhead: Raw = NOTHING
    resources: Raw = NOTHING
    node_name: str = ""
    scheduler_name: str = ""
    restart_policy: str = ""
    priority_class_name: str = ""
    active_deadline_seconds: int | None = None


class Ask:
    """What pods of one template ask for: of a node, and under the names of quotas. Read only."""

    __slots__ = ("is_best_effort", "quota", "request")

    def __init__(self, key: _Template) -> None:
        containers, starting, overhead, whole = key
        running = [_decoded(each) for each in containers]
        first = [(_decoded(each), policy == "Always") for each, policy in starting]
        try:
            self.request = _request(running, first, _decoded(overhead), _decoded(whole))
            limits = _most([_limits(each) for each in running], [(_limits(r), s) for r, s in first])
        except ValueError:  # no quantity: nobody can say what it asks for
            self.request, limits = {"pods": 1}, {}
        self.quota = _quota(self.request, limits)
        everyone = [*running, *(resources for resources, _ in first)]
        self.is_best_effort = not any(
            name in (each.get(kind) or ())
            for each in everyone
            for kind in ("requests", "limits")
            for name in ("cpu", "memory")
        )


_ask = lru_cache(maxsize=1 << 16)(Ask)


def ask_of(spec: PodSpec) -> Ask:
    """Return what a pod asks for; the same object for pods of one template."""
    key = (
        tuple([bytes(each.resources) for each in spec.containers]),
        tuple([(bytes(each.resources), each.restart_policy) for each in spec.init_containers]),
        bytes(spec.overhead),
        bytes(spec.resources),
    )
    return _ask(key)


def _decoded(raw: bytes) -> dict[str, Any]:
    return (_decode(raw) if raw else None) or {}


def _requests(resources: Mapping[str, Any]) -> Amounts:
    """What is limited and not asked for is asked for."""
    return amounts.of({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _limits(resources: Mapping[str, Any]) -> Amounts:
    return amounts.of(resources.get("limits") or {})


def _request(
    running: Sequence[Mapping[str, Any]],
    first: Sequence[tuple[Mapping[str, Any], bool]],
    overhead: Mapping[str, Any],
    whole: Mapping[str, Any],
) -> Amounts:
    total = _most([_requests(each) for each in running], [(_requests(r), sidecar) for r, sidecar in first])
    if whole:
        total |= _requests(whole)
    total = amounts.add(total, amounts.of(overhead))
    return total | {"pods": 1}


def _most(running: Iterable[Amounts], first: Iterable[tuple[Amounts, bool]]) -> Amounts:
    """Return the most that containers use at a time; each of `first` runs alone, or beside all that follow."""
    beside: Amounts = {}
    peak: Amounts = {}
    for request, stays in first:
        if stays:
            beside = amounts.add(beside, request)
            peak = _larger(peak, beside)
        else:
            peak = _larger(peak, amounts.add(beside, request))
    for request in running:
        beside = amounts.add(beside, request)
    return _larger(beside, peak)


def _larger(a: Amounts, b: Amounts) -> Amounts:
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in a.keys() | b.keys()}


def _quota(request: Amounts, limits: Amounts) -> Amounts:
    named = {
        name: amount
        for name, amount in request.items()
        if name in COMPUTE or name == "pods" or name.startswith("hugepages-")
    }
    named |= {f"requests.{name}": amount for name, amount in request.items() if name != "pods"}
    return named | {f"limits.{name}": amount for name, amount in limits.items() if name in COMPUTE}
