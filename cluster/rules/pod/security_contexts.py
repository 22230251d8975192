"""As whom containers run, at the door: the numbers of users and groups (Kubernetes' ValidatePodSecurityContext)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import lenient
from kube.errors import Cause, invalid

MAX_ID = 2**31 - 1
_OF_BOTH = ("runAsUser", "runAsGroup")


def check(spec: Any, path: str) -> Iterator[Cause]:
    """Say which users and groups of a pod and its containers there cannot be."""
    yield from _check_ids(lenient.mapping(spec, "securityContext"), (*_OF_BOTH, "fsGroup"), path)
    for number, group in enumerate(lenient.sequence(spec, "securityContext", "supplementalGroups")):
        yield from _check_id(group, f"{path}.securityContext.supplementalGroups[{number}]")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(lenient.sequence(spec, kind)):
            context = lenient.mapping(container, "securityContext")
            yield from _check_ids(context, _OF_BOTH, f"{path}.{kind}[{number}]")


def _check_ids(context: dict[str, Any], fields: tuple[str, ...], path: str) -> Iterator[Cause]:
    for field in fields:
        yield from _check_id(context.get(field), f"{path}.securityContext.{field}")


def _check_id(value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, int) and not 0 <= value <= MAX_ID:
        yield invalid(path, value, f"must be between 0 and {MAX_ID}, inclusive")
