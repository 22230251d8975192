"""A container's environment, command and arguments, as Kubernetes works them out: pure.

Nothing of the cluster's own environment gets in; `base` is all that a
container has beside what its pod gives it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from kube import amounts, quantity
from kube.kinds.core import Container, EnvVar, KeyRef, Pod, ResourceFieldRef
from kube.meta import Object, parse_time
from node.status import PodAddress

_REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_NAME = re.compile(r"[!-<>-~]+")  # what Kubernetes lets a variable's name be: printable, without "="


class ConfigError(Exception):
    """A container cannot be made ready for now: something that it refers to is not there."""


class Claim(NamedTuple):
    """A PersistentVolumeClaim: its uid, and when it was made, in seconds since the epoch."""

    uid: str
    created: float


class Lookup(Protocol):
    """What the node reads from the cluster; None when there is no ConfigMap, Secret or claim of a name."""

    def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the values of a ConfigMap by key."""

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the values of a Secret by key."""

    def claim(self, namespace: str, name: str) -> Claim | None:
        """Return a claim."""

    def existing_claims(self, uids: Collection[str]) -> set[str]:
        """Return which of these claims there are."""

    def cluster(self) -> str:
        """Return the cluster's uid; "" where it has none."""

    def host_paths(self, pod: Pod) -> tuple[str, ...]:
        """Return the directories of this machine below which a pod may mount; none when it may not at all."""

    def is_administrators(self, pod: Pod) -> bool:
        """Whether everybody who had a hand in a pod is an administrator of all namespaces."""


class Command(NamedTuple):
    """What is executed."""

    argv: list[str]
    env: dict[str, str]


def base(pod: Pod, cwd: str, tmp: str) -> dict[str, str]:
    """Return the variables that every container has.

    PYTHONUNBUFFERED makes Python's output appear in the log when it is printed
    instead of when the program ends; a pod may set it to something else.
    """
    return {
        "PATH": search_path(),
        "HOME": cwd,
        "HOSTNAME": pod.spec.hostname or pod.metadata.name,
        "TMPDIR": tmp,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def search_path() -> str:
    """Return this machine's search path without the environment that the cluster itself runs in."""
    own = str(Path(sys.prefix) / "bin") if sys.prefix != sys.base_prefix else ""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder and folder != own]
    return os.pathsep.join(folders) or os.defpath


def command(
    pod: Pod,
    container: Container,
    address: PodAddress,
    initial: Mapping[str, str],
    lookup: Lookup,
    allocatable: Mapping[str, int],
) -> Command:
    """Return the container's argument list and environment, with every $(VAR) expanded.

    initial are the variables to start from; ConfigError says what is missing.
    """
    env = dict(initial)
    for source in container.env_from:
        env |= _all_of(pod, source.config_map_ref, source.secret_ref, source.prefix, lookup)
    for variable in container.env:
        value = _value(pod, container, variable, address, env, lookup, allocatable)
        if value is not None:
            env[variable.name] = value
    argv = [expand(text, env) for text in (*container.command, *container.args)]
    return Command(argv, {name: value for name, value in env.items() if "\0" not in value})


def expand(text: str, env: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value and $$ by $; a name without a value stays as it is written."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def unknown(text: str, env: Mapping[str, str]) -> str:
    """Return the first name that a text refers to and that has no value; "" when all have one."""
    names = (match[1] for match in _REFERENCE.finditer(text) if match[0] != "$$")
    return next((name for name in names if name not in env), "")


def _all_of(pod: Pod, config_map: object, secret: object, prefix: str, lookup: Lookup) -> dict[str, str]:
    variables: dict[str, str] = {}
    for reference, kind, get in ((config_map, "configmap", lookup.config_map), (secret, "secret", lookup.secret)):
        if reference is None:
            continue
        name: str = getattr(reference, "name", "")
        values = get(pod.metadata.namespace, name)
        if values is None:
            if not getattr(reference, "optional", None):
                raise ConfigError(f'{kind} "{name}" not found')
            continue
        variables |= {
            prefix + key: value.decode(errors="replace")
            for key, value in values.items()
            if _NAME.fullmatch(prefix + key)
        }
    return variables


def _value(
    pod: Pod,
    container: Container,
    variable: EnvVar,
    address: PodAddress,
    env: Mapping[str, str],
    lookup: Lookup,
    allocatable: Mapping[str, int],
) -> str | None:
    source = variable.value_from
    if source is None:
        return expand(variable.value, env)
    if source.field_ref is not None:
        return pod_field(pod, source.field_ref.field_path, address)
    if source.resource_field_ref is not None:
        return resource_field(pod, container, source.resource_field_ref, allocatable)
    if source.config_map_key_ref is not None:
        return _key(pod, source.config_map_key_ref, "configmap", lookup)
    if source.secret_key_ref is not None:
        return _key(pod, source.secret_key_ref, "secret", lookup)
    return None


def _key(pod: Pod, reference: KeyRef, kind: str, lookup: Lookup) -> str | None:
    get = lookup.config_map if kind == "configmap" else lookup.secret
    values = get(pod.metadata.namespace, reference.name)
    if values is not None and reference.key in values:
        return values[reference.key].decode(errors="replace")
    if reference.optional:
        return None
    if values is None:
        raise ConfigError(f'{kind} "{reference.name}" not found')
    raise ConfigError(f'{kind} "{reference.name}" has no key "{reference.key}"')


def pod_field(pod: Pod, path: str, address: PodAddress) -> str:
    """Return a field of the pod as text (the paths that Kubernetes allows)."""
    plain = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": address.host_ip,
        "status.hostIPs": address.host_ip,
        "status.podIP": address.pod_ip,
        "status.podIPs": address.pod_ip,
    }
    if path in plain:
        return plain[path]
    maps = {"labels": pod.metadata.labels, "annotations": pod.metadata.annotations}
    if path.startswith("metadata.") and path.removeprefix("metadata.") in maps:
        entries = maps[path.removeprefix("metadata.")]
        return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
    match = _SUBSCRIPT.fullmatch(path)
    if match is None:
        raise ConfigError(f'the pod has no field "{path}" that can be referred to')
    return maps[match[1]].get(match[2], "")


def resource_field(pod: Pod, container: Container, reference: ResourceFieldRef, allocatable: Mapping[str, int]) -> str:
    """Return a request or limit of a container; what is not limited counts as all that the node has."""
    named = [one for one in (*pod.spec.containers, *pod.spec.init_containers) if one.name == reference.container_name]
    owner = named[0] if named else container
    side, _, resource = reference.resource.partition(".")
    if side not in ("limits", "requests"):
        raise ConfigError(f'"{reference.resource}" is not a request or limit of a container')
    amount = amounts.of(getattr(owner.resources, side)).get(resource)
    if amount is None and side == "limits":
        amount = allocatable.get(resource)
    divisor = quantity.parse(str(reference.divisor)) if reference.divisor else 1
    unit = 1000 if resource == "cpu" else 1
    return str(-(-(amount or 0) // (unit * divisor or 1)))


def claim_of(obj: Object) -> Claim:
    """Return a stored claim as far as a node needs it."""
    meta = obj["metadata"]
    return Claim(meta["uid"], parse_time(meta["creationTimestamp"]) / 1000)


def decoded(data: Mapping[str, str], binary: Mapping[str, str]) -> dict[str, bytes]:
    """Return texts as they are and base64 values decoded; what is not base64 is left out."""
    values = {key: text.encode() for key, text in data.items()}
    for key, text in binary.items():
        try:
            values[key] = base64.b64decode(text)
        except binascii.Error:
            continue
    return values
