"""What Kubernetes fills in in pod specs: in every one, in templates too, and in those of pods alone.

`tests/golden/kubernetes/defaults.json` has what a kube-apiserver fills in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.rules.pod import probes
from kube import amounts, lenient

FILE_MODE = 0o644
TOKEN_S = 3600  # how long a token in a volume holds
OVERCOMMITTED = ("cpu", "memory")  # of which a pod may be limited to more than it asks for
HUGE_PAGES = "hugepages-"
CONTAINERS = ("initContainers", "containers")
_TEXTS = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
_OF_FILES = ("configMap", "secret", "downwardAPI", "projected")


def fill_pod(spec: dict[str, Any]) -> None:
    """Fill in the spec of a pod."""
    for container in _containers(spec):
        resources = lenient.mapping(container, "resources")
        if resources.get("limits"):
            # What is limited and not asked for is asked for.
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    _fill_whole(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    fill_host_ports(spec)
    fill_template(spec)


def fill_host_ports(spec: dict[str, Any]) -> None:
    """In the network of its machine a pod's ports are the machine's; the containers themselves stay as they are."""
    if spec.get("hostNetwork") is not True:
        return
    for kind in CONTAINERS:
        if not spec.get(kind):
            continue
        filled = []
        for container in spec[kind]:
            ports = lenient.sequence(container, "ports")
            ports = [{**port, "hostPort": port.get("hostPort") or port.get("containerPort", 0)} for port in ports]
            filled.append({**container, "ports": ports} if ports else container)
        spec[kind] = filled


def fill_template(spec: dict[str, Any]) -> None:
    """Fill in what every pod spec has, also that of a template."""
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    for field, value in _TEXTS.items():
        spec[field] = spec.get(field) or value
    for container in _containers(spec):
        _fill_container(container)
    for volume in lenient.sequence(spec, "volumes"):
        _fill_volume(volume)


def has_pod_level_resources(spec: dict[str, Any]) -> bool:
    """Say whether a pod asks for something as a whole, beside what its containers ask for."""
    resources = lenient.mapping(spec, "resources")
    return any(_is_whole(name) for field in ("requests", "limits") for name in lenient.mapping(resources, field))


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in CONTAINERS:
        yield from lenient.sequence(spec, kind)


def _is_whole(name: str) -> bool:
    return name in OVERCOMMITTED or name.startswith(HUGE_PAGES)


def _fill_whole(spec: dict[str, Any]) -> None:
    """Fill in what a pod asks for as a whole: what its containers ask for, or what it is limited to."""
    resources = lenient.mapping(spec, "resources")
    limits, requests = (dict(lenient.mapping(resources, field)) for field in ("limits", "requests"))
    if not limits and not requests:
        return
    counted = {kind: spec.get(kind) or [] for kind in CONTAINERS}
    for name, written in amounts.resource_list(amounts.pod_limits(counted)).items():
        if name.startswith(HUGE_PAGES) and name not in requests:
            limits.setdefault(name, written)
    if not limits:
        return
    of_containers = amounts.resource_list(amounts.pod_request(counted))
    whole_requests = {
        **{name: written for name, written in limits.items() if _is_whole(name)},
        **{name: written for name, written in of_containers.items() if name in OVERCOMMITTED},
        **requests,
    }
    spec["resources"] = {**resources, "limits": limits, **({"requests": whole_requests} if whole_requests else {})}


def _fill_container(container: dict[str, Any]) -> None:
    container["terminationMessagePath"] = container.get("terminationMessagePath") or "/dev/termination-log"
    container["terminationMessagePolicy"] = container.get("terminationMessagePolicy") or "File"
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(lenient.text(container, "image"))
    if container.get("resources") is None:
        container["resources"] = {}
    for port in lenient.sequence(container, "ports"):
        port["protocol"] = port.get("protocol") or "TCP"
    for variable in lenient.sequence(container, "env"):
        _fill_field(lenient.mapping(variable, "valueFrom", "fieldRef"))
        file = lenient.mapping(variable, "valueFrom", "fileKeyRef")
        if file and file.get("optional") is None:
            file["optional"] = False
    probes.default(container)


def _fill_field(source: dict[str, Any]) -> None:
    if source:
        source["apiVersion"] = source.get("apiVersion") or "v1"


def _pull_policy(image: str) -> str:
    """Return when an image is pulled: always where its name says that it changes, by the tag `latest` or by none."""
    name, _, digest = image.rpartition("/")[2].partition("@")
    tag = name.partition(":")[2] or ("" if digest or not name else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _fill_volume(volume: dict[str, Any]) -> None:
    if not set(volume) - {"name"}:
        volume["emptyDir"] = {}
    for kind in _OF_FILES:
        source = volume.get(kind)
        if isinstance(source, dict):
            if source.get("defaultMode") is None:
                source["defaultMode"] = FILE_MODE
            _fill_files(source)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    image = lenient.mapping(volume, "image")
    if image:
        image["pullPolicy"] = image.get("pullPolicy") or _pull_policy(lenient.text(image, "reference"))
    claim = lenient.mapping(volume, "ephemeral", "volumeClaimTemplate")
    if claim:
        claim.setdefault("metadata", {})
        wanted = claim["spec"] = dict(claim.get("spec") or {})
        wanted["volumeMode"] = wanted.get("volumeMode") or "Filesystem"


def _fill_files(source: dict[str, Any]) -> None:
    for item in lenient.sequence(source, "items"):
        _fill_field(lenient.mapping(item, "fieldRef"))
    for projected in lenient.sequence(source, "sources"):
        _fill_files(lenient.mapping(projected, "downwardAPI"))
        token = lenient.mapping(projected, "serviceAccountToken")
        if token and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = TOKEN_S
