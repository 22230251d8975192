"""An object of a custom kind as an `autoscaling/v1` Scale, and back.

Source: k8s.io/apiextensions-apiserver/pkg/registry/customresource/{etcd,validator}.go.
"""

from __future__ import annotations

from typing import Any

from kube.errors import Cause, invalid, quoted
from kube.kinds.fields import INT32_MAX
from kube.lenient import mapping, text
from kube.meta import Object
from kube.resource import ScalePaths

_GO: dict[type, str] = {
    bool: "bool",
    str: "string",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class NoReplicasError(ValueError):
    """An object has nothing at the path of its replicas."""


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    """Return an object as a Scale; NoReplicasError when it does not say how many replicas are wanted."""
    replicas = _at(obj, paths.spec)
    if replicas is None:
        raise NoReplicasError(f'the spec replicas field "{paths.spec}" does not exist')
    metadata = mapping(obj, "metadata")
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: dict[str, Any] = {"replicas": _whole(_at(obj, paths.status))}
    if paths.selector:
        selector = _at(obj, paths.selector)
        status["selector"] = selector if isinstance(selector, str) else ""
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in fields if key in metadata},
        "spec": {"replicas": _whole(replicas)},
        "status": {key: value for key, value in status.items() if value != ""},
    }


def scaled(obj: Object, paths: ScalePaths, scale: Object) -> Object:
    """Return a copy of an object with the replicas of a Scale, and its resourceVersion where it gives one."""
    new = _with(obj, paths.spec.lstrip(".").split("."), _whole(mapping(scale, "spec").get("replicas")))
    if version := text(scale, "metadata", "resourceVersion"):
        new["metadata"] = {**new["metadata"], "resourceVersion": version}
    return new


def check(obj: Object, paths: ScalePaths, *, only_status: bool = False) -> list[Cause]:
    """Return what keeps an object from being shown as a Scale."""
    numbers = [] if only_status else [paths.spec]
    causes = []
    for path in (*numbers, paths.status):
        value = _at(obj, path)
        if value is None:
            continue
        if type(value) is not int:
            detail = f"{path} accessor error: {quoted(value)} is of the type {_GO[type(value)]}, expected int64"
            causes.append(invalid(path, 0, detail))
        elif value < 0:
            causes.append(invalid(path, value, "should be a non-negative integer"))
        elif value > INT32_MAX:
            causes.append(invalid(path, value, f"should be less than or equal to {INT32_MAX}"))
    if paths.selector:
        selector = _at(obj, paths.selector)
        if selector is not None and not isinstance(selector, str):
            text_ = f"{quoted(selector)} is of the type {_GO[type(selector)]}, expected string"
            detail = f"{paths.selector} accessor error: {text_}"
            causes.append(invalid(paths.selector, "", detail))
    return causes


def _at(obj: Any, path: str) -> Any:
    for name in path.lstrip(".").split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _whole(value: Any) -> int:
    return value if type(value) is int else 0


def _with(obj: Any, names: list[str], value: int) -> dict[str, Any]:
    fields = dict(obj) if isinstance(obj, dict) else {}
    first, *rest = names
    fields[first] = _with(fields.get(first), rest, value) if rest else value
    return fields
