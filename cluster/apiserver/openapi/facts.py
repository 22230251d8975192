"""Facts about Kubernetes' types that the client package's models leave out: names, formats, special types."""

from __future__ import annotations

CORE = "io.k8s.api.core.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
METRICS = "io.k8s.metrics.pkg.apis.metrics.v1beta1"

TIME = f"{META}.Time"
MICRO_TIME = f"{META}.MicroTime"
FIELDS_V1 = f"{META}.FieldsV1"
PATCH = f"{META}.Patch"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
JSON = f"{EXTENSIONS}.JSON"

# Models whose definition is in apimachinery, whoever refers to them.
META_MODELS = frozenset(
    {
        "V1Condition",
        "V1DeleteOptions",
        "V1FieldSelectorRequirement",
        "V1LabelSelector",
        "V1LabelSelectorRequirement",
        "V1ListMeta",
        "V1ManagedFieldsEntry",
        "V1ObjectMeta",
        "V1OwnerReference",
        "V1Preconditions",
        "V1ShardInfo",
        "V1Status",
        "V1StatusCause",
        "V1StatusDetails",
    }
)
# Models of the core group that other groups refer to; everything else is of the group that refers to it.
CORE_MODELS = frozenset(
    {
        "V1EventSource",
        "V1LocalObjectReference",
        "V1NodeSelector",
        "V1ObjectReference",
        "V1PersistentVolumeClaim",
        "V1PersistentVolumeClaimSpec",
        "V1PersistentVolumeSpec",
        "V1PodTemplateSpec",
        "V1Toleration",
        "V1TopologySelectorTerm",
        "V1TypedLocalObjectReference",
    }
)

# The types of fields, by the short names of `kube.lists`; of maps and lists it is the type of their values.
QUANTITIES = frozenset(
    {
        "core.v1.ContainerStatus.allocatedResources",
        "core.v1.EmptyDirVolumeSource.sizeLimit",
        "core.v1.LimitRangeItem.default",
        "core.v1.LimitRangeItem.defaultRequest",
        "core.v1.LimitRangeItem.max",
        "core.v1.LimitRangeItem.maxLimitRequestRatio",
        "core.v1.LimitRangeItem.min",
        "core.v1.NodeAllocatableResourceClaimStatus.resources",
        "core.v1.NodeStatus.allocatable",
        "core.v1.NodeStatus.capacity",
        "core.v1.PersistentVolumeClaimStatus.allocatedResources",
        "core.v1.PersistentVolumeClaimStatus.capacity",
        "core.v1.PersistentVolumeSpec.capacity",
        "core.v1.PodSpec.overhead",
        "core.v1.PodStatus.allocatedResources",
        "core.v1.ResourceFieldSelector.divisor",
        "core.v1.ResourceQuotaSpec.hard",
        "core.v1.ResourceQuotaStatus.hard",
        "core.v1.ResourceQuotaStatus.used",
        "core.v1.ResourceRequirements.limits",
        "core.v1.ResourceRequirements.requests",
        "core.v1.VolumeResourceRequirements.limits",
        "core.v1.VolumeResourceRequirements.requests",
    }
)
INTS_OR_STRINGS = frozenset(
    {
        "apps.v1.RollingUpdateDaemonSet.maxSurge",
        "apps.v1.RollingUpdateDaemonSet.maxUnavailable",
        "apps.v1.RollingUpdateDeployment.maxSurge",
        "apps.v1.RollingUpdateDeployment.maxUnavailable",
        "apps.v1.RollingUpdateStatefulSetStrategy.maxUnavailable",
        "core.v1.HTTPGetAction.port",
        "core.v1.ServicePort.targetPort",
        "core.v1.TCPSocketAction.port",
        "networking.v1.NetworkPolicyPort.port",
        "policy.v1.PodDisruptionBudgetSpec.maxUnavailable",
        "policy.v1.PodDisruptionBudgetSpec.minAvailable",
    }
)
MICRO_TIMES = frozenset(
    {
        "coordination.v1.LeaseSpec.acquireTime",
        "coordination.v1.LeaseSpec.renewTime",
        "core.v1.Event.eventTime",
        "core.v1.EventSeries.lastObservedTime",
        "events.v1.Event.eventTime",
        "events.v1.EventSeries.lastObservedTime",
    }
)
BYTES = frozenset(
    {
        "apiextensions.v1.WebhookClientConfig.caBundle",
        "core.v1.ConfigMap.binaryData",
        "core.v1.Secret.data",
    }
)
RAW = frozenset({"apps.v1.ControllerRevision.data", "meta.v1.WatchEvent.object"})
INT64 = frozenset(
    {
        "apiextensions.v1.JSONSchemaProps.maxItems",
        "apiextensions.v1.JSONSchemaProps.maxLength",
        "apiextensions.v1.JSONSchemaProps.maxProperties",
        "apiextensions.v1.JSONSchemaProps.minItems",
        "apiextensions.v1.JSONSchemaProps.minLength",
        "apiextensions.v1.JSONSchemaProps.minProperties",
        "authentication.v1.TokenRequestSpec.expirationSeconds",
        "batch.v1.CronJobSpec.startingDeadlineSeconds",
        "batch.v1.JobSpec.activeDeadlineSeconds",
        "core.v1.ContainerImage.sizeBytes",
        "core.v1.LinuxContainerUser.gid",
        "core.v1.LinuxContainerUser.supplementalGroups",
        "core.v1.LinuxContainerUser.uid",
        "core.v1.NodeSwapStatus.capacity",
        "core.v1.PodSecurityContext.fsGroup",
        "core.v1.PodSecurityContext.runAsGroup",
        "core.v1.PodSecurityContext.runAsUser",
        "core.v1.PodSecurityContext.supplementalGroups",
        "core.v1.PodSpec.activeDeadlineSeconds",
        "core.v1.PodSpec.terminationGracePeriodSeconds",
        "core.v1.Probe.terminationGracePeriodSeconds",
        "core.v1.SecurityContext.runAsGroup",
        "core.v1.SecurityContext.runAsUser",
        "core.v1.ServiceAccountTokenProjection.expirationSeconds",
        "core.v1.SleepAction.seconds",
        "core.v1.Toleration.tolerationSeconds",
        "meta.v1.DeleteOptions.gracePeriodSeconds",
        "meta.v1.ListMeta.remainingItemCount",
        "meta.v1.ObjectMeta.deletionGracePeriodSeconds",
        "meta.v1.ObjectMeta.generation",
    }
)
INT64_NAMES = frozenset({"observedGeneration"})  # in every status and condition

# What the fields of type "object" are that are no fields at all.
OBJECTS = {"meta.v1.ManagedFieldsEntry.fieldsV1": FIELDS_V1}


# Groups whose types the client package describes.
KUBERNETES = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)


def group_prefix(group: str, version: str) -> str:
    """Return what precedes the names of a group's definitions: `io.k8s.api.batch.v1`, `sh.volcano.batch.v1alpha1`."""
    if group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}"
    if group == "metrics.k8s.io":
        return f"io.k8s.metrics.pkg.apis.metrics.{version}"
    if is_kubernetes(group):
        return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}"
    return ".".join((*reversed(group.split(".")), version))


def is_kubernetes(group: str) -> bool:
    """Say whether a group is one of Kubernetes itself, whose types the client package knows."""
    return group in KUBERNETES
