"""A job as its author wrote it, derived from the stored job.

Only `kubectl apply` keeps what was submitted, in its annotation. For other jobs it is inferred from the
defaults: a field with the value that they would fill in counts as filled in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from jobs.rules import admission
from jobs.rules.admission import JobRulesView
from kube import lenient
from kube.apply.kubectl import LAST_APPLIED
from kube.meta import Object

Path = tuple[str | int, ...]
_PATHS: list[Path] = [  # of fields of a job, besides those of its tasks, that the defaults fill in
    ("queue",),
    ("schedulerName",),
    ("maxRetry",),
    ("minAvailable",),
    ("plugins", "svc"),
    ("plugins", "ssh"),
    ("networkTopology", "mode"),
]
_MISSING = object()


class Written(NamedTuple):
    """A job's spec as it was written; `is_known` is False if it was inferred from the defaults."""

    spec: dict[str, Any]
    is_known: bool


def written(job: Object, made_claims: Collection[str] = ()) -> Written:
    """Return a stored job's spec as it was written; `made_claims` are names of claims that the controller made for it."""
    left = _copy(lenient.mapping(job, "spec"))
    for volume in lenient.sequence(left, "volumes"):
        if isinstance(volume, dict) and volume.get("volumeClaimName") in made_claims:
            del volume["volumeClaimName"]
    applied = _applied(job)
    if applied is not None and _defaulted(applied) == _defaulted(left):
        return Written(applied, True)
    whole = _copy(left)
    removed: list[Path] = []
    for paths in ([*_paths_of_tasks(left)], _PATHS):
        tried = _copy(left)
        for path in paths:
            _remove(tried, path)
        filled = _defaulted(tried)
        defaults = [path for path in paths if _at(filled, path) == _at(whole, path)]
        for path in defaults:
            _remove(left, path)
        removed += defaults
    filled = _defaulted(left)
    is_same = all(_at(filled, path) == _at(whole, path) for path in removed)
    return Written(left if is_same else whole, False)


def _paths_of_tasks(spec: Object) -> Iterator[Path]:
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        here: Path = ("tasks", number)
        for field in ("name", "maxRetry", "minAvailable"):
            yield (*here, field)
        yield (*here, "partitionPolicy", "minPartitions")
        yield (*here, "partitionPolicy", "networkTopology", "mode")
        if lenient.mapping(task, "template", "spec").get("hostNetwork") is True:
            yield (*here, "template", "spec", "dnsPolicy")


def _applied(job: Object) -> dict[str, Any] | None:
    """Return the spec that `kubectl apply` recorded; None if there is none that can be read."""
    text = lenient.text(job, "metadata", "annotations", LAST_APPLIED)
    try:
        applied = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    spec = applied.get("spec") if isinstance(applied, dict) else None
    return spec if isinstance(spec, dict) else None


def _copy(spec: Object) -> dict[str, Any]:
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(spec))
    return copied


def _defaulted(spec: Object) -> dict[str, Any]:
    """Return a spec with the defaults of a new job, which query nothing of the cluster."""
    job: Object = {"spec": _copy(spec)}
    admission.default(job, None, cast("JobRulesView", None))
    filled: dict[str, Any] = job["spec"]
    return filled


def _at(value: Any, path: Path) -> Any:
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and key < len(value) else _MISSING
        else:
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _remove(value: Any, path: Path) -> None:
    owner = _at(value, path[:-1])
    if isinstance(owner, dict):
        owner.pop(str(path[-1]), None)
