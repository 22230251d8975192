"""Demands on a pod's node that the scheduler does not support yet, such as required pod affinity.

Such pods wait, and say why: placed as if they had not asked, they would be in
the wrong place in silence. What a pod merely prefers has no effect and keeps
nobody waiting.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from kube.kinds.fields import View
from scheduler.engine.cause import Constraint
from scheduler.engine.sentence import unknown
from scheduler.snapshot.reading import PodSpecView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def warning(spec: Mapping[str, Any], path: str) -> str:
    """Return what the author of a pod spec at a path should know; empty when every demand can be judged."""
    try:
        view = msgspec.json.decode(json.dumps(spec), type=PodSpecView)
    except msgspec.DecodeError:
        return ""  # the schema says what is wrong
    constraint = unknown_constraint(view)
    return f"{path}.{constraint}: the pods will wait: {unknown(constraint)}" if constraint else ""


class _PodTerms(View):
    required_during_scheduling_ignored_during_execution: list[Any] | None = None


class _Affinity(View):
    pod_affinity: _PodTerms | None = None
    pod_anti_affinity: _PodTerms | None = None


class _Spread(View):
    when_unsatisfiable: str = ""


class _Port(View):
    host_port: int | None = None


def unknown_constraint(spec: PodSpecView) -> Constraint | None:
    """Return the first demand of a pod that cannot be judged, or None. What cannot be read is a demand."""
    affinity, spread = bytes(spec.affinity), bytes(spec.topology_spread_constraints)
    if b'"podA' in affinity and (found := _of_affinity(affinity)) is not None:
        return found
    if spread and any(each.when_unsatisfiable != "ScheduleAnyway" for each in _read(spread, _Spread)):
        return Constraint.TOPOLOGY_SPREAD
    if any(port.host_port != 0 for port in _ports(spec)):
        return Constraint.HOST_PORT
    if bytes(spec.resource_claims) not in (b"", b"[]", b"null"):
        return Constraint.RESOURCE_CLAIMS
    return None


def _of_affinity(raw: bytes) -> Constraint | None:
    try:
        affinity = msgspec.json.decode(raw, type=_Affinity)
    except msgspec.ValidationError:
        return Constraint.POD_AFFINITY
    for terms, constraint in (
        (affinity.pod_affinity, Constraint.POD_AFFINITY),
        (affinity.pod_anti_affinity, Constraint.POD_ANTI_AFFINITY),
    ):
        if terms is not None and terms.required_during_scheduling_ignored_during_execution:
            return constraint
    return None


def _ports(spec: PodSpecView) -> Iterator[_Port]:
    for container in (*spec.containers, *(spec.init_containers or ())):
        ports = bytes(container.ports)
        if b'"hostPort"' in ports:
            yield from (each for each in _read(ports, _Port) if each.host_port is not None)


def _read(raw: bytes, kind: type[Any]) -> list[Any]:
    """Return a list of objects; one of unreadable demands where it cannot be read."""
    try:
        return msgspec.json.decode(raw, type=list[kind] | None) or []  # type: ignore[valid-type]
    except msgspec.ValidationError:
        return [msgspec.convert({"hostPort": -1}, kind)]
