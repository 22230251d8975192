"""Services, Endpoints and NetworkPolicies.

This cluster has no virtual addresses: a service names pods, as a headless one does, and a `clusterIP` is kept as it was
written. Processes of this machine are not kept apart, so a network policy has no effect on them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from cluster.rules.checks import IMMUTABLE, RulesView, check_selector, one_of
from kube import lenient, names
from kube.errors import Cause, duplicate, forbidden, invalid, required
from kube.meta import Object

PROTOCOLS = ("SCTP", "TCP", "UDP")
SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES = ("ClientIP", "None")
AFFINITY_S = 10800
OUTSIDE = ("LoadBalancer", "NodePort")
POLICY_TYPES = ("Ingress", "Egress")
HIGHEST_PORT = 65535
NO_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
    " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
PORT_RANGE = "must be between 1 and 65535, inclusive"
NO_ADDRESS = (
    "spec.clusterIP: there are no virtual addresses on this cluster; the service's name stands for its pods,"
    ' as with clusterIP "None"'
)
NO_EFFECT = "the policy is stored, and has no effect on the processes of this machine"


def default_service(service: Object, old: Object | None, view: RulesView) -> None:
    """Fill in what a service leaves open; it gets no address."""
    spec = service["spec"] = dict(service.get("spec") or {})
    spec["type"] = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif lenient.mapping(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_S}}
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] != "ExternalName":
        spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        _fill_families(spec)
    if spec["type"] in OUTSIDE or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    if old is None:
        service["status"] = {"loadBalancer": {}}


def _fill_families(spec: Object) -> None:
    """Say of which families a service's addresses are; a headless one without a selector may have both."""
    addresses = [each for each in spec.get("clusterIPs") or () if _is_address(each)]
    both = spec.get("clusterIP") == "None" and not spec.get("selector")
    families = spec.get("ipFamilies") or [f"IPv{ipaddress.ip_address(each).version}" for each in addresses]
    usual = "RequireDualStack" if both and not families else "SingleStack"
    spec["ipFamilies"] = families or (["IPv4", "IPv6"] if both else ["IPv4"])
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or usual


def validate_service(service: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a service."""
    spec = service["spec"]
    causes = [
        *one_of(spec["type"], SERVICE_TYPES, "spec.type"),
        *one_of(spec["sessionAffinity"], AFFINITIES, "spec.sessionAffinity"),
        *_check_ports(spec),
        *_check_addresses(spec),
    ]
    name = service["metadata"].get("name") or ""
    if old is None and name[:1].isdigit():
        causes.append(invalid("metadata.name", name, NO_LABEL))
    for key, value in (spec.get("selector") or {}).items():
        if problem := names.qualified_name(key):
            causes.append(invalid("spec.selector", key, problem))
        elif problem := names.label_value(value):
            causes.append(invalid("spec.selector", value, problem))
    if old is not None:
        before = lenient.mapping(old, "spec").get("clusterIP")
        was_external = lenient.mapping(old, "spec").get("type") == "ExternalName" or spec["type"] == "ExternalName"
        if before and not was_external and spec.get("clusterIP") != before:
            causes.append(invalid("spec.clusterIP", spec.get("clusterIP"), IMMUTABLE))
    return causes


def _check_ports(spec: Object) -> Iterator[Cause]:
    ports = spec.get("ports") or []
    needs_none = spec.get("clusterIP") == "None" or spec["type"] == "ExternalName"
    if not ports and not needs_none:
        yield required("spec.ports")
    taken: set[tuple[Any, Any]] = set()
    named: set[str] = set()
    for number, port in enumerate(ports):
        path, name = f"spec.ports[{number}]", port.get("name") or ""
        if name:
            if problem := names.dns_label(name):
                yield invalid(f"{path}.name", name, problem)
            elif name in named:
                yield duplicate(f"{path}.name", name)
            named.add(name)
        elif len(ports) > 1:
            yield required(f"{path}.name")
        if not 1 <= port.get("port", 0) <= HIGHEST_PORT:
            yield invalid(f"{path}.port", port.get("port", 0), PORT_RANGE)
        yield from one_of(port["protocol"], PROTOCOLS, f"{path}.protocol")
        yield from _check_target(port["targetPort"], f"{path}.targetPort")
        if (port["protocol"], port.get("port")) in taken:
            yield duplicate(path, {"protocol": port["protocol"], "port": port.get("port")})
        taken.add((port["protocol"], port.get("port")))
        if port.get("nodePort") and spec["type"] not in ("NodePort", "LoadBalancer"):
            yield forbidden(f"{path}.nodePort", f"may not be used when `type` is '{spec['type']}'")


def _check_target(target: Any, path: str) -> Iterator[Cause]:
    if isinstance(target, int):
        if not 1 <= target <= HIGHEST_PORT:
            yield invalid(path, target, PORT_RANGE)
    elif len(target) > 15 or names.dns_label(target) or not any(c.isalpha() for c in target):
        yield invalid(path, target, "must be a port number or the name of one: at most 15 of a-z, 0-9 and '-'")


def _check_addresses(spec: Object) -> Iterator[Cause]:
    address = spec.get("clusterIP") or ""
    if spec["type"] == "ExternalName":
        external = spec.get("externalName") or ""
        if not external:
            yield required("spec.externalName")
        elif problem := names.dns_subdomain(external.lower().removesuffix(".")):
            yield invalid("spec.externalName", external, problem)
        if address:
            yield forbidden("spec.clusterIPs", "may not be set when `type` is 'ExternalName'")
        return
    if address == "None" and spec["type"] != "ClusterIP":
        yield invalid("spec.clusterIPs[0]", address, f"may not be set to 'None' for {spec['type']} services")
    elif address not in ("", "None") and not _is_address(address):
        yield invalid("spec.clusterIPs[0]", address, NO_IP)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def warn_service(service: Object, old: Object | None, view: RulesView) -> list[str]:
    """Say that a service that asks for an address has none."""
    spec = service["spec"]
    return [NO_ADDRESS] if old is None and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None" else []


def default_endpoints(endpoints: Object, old: Object | None, view: RulesView) -> None:
    """Ports are of TCP unless they say otherwise."""
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def validate_endpoints(endpoints: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with endpoints."""
    causes: list[Cause] = []
    for number, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{number}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            causes.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for index, address in enumerate(subset.get(field) or ()):
                where, ip, hostname = f"{path}.{field}[{index}]", address.get("ip"), address.get("hostname")
                if not _is_address(ip or ""):
                    causes.append(invalid(f"{where}.ip", ip, NO_IP))
                if hostname and (problem := names.dns_label(hostname)):
                    causes.append(invalid(f"{where}.hostname", hostname, problem))
        causes += _check_endpoint_ports(subset.get("ports") or [], f"{path}.ports")
    return causes


def _check_endpoint_ports(ports: list[Object], path: str) -> Iterator[Cause]:
    for index, port in enumerate(ports):
        if not port.get("name") and len(ports) > 1:
            yield required(f"{path}[{index}].name")
        elif port.get("name") and (problem := names.dns_label(port["name"])):
            yield invalid(f"{path}[{index}].name", port["name"], problem)
        if not 1 <= port.get("port", 0) <= HIGHEST_PORT:
            yield invalid(f"{path}[{index}].port", port.get("port", 0), PORT_RANGE)
        yield from one_of(port["protocol"], PROTOCOLS, f"{path}[{index}].protocol")


def default_policy(policy: Object, old: Object | None, view: RulesView) -> None:
    """A policy isolates what comes in, and what goes out where it has rules for that."""
    spec = policy["spec"] = dict(policy.get("spec") or {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def validate_policy(policy: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a network policy."""
    spec = policy["spec"]
    causes = list(check_selector(spec["podSelector"], "spec.podSelector"))
    for number, kind in enumerate(spec["policyTypes"]):
        causes += one_of(kind, POLICY_TYPES, f"spec.policyTypes[{number}]")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{number}]"
            for index, port in enumerate(rule.get("ports") or ()):
                causes += _check_policy_port(port, f"{path}.ports[{index}]")
            for index, peer in enumerate(rule.get(side) or ()):
                causes += _check_peer(peer, f"{path}.{side}[{index}]")
    return causes


def _check_policy_port(port: Object, path: str) -> Iterator[Cause]:
    yield from one_of(port["protocol"], PROTOCOLS, f"{path}.protocol")
    number, end = port.get("port"), port.get("endPort")
    if number is not None:
        yield from _check_target(number, f"{path}.port")
    if end is None:
        return
    if number is None:
        yield required(f"{path}.port", "must be specified when `endPort` is specified")
    elif not isinstance(number, int):
        yield invalid(f"{path}.endPort", end, "may not be specified when `port` is a name")
    elif end < number:
        yield invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")


def _check_peer(peer: Object, path: str) -> Iterator[Cause]:
    block = peer.get("ipBlock")
    others = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    if block is None and not others:
        yield required(path, "must specify a peer")
    if block is not None and others:
        yield forbidden(path, "may not specify more than 1 peer")
    for field in others:
        yield from check_selector(peer[field], f"{path}.{field}")
    blocks: dict[str, str] = {}
    if block:
        blocks["cidr"] = block.get("cidr") or ""
        blocks |= {f"except[{index}]": text for index, text in enumerate(block.get("except") or ())}
    for field, text in blocks.items():
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"{path}.ipBlock.{field}", text, detail)


def warn_policy(policy: Object, old: Object | None, view: RulesView) -> list[str]:
    """Say that nothing enforces a policy here."""
    return [NO_EFFECT]
