"""What ResourceQuotas count and refuse (reference: kubernetes-api §6.3).

Pure: objects go in; what they use, and why there is no room for one more,
come out. Amounts are whole numbers (`kube.amounts`). Texts are Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cluster.rules.pod.pods import quality
from kube import amounts, lenient, quantity
from kube.amounts import Amounts
from kube.kinds.limits import QuotaScope
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.resources import CLAIMS, CONFIGMAPS, PODS, RESOURCE_QUOTAS, SECRETS, SERVICES, Resource

COMPUTE = ("cpu", "memory")
MUST_BE_SPECIFIED = tuple(f"{prefix}{name}" for name in COMPUTE for prefix in ("", "requests.", "limits."))
PLAIN = (*COMPUTE, "ephemeral-storage")
# Kinds that quotas count by their plain names too.
ALIASED = frozenset(kind.id for kind in (SERVICES, SECRETS, CONFIGMAPS, RESOURCE_QUOTAS, CLAIMS))
# Of these kinds it takes the object to know what it uses; of the others one is like another.
WEIGHED = frozenset(kind.id for kind in (PODS, CLAIMS, SERVICES))
STORAGE_CLASS = ".storageclass.storage.k8s.io/"


class Scope(NamedTuple):
    """One condition on the pods that a quota counts."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


class Quota(NamedTuple):
    """What a ResourceQuota bounds."""

    name: str
    hard: Amounts
    scopes: tuple[Scope, ...] = ()

    def counts(self, resource: Resource) -> bool:
        """Whether objects of a kind may count; with scopes only pods do."""
        if self.scopes and resource.id != PODS.id:
            return False
        return any(is_about(name, resource) for name in self.hard)

    def counts_object(self, resource: Resource, obj: Object) -> bool:
        """Whether an object counts."""
        return self.counts(resource) and all(_in_scope(scope, obj) for scope in self.scopes)


def read(quota: Object) -> Quota:
    """Read a quota as it is stored."""
    spec = lenient.mapping(quota, "spec")
    scopes = [Scope(name) for name in spec.get("scopes") or ()]
    scopes += (
        Scope(each.get("scopeName") or "", each.get("operator") or "", tuple(each.get("values") or ()))
        for each in lenient.mapping(spec, "scopeSelector").get("matchExpressions") or ()
    )
    hard = {name: _amount(name, written) for name, written in (spec.get("hard") or {}).items()}
    return Quota(quota["metadata"]["name"], hard, tuple(scopes))


def is_about(name: str, resource: Resource) -> bool:
    """Whether the name of an amount is one that objects of a kind use."""
    if name == f"count/{resource.id}":
        return True
    if resource.id == PODS.id:
        of_others = name in ALIASED or name in ("requests.storage", "replicationcontrollers")
        return not (of_others or name.startswith(("count/", "services.")) or STORAGE_CLASS in name)
    if resource.id == CLAIMS.id:
        return name in (CLAIMS.id, "requests.storage") or STORAGE_CLASS in name
    if resource.id == SERVICES.id:
        return name.partition(".")[0] == SERVICES.id
    return name == resource.id and name in ALIASED


def usage(resource: Resource, obj: Object) -> Amounts:
    """Return what an object uses, under all names that a quota may have for it."""
    used: Amounts = {f"count/{resource.id}": 1}
    if resource.id in ALIASED:
        used[resource.id] = 1
    if resource.id == PODS.id:
        used |= _pod_usage(obj)
    elif resource.id == CLAIMS.id:
        spec, of_class = lenient.mapping(obj, "spec"), {CLAIMS.id: 1}
        requested = lenient.mapping(spec, "resources", "requests").get("storage")
        if requested is not None:
            of_class["requests.storage"] = _amount("storage", requested)
        used |= of_class
        if spec.get("storageClassName"):
            used |= {f"{spec['storageClassName']}{STORAGE_CLASS}{name}": each for name, each in of_class.items()}
    elif resource.id == SERVICES.id:
        spec = lenient.mapping(obj, "spec")
        kind, ports = spec.get("type"), len(spec.get("ports") or ())
        if kind == "LoadBalancer":
            ports = ports if spec.get("allocateLoadBalancerNodePorts") is not False else 0
            used["services.loadbalancers"] = 1
        if kind in ("NodePort", "LoadBalancer"):
            used["services.nodeports"] = ports
    return used


def _pod_usage(pod: Object) -> Amounts:
    """A pod that ended only counts as an object."""
    if lenient.mapping(pod, "status").get("phase") in ENDED:
        return {}
    spec = lenient.mapping(pod, "spec")
    used: Amounts = {}
    for name, amount in amounts.pod_request(spec).items():
        if name == "pods" or name in PLAIN or name.startswith("hugepages-"):
            used[name] = amount
        if name != "pods":
            used[f"requests.{name}"] = amount
    for name, amount in amounts.pod_limits(spec).items():
        if name in PLAIN:
            used[f"limits.{name}"] = amount
    return used


def missing(quota: Quota, pod: Object) -> str:
    """Say which containers leave open what a quota needs to know; "" when none does."""
    wanted = [name for name in sorted(MUST_BE_SPECIFIED) if name in quota.hard]
    spec, texts = lenient.mapping(pod, "spec"), []
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for name in wanted:
        unspecified = sorted({each.get("name") or "" for each in containers if not _specifies(each, name, spec)})
        if unspecified:
            texts.append(f"{name} for: {','.join(unspecified)}")
    return f"must specify {'; '.join(texts)}" if texts else ""


def _specifies(container: Object, name: str, spec: Object) -> bool:
    prefix, _, plain = name.rpartition(".")
    for resources in (lenient.mapping(container, "resources"), lenient.mapping(spec, "resources")):
        # What is limited and not asked for is asked for.
        kinds = ("limits",) if prefix == "limits" else ("requests", "limits")
        if any((resources.get(kind) or {}).get(plain) is not None for kind in kinds):
            return True
    return False


def refusal(
    quotas: Iterable[Quota], used: Mapping[str, Amounts], resource: Resource, obj: Object, more: Amounts
) -> str:
    """Say why an object that uses `more` may not be made; "" when it may. `used` is by the names of quotas."""
    concerned = [quota for quota in quotas if quota.counts_object(resource, obj)]
    if resource.id == PODS.id:
        for quota in concerned:
            if text := missing(quota, obj):
                return f"failed quota: {quota.name}: {text}"
    for quota in concerned:
        if text := exceeded(quota, used.get(quota.name, {}), more):
            return text
    return ""


def exceeded(quota: Quota, used: Amounts, more: Amounts) -> str:
    """Say what of `more` a quota has no room for; "" when it has room for all."""
    over = [name for name in quota.hard if more.get(name, 0) > 0 and used.get(name, 0) + more[name] > quota.hard[name]]
    if not over:
        return ""
    parts = []
    for word, of in (("requested", more), ("used", used), ("limited", quota.hard)):
        listed = amounts.resource_list({name: of.get(name, 0) for name in over})
        parts.append(f"{word}: {','.join(f'{name}={value}' for name, value in listed.items())}")
    return f"exceeded quota: {quota.name}, {', '.join(parts)}"


def room(quota: Quota, used: Amounts, each: Amounts) -> int | None:
    """Return for how many objects that use `each` there is room; None when the quota does not bound them."""
    free = [
        max(quota.hard[name] - used.get(name, 0), 0) // amount
        for name, amount in each.items()
        if amount > 0 and name in quota.hard
    ]
    return min(free, default=None)


def total(quota: Quota, resource: Resource, objects: Iterable[Object]) -> Amounts:
    """Return what objects of a kind use together of what a quota bounds."""
    used: Amounts = {}
    for obj in objects:
        if quota.counts_object(resource, obj):
            grow(used, usage(resource, obj), quota)
    return used


def grow(used: Amounts, more: Mapping[str, int], quota: Quota) -> None:
    """Add to what is used of a quota, which is changed in place."""
    for name in quota.hard:
        if name in more:
            used[name] = used.get(name, 0) + more[name]


def written(quota: Quota, used: Amounts) -> dict[str, str]:
    """Return what is used of each thing that a quota bounds, as its status says it."""
    return amounts.resource_list({name: used.get(name, 0) for name in quota.hard})


def counts_ended(quotas: Sequence[Quota]) -> bool:
    """Whether pods that ended count for one of the quotas."""
    return any(f"count/{PODS.id}" in quota.hard for quota in quotas)


def _amount(name: str, written: Any) -> int:
    value = quantity.parse(written)
    return quantity.milli(value) if name.rpartition(".")[2] == "cpu" else quantity.units(value)


def _in_scope(scope: Scope, pod: Object) -> bool:
    spec = lenient.mapping(pod, "spec")
    match scope.name:
        case QuotaScope.TERMINATING:
            return spec.get("activeDeadlineSeconds") is not None
        case QuotaScope.NOT_TERMINATING:
            return spec.get("activeDeadlineSeconds") is None
        case QuotaScope.BEST_EFFORT:
            return quality(spec) == "BestEffort"
        case QuotaScope.NOT_BEST_EFFORT:
            return quality(spec) != "BestEffort"
        case QuotaScope.PRIORITY_CLASS:
            name = spec.get("priorityClassName") or ""
            if scope.operator in ("In", "NotIn"):
                return (name in scope.values) == (scope.operator == "In")
            return bool(name) == (scope.operator != "DoesNotExist")
        case QuotaScope.CROSS_NAMESPACE_POD_AFFINITY:
            return _looks_elsewhere(spec)
    return False


def _looks_elsewhere(spec: Object) -> bool:
    """Whether a pod's place depends on pods of other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = lenient.mapping(spec, "affinity", kind)
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [lenient.mapping(each, "podAffinityTerm") for each in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
