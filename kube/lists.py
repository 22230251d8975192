"""How lists and maps merge: one table for strategic merge patch, server-side apply and the published schemas.

A field is found by the name of its type's definition, shortened to
`core.v1.PodSpec` for `io.k8s.api.core.v1.PodSpec`, and its JSON name. The
facts are those of Kubernetes' published schemas (reference: kubernetes-api
§3.4, §3.5). A list that is not named here is atomic: it is replaced whole,
and has one owner. A map or object that is not named here merges key by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kube.meta import Object


class Rule(NamedTuple):
    """How one field merges.

    type is `map` (items told apart by keys), `set` (plain values) or `atomic` for a
    server-side apply. strategy and merge_key are those of a strategic merge patch, which knows
    one key at most; without a strategy such a patch replaces the field.
    """

    type: str
    keys: tuple[str, ...] = ()
    strategy: str = ""
    merge_key: str = ""


def by(*keys: str) -> Rule:
    """Tell items apart by keys; a strategic merge patch uses the first of them."""
    return Rule("map", keys, "merge", keys[0])


def _sources(key: str) -> Rule:
    """Tell items apart by key; of each item only the fields that `$retainKeys` names are kept."""
    return Rule("map", (key,), "merge,retainKeys", key)


_NAME = by("name")
_CONDITIONS = {"conditions": by("type")}
_SET = Rule("set")
_MERGED_SET = Rule("set", (), "merge")
_ATOMIC = Rule("atomic")
_CONTAINER = {
    "env": _NAME,
    "ports": Rule("map", ("containerPort", "protocol"), "merge", "containerPort"),
    "volumeDevices": by("devicePath"),
    "volumeMounts": by("mountPath"),
}

RULES: dict[str, dict[str, Rule]] = {
    "meta.v1.ObjectMeta": {"finalizers": _MERGED_SET, "ownerReferences": by("uid")},
    "core.v1.PodSpec": {
        "containers": _NAME,
        "initContainers": _NAME,
        "ephemeralContainers": _NAME,
        "volumes": _sources("name"),
        "resourceClaims": _sources("name"),
        "imagePullSecrets": _NAME,
        "schedulingGates": _NAME,
        "hostAliases": by("ip"),
        "topologySpreadConstraints": Rule(
            "map", ("topologyKey", "whenUnsatisfiable"), "merge", "topologyKey"
        ),
        "nodeSelector": _ATOMIC,
    },
    "core.v1.PodStatus": {
        **_CONDITIONS,
        "podIPs": by("ip"),
        "hostIPs": Rule("atomic", (), "merge", "ip"),
        "resourceClaimStatuses": _sources("name"),
    },
    "core.v1.Container": _CONTAINER,
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.ContainerStatus": {"allocatedResourcesStatus": _NAME, "volumeMounts": by("mountPath")},
    "core.v1.ContainerRestartRuleOnExitCodes": {"values": _SET},
    "core.v1.NodeAllocatableResourceClaimStatus": {"containers": _SET},
    "core.v1.ResourceRequirements": {"claims": Rule("map", ("name",))},
    "core.v1.ResourceStatus": {"resources": Rule("map", ("resourceID",))},
    "core.v1.NamespaceStatus": _CONDITIONS,
    "core.v1.NodeSpec": {"podCIDRs": _MERGED_SET},
    "core.v1.NodeStatus": {**_CONDITIONS, "addresses": by("type")},
    "core.v1.PersistentVolumeClaimStatus": _CONDITIONS,
    "core.v1.ReplicationControllerSpec": {"selector": _ATOMIC},
    "core.v1.ReplicationControllerStatus": _CONDITIONS,
    "core.v1.ServiceAccount": {"secrets": _NAME},
    "core.v1.ServiceSpec": {"ports": Rule("map", ("port", "protocol"), "merge", "port"), "selector": _ATOMIC},
    "core.v1.ServiceStatus": _CONDITIONS,
    "apps.v1.DaemonSetStatus": _CONDITIONS,
    "apps.v1.DeploymentSpec": {"strategy": Rule("", (), "retainKeys")},
    "apps.v1.DeploymentStatus": _CONDITIONS,
    "apps.v1.ReplicaSetStatus": _CONDITIONS,
    "apps.v1.StatefulSetStatus": _CONDITIONS,
    "batch.v1.JobStatus": {"conditions": Rule("atomic", (), "merge", "type")},
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": {"values": _SET},
    "batch.v1.UncountedTerminatedPods": {"failed": _SET, "succeeded": _SET},
    "discovery.v1.Endpoint": {"addresses": _SET},
    "policy.v1.PodDisruptionBudgetSpec": {"selector": Rule("", (), "replace")},
    "policy.v1.PodDisruptionBudgetStatus": _CONDITIONS,
    "apiextensions.v1.CustomResourceDefinitionStatus": {"conditions": Rule("map", ("type",))},
    "apiextensions.v1.JSONSchemaProps": {"x-kubernetes-validations": by("rule")},
}

# Objects that have one owner and are replaced whole by server-side apply.
ATOMIC = frozenset(
    {
        "autoscaling.v1.CrossVersionObjectReference",
        "core.v1.ConfigMapKeySelector",
        "core.v1.EndpointAddress",
        "core.v1.EndpointPort",
        "core.v1.FileKeySelector",
        "core.v1.LocalObjectReference",
        "core.v1.NodeSelector",
        "core.v1.NodeSelectorTerm",
        "core.v1.ObjectFieldSelector",
        "core.v1.ObjectReference",
        "core.v1.ResourceFieldSelector",
        "core.v1.ScopeSelector",
        "core.v1.SecretKeySelector",
        "core.v1.SecretReference",
        "core.v1.TopologySelectorTerm",
        "core.v1.TypedLocalObjectReference",
        "discovery.v1.EndpointPort",
        "meta.v1.LabelSelector",
        "meta.v1.OwnerReference",
        "networking.v1.ServiceBackendPort",
        "rbac.v1.RoleRef",
        "rbac.v1.Subject",
    }
)

_PREFIXES = (
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
)


def short(definition: str) -> str:
    """Return the name by which the table knows a definition: `core.v1.PodSpec`."""
    for prefix in _PREFIXES:
        if definition.startswith(prefix):
            return definition[len(prefix) :]
    return definition


def rule(definition: str, field: str) -> Rule | None:
    """Return how a field of a definition merges, None where nothing special holds."""
    return RULES.get(short(definition), {}).get(field)


def extensions(definition: str, field: str, *, is_list: bool) -> Object:
    """Return the `x-kubernetes-` keywords of a field in a published schema."""
    found = rule(definition, field)
    if found is None:
        return {"x-kubernetes-list-type": "atomic"} if is_list else {}
    keywords: Object = {}
    if found.type:
        keywords["x-kubernetes-list-type" if is_list else "x-kubernetes-map-type"] = found.type
    if found.keys:
        keywords["x-kubernetes-list-map-keys"] = list(found.keys)
    if found.strategy:
        keywords["x-kubernetes-patch-strategy"] = found.strategy
    if found.merge_key:
        keywords["x-kubernetes-patch-merge-key"] = found.merge_key
    return keywords
