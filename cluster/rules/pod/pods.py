"""Pods that come through the door: defaults, and the plug-ins LimitRanger, ServiceAccount, Priority and DefaultTolerationSeconds (§6.3).

The pods that controllers make do not pass here; a job's controller fills in what it needs itself.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, Protocol

from cluster.rules import disruption_annotations, ranges, simulation
from cluster.rules.checks import RulesView, amount
from cluster.rules.node import node_engines
from cluster.rules.pod import pod_defaults, probes, templates
from kube import lenient, priorities
from kube.errors import Cause, Forbidden
from kube.meta import Object
from kube.priorities import PriorityClass

DEFAULT_ACCOUNT = "default"
TOLERATED_S = 300
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
COMPUTE = ("cpu", "memory")


def default(pod: Object, old: Object | None, view: RulesView) -> None:
    """Fill in what a pod leaves open; what depends on the cluster only when it is created."""
    spec = pod.setdefault("spec", {})
    if old is not None:
        # Controllers leave out what they do not need: filling that in now would look like a change.
        if spec != old.get("spec"):
            simulation.tolerate(spec)
            filled = copy.deepcopy(lenient.mapping(old, "spec"))
            pod_defaults.fill_pod(filled)
            if filled == lenient.mapping(old, "spec"):
                pod_defaults.fill_pod(spec)
        return
    pod_defaults.fill_pod(spec)
    ranges.fill_pod(pod, view)
    _set_account(pod, spec, view)
    _set_priority(pod, spec, view)
    # It stays for a while on a node whose lease is not renewed.
    tolerations = spec["tolerations"] = list(spec.get("tolerations") or ())
    for key in TOLERATED:
        if not any(
            each.get("key") in (key, None, "") and each.get("effect") in ("NoExecute", None, "") for each in tolerations
        ):
            bearing = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**bearing, "tolerationSeconds": TOLERATED_S})
    simulation.tolerate(spec)
    pod["status"] = {"phase": "Pending", "qosClass": quality(spec)}


def validate(pod: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a pod; what an update may change is `cluster.rules.pod.pod_updates`'s."""
    if old is not None and pod.get("spec") == old.get("spec"):
        return []
    problems = templates.check(pod, "", elsewhere=view.runs_images())
    causes = [cause._replace(field=cause.field.removeprefix(".")) for cause in problems]
    return causes if old is not None else [*causes, *disruption_annotations.check_pod(pod)]


class MachinesView(Protocol):
    """What may be asked about what machines run."""

    def needs_commands(self) -> bool: ...
    def runs_images(self) -> bool: ...


def warn(pod: Object, old: Object | None, view: RulesView) -> list[str]:
    """Return what a person should know about a pod although it is accepted."""
    if old is not None:
        return []
    return [*command_warnings(lenient.mapping(pod, "spec"), "spec", view), *simulation.warnings(pod, "")]


def command_warnings(spec: Any, path: str, view: MachinesView, with_command: Collection[str] = ()) -> list[str]:
    """Name what cannot be run as it is: containers that have no command and are given none, or ask by gRPC, and volumes of tokens.

    A pod that may come to a simulated node is left alone: nothing runs there anyway.
    """
    if simulation.may_be_simulated(spec):
        return []
    by_grpc: list[str] = []
    commandless: list[str] = []
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(lenient.sequence(spec, kind)):
            where, name = f"{path}.{kind}[{number}]", lenient.text(container, "name")
            by_grpc += (
                f"{where}.{field}.grpc: this machine cannot ask by gRPC, so the pod fails; use exec, httpGet or tcpSocket."
                for field in probes.PROBES
                if lenient.mapping(container, field, "grpc")
            )
            has_other_command = kind == "containers" and name in with_command
            command, args = lenient.texts(container, "command"), lenient.texts(container, "args")
            if not has_other_command and not node_engines.has_command(command, args):
                commandless.append(
                    f"{where}.command: this machine runs commands and uses no image, so the pod fails without one; "
                    f"give container {name} a command, or have podman or docker installed there."
                )
    tokens = [
        f"{path}.volumes[{number}].projected.sources[{at}].serviceAccountToken: pods are given no tokens of service "
        "accounts here, so its containers do not start; keep what kubectl create token prints in a Secret, and take that as the source."
        for number, volume in enumerate(lenient.sequence(spec, "volumes"))
        for at, source in enumerate(lenient.sequence(volume, "projected", "sources"))
        if "serviceAccountToken" in lenient.mapping(source)
    ]
    return [
        *by_grpc,
        *(tokens if tokens and not view.runs_images() else ()),
        *(commandless if commandless and view.needs_commands() else ()),
    ]


def _set_account(pod: Object, spec: dict[str, Any], view: RulesView) -> None:
    """Give the pod its service account; `default` is not asked for, because every namespace gets it."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = pod["metadata"]["namespace"]
    account = view.service_account(namespace, name)
    if account is None and name != DEFAULT_ACCOUNT:
        detail = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise Forbidden.of("pods", _name(pod), detail)
    if account and account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]


def _set_priority(pod: Object, spec: dict[str, Any], view: RulesView) -> None:
    name = spec.get("priorityClassName") or ""
    named = view.priority_class(name) if name else None
    if named is None and name:
        raise Forbidden.of("pods", _name(pod), f"no PriorityClass with name {name} was found")
    chosen = priorities.read(named) if named else default_class(view)
    value, policy = chosen.value, "PreemptLowerPriority" if chosen.preempts else priorities.NEVER
    fields = (
        ("priority", "integer value of priority", value),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    )
    for field, called, computed in fields:
        if spec.get(field) not in (None, "", computed):
            detail = (
                f"the {called} ({spec[field]}) must not be provided in pod spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name"
            )
            raise Forbidden.of("pods", _name(pod), detail)
    if chosen.name:
        spec["priorityClassName"] = chosen.name
    spec["priority"], spec["preemptionPolicy"] = value, policy


def default_class(view: RulesView) -> PriorityClass:
    """Return the class of pods that name none."""
    return priorities.default_of(priorities.read(each) for each in view.priority_classes())


def quality(spec: Object) -> str:
    """Return the quality of service class: Guaranteed, Burstable or BestEffort."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    counted = [spec] if pod_defaults.has_pod_level_resources(spec) else containers
    pairs = [(_compute(each, "requests"), _compute(each, "limits")) for each in counted]
    if not any(requests or limits for requests, limits in pairs):
        return "BestEffort"
    whole = all(len(limits) == len(COMPUTE) and requests == limits for requests, limits in pairs)
    return "Guaranteed" if whole else "Burstable"


def _compute(owner: Object, field: str) -> dict[str, Any]:
    written = lenient.mapping(owner, "resources", field)
    amounts = {name: amount(written[name]) for name in COMPUTE if written.get(name) is not None}
    return {name: value for name, value in amounts.items() if value}


def _name(pod: Object) -> str:
    metadata = pod["metadata"]
    return metadata.get("name") or metadata.get("generateName") or ""
