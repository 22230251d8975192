"""What the fields of the kinds are made of: the struct base and the marked types.

A struct is a *view*: unknown fields are skipped, an absent field has Go's zero
value. Bounds are written as JSON Schema keywords, as in the CRDs, and
`kube.schema.check` enforces them at the door; decoding a view checks types
only, so that reading a stored object is fast and never fails on a value that a
newer cluster allows. For the same reason no field is required by the struct:
`REQUIRED` marks those that an object must carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, dataclass_transform

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

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


def one_of(values: Iterable[str]) -> Meta:
    """Mark a text that must be one of values, or empty."""
    return Meta(extra_json_schema={"enum": [str(value) for value in values]})


def keywords(**schema: Any) -> Meta:
    """Mark a field with JSON Schema keywords."""
    return Meta(extra_json_schema=schema)


REQUIRED = Meta(extra={"required": True})

AnyObject = dict[str, Any]  # passed through, looked into by nobody here
Int32 = Annotated[int, keywords(minimum=-INT32_MAX - 1, maximum=INT32_MAX)]
Int64 = Annotated[int, keywords(minimum=-INT64_MAX - 1, maximum=INT64_MAX)]
Count = Annotated[int, keywords(minimum=0, maximum=INT32_MAX)]
Positive = Annotated[int, keywords(minimum=1, maximum=INT32_MAX)]
Seconds = Annotated[int, keywords(minimum=0, maximum=INT64_MAX)]
Port = Annotated[int, keywords(minimum=0, maximum=65535)]  # 0 is Go's "not given"
DnsLabel = Annotated[str, keywords(maxLength=63, pattern=DNS_LABEL)]
DnsSubdomain = Annotated[str, keywords(maxLength=253, pattern=DNS_SUBDOMAIN)]
Text253 = Annotated[str, keywords(maxLength=253)]
Time = Annotated[str, keywords(format="date-time")]
Duration = Annotated[str, keywords(format="duration")]
Quantity = Annotated[str | int | float, keywords(format="quantity")]
Quantities = dict[str, Quantity]  # Kubernetes' ResourceList
IntOrString = Annotated[int | str, keywords(format="int-or-string")]
