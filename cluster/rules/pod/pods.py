"""Pods that come through the door: defaults, and the plug-ins LimitRanger, ServiceAccount, Priority and DefaultTolerationSeconds (§6.3).

The pods that controllers make do not pass here; a job's controller fills in
what it needs itself.
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
            if _is_filled_in(old):
                pod_defaults.fill_pod(spec)
        return
    pod_defaults.fill_pod(spec)
    ranges.fill_pod(pod, view)
    _set_account(pod, spec, view)
    _set_priority(pod, spec, view)
    _tolerate(spec)
    simulation.tolerate(spec)
    pod["status"] = {"phase": "Pending", "qosClass": quality(spec)}


def _is_filled_in(pod: Object) -> bool:
    spec = lenient.mapping(pod, "spec")
    filled = copy.deepcopy(spec)
    pod_defaults.fill_pod(filled)
    return filled == spec


def validate(pod: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a pod; what an update may change is `cluster.rules.pod.pod_updates`'s."""
    if old is not None and pod.get("spec") == old.get("spec"):
        return []
    found = templates.check(pod, "", elsewhere=view.runs_images())
    causes = [cause._replace(field=cause.field.removeprefix(".")) for cause in found]
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


def command_warnings(spec: Any, path: str, view: MachinesView, given: Collection[str] = ()) -> list[str]:
    """Name what cannot be run as it is: containers that have no command and are given none, or ask by gRPC, and volumes of tokens.

    A pod that may come to a simulated node is left alone: nothing runs there anyway.
    """
    if simulation.may_be_simulated(spec):
        return []
    containers = [
        (f"{path}.{kind}[{number}]", kind, container)
        for kind in ("initContainers", "containers")
        for number, container in enumerate(lenient.sequence(spec, kind))
    ]
    return [
        *(
            f"{where}.{field}.grpc: this machine cannot ask by gRPC, so the pod fails; use exec, httpGet or tcpSocket."
            for where, _, container in containers
            for field in probes.PROBES
            if lenient.mapping(container, field, "grpc")
        ),
        *(() if view.runs_images() else _tokens(spec, path)),
        *(missing if (missing := _missing_commands(containers, given)) and view.needs_commands() else ()),
    ]


def _tokens(spec: Any, path: str) -> list[str]:
    return [
        f"{path}.volumes[{number}].projected.sources[{at}].serviceAccountToken: pods are given no tokens of service "
        "accounts here, so its containers do not start; keep what kubectl create token prints in a Secret, and take that as the source."
        for number, volume in enumerate(lenient.sequence(spec, "volumes"))
        for at, source in enumerate(lenient.sequence(volume, "projected", "sources"))
        if "serviceAccountToken" in lenient.mapping(source)
    ]


def _missing_commands(containers: list[tuple[str, str, Any]], given: Collection[str]) -> list[str]:
    return [
        f"{where}.command: this machine runs commands and uses no image, so the pod fails without one; "
        f"give container {lenient.text(container, 'name')} a command, or have podman or docker installed there."
        for where, kind, container in containers
        if not node_engines.has_command(lenient.texts(container, "command"), lenient.texts(container, "args"))
        and not (kind == "containers" and lenient.text(container, "name") in given)
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
    if spec.get("priority") not in (None, value):
        detail = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise Forbidden.of("pods", _name(pod), detail)
    if (spec.get("preemptionPolicy") or policy) != policy:
        detail = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise Forbidden.of("pods", _name(pod), detail)
    if chosen.name:
        spec["priorityClassName"] = chosen.name
    spec["priority"], spec["preemptionPolicy"] = value, policy


def default_class(view: RulesView) -> PriorityClass:
    """Return the class of pods that name none."""
    return priorities.default_of(priorities.read(each) for each in view.priority_classes())


def _tolerate(spec: dict[str, Any]) -> None:
    """Let the pod stay for a while on a node that is not heard of."""
    tolerations = list(spec.get("tolerations") or ())
    for key in TOLERATED:
        if not any(_covers(each, key) for each in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_S}
            )
    spec["tolerations"] = tolerations


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def quality(spec: Object) -> str:
    """Return the quality of service class: Guaranteed, Burstable or BestEffort."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    counted = [spec] if pod_defaults.asked_as_a_whole(spec) else containers
    asked = [(_compute(each, "requests"), _compute(each, "limits")) for each in counted]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    whole = all(len(limits) == len(COMPUTE) and requests == limits for requests, limits in asked)
    return "Guaranteed" if whole else "Burstable"


def _compute(owner: Object, field: str) -> dict[str, Any]:
    written = lenient.mapping(owner, "resources", field)
    amounts = {name: amount(written[name]) for name in COMPUTE if written.get(name) is not None}
    return {name: value for name, value in amounts.items() if value}


def _name(pod: Object) -> str:
    metadata = pod["metadata"]
    return metadata.get("name") or metadata.get("generateName") or ""
