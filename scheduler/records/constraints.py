"""Demands on a pod's node that the scheduler does not support yet, such as resourceClaims, or cannot read.

Such pods wait, and say why: if the demand were ignored, they would silently
run in the wrong place. What a pod merely prefers never makes it wait.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from kube.usage import NOTHING
from scheduler.engine.cause import Constraint
from scheduler.reasons.sentence import unknown
from scheduler.records.demands import Demands, UnreadableError, demands_of
from scheduler.records.reading import PodSpecView


def warning(spec: Mapping[str, Any], path: str) -> str:
    """Return what the author of a pod spec at a path should know; empty when every demand can be judged."""
    try:
        view = msgspec.json.decode(json.dumps(spec), type=PodSpecView)
    except msgspec.DecodeError:
        return ""  # the schema says what is wrong
    constraint = understood(view, "", NOTHING)[1]
    return f"{path}.{constraint}: the pods will wait: {unknown(constraint)}" if constraint else ""


def understood(spec: PodSpecView, namespace: str, labels: Raw) -> tuple[Demands | None, Constraint | None]:
    """Return a pod's demands about other pods, and its first demand that cannot be read or obeyed."""
    try:
        demands = demands_of(spec, namespace, labels)
    except UnreadableError as error:
        return None, error.constraint
    if bytes(spec.resource_claims) not in (b"", b"[]", b"null"):
        return demands, Constraint.RESOURCE_CLAIMS
    return demands, None
