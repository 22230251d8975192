"""What the views of the kinds are made of: the struct base and the types of fields.

A view has the fields that code reads, and no more: unknown fields are skipped, an absent field has Go's
zero value. The fields of a kind and their valid values are those of its definition
(`kube.definitions`), by which `kube.schema.check` judges objects when they are written; decoding a view checks types
only, so that reading a stored object is fast and never fails on a value that a newer cluster allows.
"""

from __future__ import annotations

from typing import Any, dataclass_transform

from msgspec import Struct

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


# Where Kubernetes writes an acronym in capitals, camel case is not enough.
_ACRONYMS = {
    "boot_id": "bootID",
    "cluster_ip": "clusterIP",
    "cluster_ips": "clusterIPs",
    "container_id": "containerID",
    "downward_api": "downwardAPI",
    "external_id": "externalID",
    "external_ips": "externalIPs",
    "host_ip": "hostIP",
    "host_ipc": "hostIPC",
    "host_ips": "hostIPs",
    "host_pid": "hostPID",
    "image_id": "imageID",
    "load_balancer_ip": "loadBalancerIP",
    "machine_id": "machineID",
    "open_api_v3_schema": "openAPIV3Schema",
    "non_resource_urls": "nonResourceURLs",
    "pod_cidr": "podCIDR",
    "pod_cidrs": "podCIDRs",
    "pod_ip": "podIP",
    "pod_ips": "podIPs",
    "provider_id": "providerID",
    "resource_id": "resourceID",
    "scale_io": "scaleIO",
    "set_hostname_as_fqdn": "setHostnameAsFQDN",
    "system_uuid": "systemUUID",
    "transition_id": "transitionID",
}


def wire_name(field: str) -> str:
    """Return the JSON name of a struct field: camel case with Kubernetes' acronyms."""
    if field in _ACRONYMS:
        return _ACRONYMS[field]
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class View(Struct, kw_only=True, frozen=True, gc=False, omit_defaults=True, rename=wire_name):
    """Base of all kinds. Decoded JSON has no cycles, so the garbage collector need not look at views."""


AnyObject = dict[str, Any]  # passed through, looked into by nobody here
Quantity = str | int | float
Quantities = dict[str, Quantity]  # Kubernetes' ResourceList
