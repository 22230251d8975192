"""The way from `kubectl apply` to `kubectl apply --server-side`.

Client-side apply notes what it applied in an annotation. What still is as
that says may be changed by a server-side apply of kubectl without a conflict,
and such an apply keeps the annotation up to date, so that there is a way
back. Both hold for the manager `kubectl` only, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kube.apply import fieldset, merge
from kube.apply.fieldset import Fields
from kube.apply.shape import Shape
from kube.meta import Object

MANAGER = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def still_applied(
    live: Object, part: Callable[[Object], Object], completed: Callable[[Object], Object], shape: Shape
) -> Fields:
    """Return the fields that client-side apply last applied and that still have their values.

    part gives the part of an object that is applied, completed fills in what the server would.
    """
    try:
        last = _decode(_annotation(live))
    except (msgspec.DecodeError, RecursionError):
        return {}
    if last.get("apiVersion") != live.get("apiVersion"):
        return {}
    applied, now = part(last), part(live)
    try:
        claimed = merge.fields(applied, shape)
    except merge.ConfigError:
        return {}
    before = completed(merge.merged(now, applied, shape))
    changed, removed = merge.changes(before, now, shape)
    return fieldset.difference(fieldset.difference(claimed, changed), removed)


def with_annotation(obj: Object, config: Object) -> Object:
    """Return an object that has the annotation, with the configuration in it."""
    if not _annotation(obj):
        return obj
    metadata = config.get("metadata") or {}
    annotated = metadata.get("annotations")
    if type(annotated) is dict and LAST_APPLIED in annotated:
        others = {key: value for key, value in annotated.items() if key != LAST_APPLIED}
        config = {**config, "metadata": {**metadata, "annotations": others}}
    annotations = {**obj["metadata"]["annotations"], LAST_APPLIED: _encode(config).decode() + "\n"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _annotation(obj: Object) -> str:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(LAST_APPLIED) if type(annotations) is dict else ""
    return text if type(text) is str else ""
