"""What a pod names of its own namespace, and where in its spec: ConfigMaps, Secrets and claims."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

from kube import lenient
from kube.resources import CLAIMS, CONFIGMAPS, SECRETS, Resource

_REFERENCES = MappingProxyType(
    {
        "configMap": (CONFIGMAPS, ("name",)),
        "configMapRef": (CONFIGMAPS, ("name",)),
        "configMapKeyRef": (CONFIGMAPS, ("name",)),
        "secret": (SECRETS, ("secretName", "name")),  # a volume of its own, or a source of a projected one
        "secretRef": (SECRETS, ("name",)),
        "secretKeyRef": (SECRETS, ("name",)),
        "persistentVolumeClaim": (CLAIMS, ("claimName",)),
    }
)


class Mention(NamedTuple):
    """An object that a pod names; path is that of the name, optional says that the pod does without it."""

    resource: Resource
    name: str
    path: str
    optional: bool = False


def of(part: Any, path: str) -> Iterator[Mention]:
    """Yield what a pod's spec, or a part of one, mentions; path is where that part stands."""
    if isinstance(part, list):
        for number, each in enumerate(part):
            yield from of(each, f"{path}[{number}]")
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        where = f"{path}.{key}"
        if key in _REFERENCES:
            resource, fields = _REFERENCES[key]
            field = next((each for each in fields if lenient.text(value, each)), fields[0])
            is_optional = lenient.mapping(value).get("optional") is True
            yield Mention(resource, lenient.text(value, field), f"{where}.{field}", is_optional)
        elif key == "imagePullSecrets":
            for number, each in enumerate(value if isinstance(value, list) else ()):
                yield Mention(SECRETS, lenient.text(each, "name"), f"{where}[{number}].name", optional=True)
        yield from of(value, where)
