"""Pod specs, on their own and in templates: as much of Kubernetes' validation as the schema cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from cluster.rules import gates
from cluster.rules.pod import probes, security_contexts
from kube import lenient, mount_paths, names, quantity
from kube.errors import Cause, duplicate, invalid, not_supported, required
from kube.kinds.core import RestartPolicy, TaintEffect

NUL = "must not hold a NUL character, at which a process stops reading; remove it."
NO_STEPS_BACK = "must not contain '..'"
NAMED_SOURCES = (("configMap", "name", "config map"), ("secret", "secretName", "secret"))
_FRACTIONS_ALLOWED = ("cpu", "memory", "ephemeral-storage")


def check(template: Any, path: str, *, elsewhere: bool = False) -> list[Cause]:
    """Return everything wrong with a pod template that is right by its schema.

    elsewhere: its containers run in another cluster, whose machines decide where they have volumes.
    """
    causes = list(check_metadata(lenient.mapping(template, "metadata"), f"{path}.metadata"))
    spec, where = lenient.mapping(template, "spec"), f"{path}.spec"
    containers = lenient.sequence(spec, "containers")
    if not containers:
        causes.append(required(f"{where}.containers", "a pod needs a container; add one with a name and a command."))
    seen: set[str] = set()
    grace_s = lenient.whole(spec, "terminationGracePeriodSeconds")
    volumes = {lenient.text(volume, "name") for volume in lenient.sequence(spec, "volumes")}
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(lenient.sequence(spec, kind)):
            at = f"{where}.{kind}[{number}]"
            causes += _check_container(container, at, seen, volumes)
            for index, mount in enumerate(() if elsewhere else lenient.sequence(container, "volumeMounts")):
                mount_path = lenient.text(mount, "mountPath")
                if mount_path and (problem := mount_paths.problem(mount_path)):
                    causes.append(invalid(f"{at}.volumeMounts[{index}].mountPath", mount_path, problem))
            causes += probes.check(container, at, init=kind == "initContainers", grace_s=grace_s)
    policy = lenient.text(spec, "restartPolicy")
    if policy and policy not in tuple(RestartPolicy):
        causes.append(not_supported(f"{where}.restartPolicy", policy, RestartPolicy))
    causes += _check_names(spec, where)
    causes += gates.check(spec, where)
    causes += security_contexts.check(spec, where)
    for number, toleration in enumerate(lenient.sequence(spec, "tolerations")):
        causes += _check_toleration(toleration, f"{where}.tolerations[{number}]")
    return causes


def forever(template: Any) -> bool:
    """Say whether the containers start again whenever they end, so that the pod never ends."""
    return lenient.text(template, "spec", "restartPolicy") in ("", RestartPolicy.ALWAYS)


def whole_cpus(template: Any) -> Iterator[tuple[str, bool]]:
    """Say for each container, by its path, whether it asks for a whole number of CPUs (at least one)."""
    spec = lenient.mapping(template, "spec")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(lenient.sequence(spec, kind)):
            resources = lenient.mapping(container, "resources")
            requested = lenient.mapping(resources, "requests") or lenient.mapping(resources, "limits")
            cpu = _value(requested.get("cpu"))
            yield f"spec.{kind}[{number}]", cpu is not None and cpu > 0 and cpu.denominator == 1


def check_metadata(metadata: dict[str, Any], path: str) -> Iterator[Cause]:
    """Say what is wrong with the labels and annotations of a template."""
    for field in ("labels", "annotations"):
        for key, value in lenient.mapping(metadata, field).items():
            problem = names.qualified_name(str(key))
            if problem:
                yield invalid(f"{path}.{field}", key, problem)
            problem = names.label_value(value) if field == "labels" and isinstance(value, str) else None
            if problem:
                yield invalid(f"{path}.{field}[{key}]", value, problem)


def _check_names(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    for field in ("hostname", "subdomain"):
        value = lenient.text(spec, field)
        problem = names.dns_label(value) if value else None
        if problem:
            yield invalid(f"{path}.{field}", value, problem)
    node = lenient.text(spec, "nodeName")
    if problem := names.dns_subdomain(node) if node else None:
        yield invalid(f"{path}.nodeName", node, problem)
    seen: set[str] = set()
    for number, volume in enumerate(lenient.sequence(spec, "volumes")):
        name = lenient.text(volume, "name")
        if not name:
            yield required(f"{path}.volumes[{number}].name", "a volume needs a name that containers mount it by.")
        elif name in seen:
            yield duplicate(f"{path}.volumes[{number}].name", name)
        elif problem := names.dns_label(name):
            yield invalid(f"{path}.volumes[{number}].name", name, problem)
        seen.add(name)
        # A volume of an object's keys names the object; claims and paths have the schema's own word for that.
        for kind, field, called in NAMED_SOURCES:
            source = volume.get(kind) if isinstance(volume, dict) else None
            if isinstance(source, dict) and not lenient.text(source, field):
                detail = f"name the {called} whose keys are the volume's files."
                yield required(f"{path}.volumes[{number}].{kind}.{field}", detail)
        yield from _check_files(volume, f"{path}.volumes[{number}]")


def _check_toleration(toleration: Any, path: str) -> Iterator[Cause]:
    key, operator, value, effect = (lenient.text(toleration, field) for field in ("key", "operator", "value", "effect"))
    if problem := names.qualified_name(key) if key else None:
        yield invalid(f"{path}.key", key, problem)
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if lenient.whole(toleration, "tolerationSeconds") is not None and effect != TaintEffect.NO_EXECUTE:
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    if operator == "Exists" and value:
        yield invalid(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'")
    elif problem := names.label_value(value):
        yield invalid(f"{path}.operator", value, problem)


def _check_container(container: Any, path: str, seen: set[str], volumes: set[str]) -> Iterator[Cause]:
    name = lenient.text(container, "name")
    if not name:
        yield required(f"{path}.name", "a container needs a name, for example main.")
    elif name in seen:
        yield duplicate(f"{path}.name", name)
    elif problem := names.dns_label(name):
        yield invalid(f"{path}.name", name, problem)
    seen.add(name)
    # What a process is given ends at a NUL, so it would get less than was written.
    for field in ("command", "args"):
        for number, text in enumerate(lenient.sequence(container, field)):
            if isinstance(text, str) and "\0" in text:
                yield invalid(f"{path}.{field}[{number}]", text, NUL)
    if "\0" in lenient.text(container, "workingDir"):
        yield invalid(f"{path}.workingDir", lenient.text(container, "workingDir"), NUL)
    yield from _check_environment(lenient.sequence(container, "env"), f"{path}.env")
    yield from _check_mounts(lenient.sequence(container, "volumeMounts"), f"{path}.volumeMounts", volumes)
    yield from _check_resources(lenient.mapping(container, "resources"), f"{path}.resources")


def _check_environment(variables: list[Any], path: str) -> Iterator[Cause]:
    for number, variable in enumerate(variables):
        name = lenient.text(variable, "name")
        if not name:
            yield required(f"{path}[{number}].name", "a variable needs a name.")
        elif problem := names.env_name(name):
            yield invalid(f"{path}[{number}].name", name, problem)
        if "\0" in lenient.text(variable, "value"):
            yield invalid(f"{path}[{number}].value", lenient.text(variable, "value"), NUL)
        if lenient.text(variable, "value") and lenient.mapping(variable, "valueFrom"):
            yield invalid(f"{path}[{number}].valueFrom", name, "may not be given beside value; remove one of the two.")


def _check_mounts(mounts: list[Any], path: str, volumes: set[str]) -> Iterator[Cause]:
    taken: set[str] = set()
    for number, mount in enumerate(mounts):
        name, where = lenient.text(mount, "name"), lenient.text(mount, "mountPath")
        if name not in volumes:
            detail = f"no volume of the pod has this name; add it under spec.volumes or mount one of {sorted(volumes)}."
            yield invalid(f"{path}[{number}].name", name, detail)
        if not where:
            yield required(f"{path}[{number}].mountPath", "say where the container sees the volume, such as /data.")
        elif where in taken:
            yield duplicate(f"{path}[{number}].mountPath", where)
        taken.add(where)
        yield from _check_descending(lenient.text(mount, "subPath"), f"{path}[{number}].subPath")
        expression = lenient.text(mount, "subPathExpr")
        if expression and lenient.text(mount, "subPath"):
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{path}[{number}].subPathExpr", expression, detail)
        yield from _check_descending(expression, f"{path}[{number}].subPathExpr")


def _check_files(volume: Any, path: str) -> Iterator[Cause]:
    """The paths in a volume: of the keys of objects and fields of the pod, and of the machine."""
    host = lenient.text(volume, "hostPath", "path")
    if ".." in host.split("/"):
        yield invalid(f"{path}.hostPath.path", host, NO_STEPS_BACK)
    sources = [(path, volume)]
    for number, source in enumerate(lenient.sequence(volume, "projected", "sources")):
        sources.append((f"{path}.projected.sources[{number}]", source))
    for where, source in sources:
        for kind in ("configMap", "secret", "downwardAPI"):
            for number, item in enumerate(lenient.sequence(source, kind, "items")):
                field, written = f"{where}.{kind}.items[{number}].path", lenient.text(item, "path")
                yield from _check_descending(written, field)
                if written.startswith("..") and not written.startswith("../"):
                    yield invalid(field, written, "must not start with '..'")


def _check_descending(written: str, path: str) -> Iterator[Cause]:
    if written.startswith("/"):
        yield invalid(path, written, "must be a relative path")
    if ".." in written.split("/"):
        yield invalid(path, written, NO_STEPS_BACK)


def _check_resources(resources: dict[str, Any], path: str) -> Iterator[Cause]:
    requests, limits = lenient.mapping(resources, "requests"), lenient.mapping(resources, "limits")
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, written in amounts.items():
            where, value = f"{path}.{field}[{name}]", _value(written)
            if problem := names.qualified_name(str(name)):
                yield invalid(where, name, problem)
            if value is None:
                continue  # the schema tells what is wrong with the text
            if value < 0:
                yield invalid(where, written, "must be greater than or equal to 0; remove the minus sign.")
            elif value.denominator != 1 and name not in _FRACTIONS_ALLOWED:
                yield invalid(where, written, f"must be an integer: {name} cannot be divided.")
    for name, written in requests.items():
        requested, limit = _value(written), _value(limits.get(name))
        if requested is not None and limit is not None and requested > limit:
            detail = f"must be less than or equal to the {name} limit of {limits[name]}; lower it or raise the limit."
            yield invalid(f"{path}.requests[{name}]", written, detail)


def _value(written: Any) -> Fraction | None:
    try:
        return quantity.parse(written)
    except quantity.QuantityError:
        return None
