"""What the objects of Kubernetes' own kinds are made of, as far as it decides how they merge.

`kube.lists` says how a field of a definition merges; here stands which
definition the value of a field has. Only parts below which something merges
specially are named, so a field that stands in neither table is plain: objects
merge key by key, lists are replaced whole. The facts are those of Kubernetes'
published schemas (reference: kubernetes-api §3.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kube.resources import Resource

META = "meta.v1.ObjectMeta"
_SELECTOR = "meta.v1.LabelSelector"
_TEMPLATE = "core.v1.PodTemplateSpec"
_LOCAL = "core.v1.LocalObjectReference"
_OBJECT = "core.v1.ObjectReference"
_SECRET = "core.v1.SecretReference"  # noqa: S105  the name of a type
_CONTAINER = {
    "env": "core.v1.EnvVar",
    "resources": "core.v1.ResourceRequirements",
}
_WORKLOAD = {"selector": _SELECTOR, "template": _TEMPLATE}
_STATUS_RESOURCES = {"resources": "core.v1.ResourceRequirements"}
_NODE_AFFINITY = "core.v1.NodeSelector"


def _kind(**parts: str) -> dict[str, str]:
    """Return the parts of what has metadata."""
    return {"metadata": META, **parts}


OBJECT = "Object"  # any kind of which nothing more is known here
PARTS: dict[str, dict[str, str]] = {
    OBJECT: _kind(),
    META: {"ownerReferences": "meta.v1.OwnerReference"},
    "core.v1.Pod": _kind(spec="core.v1.PodSpec", status="core.v1.PodStatus"),
    _TEMPLATE: _kind(spec="core.v1.PodSpec"),
    "core.v1.PodTemplate": _kind(template=_TEMPLATE),
    "core.v1.PodSpec": {
        "affinity": "core.v1.Affinity",
        "containers": "core.v1.Container",
        "ephemeralContainers": "core.v1.EphemeralContainer",
        "imagePullSecrets": _LOCAL,
        "initContainers": "core.v1.Container",
        "resources": "core.v1.ResourceRequirements",
        "topologySpreadConstraints": "core.v1.TopologySpreadConstraint",
        "volumes": "core.v1.Volume",
    },
    "core.v1.PodStatus": _STATUS_RESOURCES,
    "core.v1.Container": _CONTAINER,
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.EnvVar": {"valueFrom": "core.v1.EnvVarSource"},
    "core.v1.EnvVarSource": {
        "configMapKeyRef": "core.v1.ConfigMapKeySelector",
        "fieldRef": "core.v1.ObjectFieldSelector",
        "fileKeyRef": "core.v1.FileKeySelector",
        "resourceFieldRef": "core.v1.ResourceFieldSelector",
        "secretKeyRef": "core.v1.SecretKeySelector",
    },
    "core.v1.Affinity": {"nodeAffinity": "core.v1.NodeAffinity"},
    "core.v1.NodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_AFFINITY},
    "core.v1.TopologySpreadConstraint": {"labelSelector": _SELECTOR},
    "core.v1.Volume": {
        **dict.fromkeys(
            ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"),
            "core.v1.VolumeSource",
        ),
        "csi": "core.v1.CSIVolumeSource",
        "ephemeral": "core.v1.EphemeralVolumeSource",
    },
    "core.v1.VolumeSource": {"secretRef": _LOCAL},  # all of them name their secret in the same way
    "core.v1.CSIVolumeSource": {"nodePublishSecretRef": _LOCAL},
    "core.v1.EphemeralVolumeSource": {"volumeClaimTemplate": "core.v1.PersistentVolumeClaimTemplate"},
    "core.v1.PersistentVolumeClaimTemplate": _kind(spec="core.v1.PersistentVolumeClaimSpec"),
    "core.v1.PersistentVolumeClaim": _kind(
        spec="core.v1.PersistentVolumeClaimSpec",
        status="core.v1.PersistentVolumeClaimStatus",
    ),
    "core.v1.PersistentVolumeClaimSpec": {
        "dataSource": "core.v1.TypedLocalObjectReference",
        "selector": _SELECTOR,
    },
    "core.v1.PersistentVolume": _kind(spec="core.v1.PersistentVolumeSpec"),
    "core.v1.PersistentVolumeSpec": {
        **dict.fromkeys(
            ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO"), "core.v1.PersistentVolumeSource"
        ),
        "claimRef": _OBJECT,
        "csi": "core.v1.CSIPersistentVolumeSource",
        "nodeAffinity": "core.v1.VolumeNodeAffinity",
        "storageos": "core.v1.StorageOSPersistentVolumeSource",
    },
    "core.v1.PersistentVolumeSource": {"secretRef": _SECRET},
    "core.v1.CSIPersistentVolumeSource": dict.fromkeys(
        (
            "controllerExpandSecretRef",
            "controllerPublishSecretRef",
            "nodeExpandSecretRef",
            "nodePublishSecretRef",
            "nodeStageSecretRef",
        ),
        _SECRET,
    ),
    "core.v1.StorageOSPersistentVolumeSource": {"secretRef": _OBJECT},
    "core.v1.VolumeNodeAffinity": {"required": _NODE_AFFINITY},
    "core.v1.Event": _kind(involvedObject=_OBJECT, related=_OBJECT),
    "events.v1.Event": _kind(regarding=_OBJECT, related=_OBJECT),
    "core.v1.Namespace": _kind(status="core.v1.NamespaceStatus"),
    "core.v1.Node": _kind(spec="core.v1.NodeSpec", status="core.v1.NodeStatus"),
    "core.v1.ReplicationController": _kind(
        spec="core.v1.ReplicationControllerSpec",
        status="core.v1.ReplicationControllerStatus",
    ),
    "core.v1.ReplicationControllerSpec": {"template": _TEMPLATE},
    "core.v1.ResourceQuota": _kind(spec="core.v1.ResourceQuotaSpec"),
    "core.v1.ResourceQuotaSpec": {"scopeSelector": "core.v1.ScopeSelector"},
    "core.v1.Service": _kind(spec="core.v1.ServiceSpec", status="core.v1.ServiceStatus"),
    "core.v1.ServiceAccount": _kind(imagePullSecrets=_LOCAL, secrets=_OBJECT),
    "apps.v1.DaemonSet": _kind(spec="apps.v1.DaemonSetSpec", status="apps.v1.DaemonSetStatus"),
    "apps.v1.DaemonSetSpec": _WORKLOAD,
    "apps.v1.Deployment": _kind(spec="apps.v1.DeploymentSpec", status="apps.v1.DeploymentStatus"),
    "apps.v1.DeploymentSpec": _WORKLOAD,
    "apps.v1.ReplicaSet": _kind(spec="apps.v1.ReplicaSetSpec", status="apps.v1.ReplicaSetStatus"),
    "apps.v1.ReplicaSetSpec": _WORKLOAD,
    "apps.v1.StatefulSet": _kind(spec="apps.v1.StatefulSetSpec", status="apps.v1.StatefulSetStatus"),
    "apps.v1.StatefulSetSpec": _WORKLOAD,
    "batch.v1.Job": _kind(spec="batch.v1.JobSpec", status="batch.v1.JobStatus"),
    "batch.v1.JobSpec": _WORKLOAD,
    "batch.v1.JobStatus": {"uncountedTerminatedPods": "batch.v1.UncountedTerminatedPods"},
    "batch.v1.CronJob": _kind(spec="batch.v1.CronJobSpec"),
    "batch.v1.CronJobSpec": {"jobTemplate": "batch.v1.JobTemplateSpec"},
    "batch.v1.JobTemplateSpec": _kind(spec="batch.v1.JobSpec"),
    "networking.v1.NetworkPolicy": _kind(spec="networking.v1.NetworkPolicySpec"),
    "networking.v1.NetworkPolicySpec": {"podSelector": _SELECTOR},
    "networking.v1.Ingress": _kind(spec="networking.v1.IngressSpec"),
    "networking.v1.IngressSpec": {"defaultBackend": "networking.v1.IngressBackend"},
    "networking.v1.IngressBackend": {
        "resource": "core.v1.TypedLocalObjectReference",
        "service": "networking.v1.IngressServiceBackend",
    },
    "networking.v1.IngressServiceBackend": {"port": "networking.v1.ServiceBackendPort"},
    "policy.v1.PodDisruptionBudget": _kind(
        spec="policy.v1.PodDisruptionBudgetSpec",
        status="policy.v1.PodDisruptionBudgetStatus",
    ),
    "policy.v1.PodDisruptionBudgetSpec": {"selector": _SELECTOR},
    "rbac.v1.ClusterRoleBinding": _kind(roleRef="rbac.v1.RoleRef"),
    "rbac.v1.RoleBinding": _kind(roleRef="rbac.v1.RoleRef"),
    "apiextensions.v1.CustomResourceDefinition": _kind(
        status="apiextensions.v1.CustomResourceDefinitionStatus"
    ),
}


def of(resource: Resource) -> str:
    """Return the definition of a kind, such as `core.v1.Pod`; OBJECT for kinds that are not Kubernetes' own."""
    group = resource.group
    if "." in group and not group.endswith(".k8s.io"):
        return OBJECT
    definition = f"{group.partition('.')[0] or 'core'}.{resource.version}.{resource.kind}"
    return definition if definition in PARTS else OBJECT


def part(definition: str, field: str) -> str:
    """Return the definition of a field's value, or of the items of its list; "" where nothing special is below."""
    return PARTS.get(definition, {}).get(field, "")
