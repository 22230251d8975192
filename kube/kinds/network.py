"""Endpoints and NetworkPolicy, as Kubernetes has them."""

from __future__ import annotations

from typing import Annotated

from kube.kinds.core import ObjectReference
from kube.kinds.fields import REQUIRED, AnyObject, Int32, IntOrString, Port, View
from kube.meta import ObjectMeta


class EndpointAddress(View):
    """One address behind a service."""

    ip: Annotated[str, REQUIRED] = ""
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(View):
    """One port of the addresses."""

    name: str = ""
    port: Annotated[Port, REQUIRED] = 0
    protocol: str = ""
    app_protocol: str | None = None


class EndpointSubset(View):
    """Addresses that have the same ports."""

    addresses: list[EndpointAddress] = []
    not_ready_addresses: list[EndpointAddress] = []
    ports: list[EndpointPort] = []


class Endpoints(View):
    """The addresses that a service stands for."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    subsets: list[EndpointSubset] = []


class IpBlock(View):
    """A range of addresses."""

    cidr: Annotated[str, REQUIRED] = ""
    except_: list[str] = []


class NetworkPolicyPeer(View):
    """Whom a rule is about."""

    pod_selector: AnyObject | None = None
    namespace_selector: AnyObject | None = None
    ip_block: IpBlock | None = None


class NetworkPolicyPort(View):
    """Which ports a rule is about."""

    protocol: str | None = None
    port: IntOrString | None = None
    end_port: Int32 | None = None


class NetworkPolicyIngressRule(View):
    """What may come in."""

    ports: list[NetworkPolicyPort] = []
    from_: list[NetworkPolicyPeer] = []


class NetworkPolicyEgressRule(View):
    """What may go out."""

    ports: list[NetworkPolicyPort] = []
    to: list[NetworkPolicyPeer] = []


class NetworkPolicySpec(View):
    """Which pods a policy isolates, and what they may still do."""

    pod_selector: AnyObject | None = None
    ingress: list[NetworkPolicyIngressRule] = []
    egress: list[NetworkPolicyEgressRule] = []
    policy_types: list[str] = []


class NetworkPolicy(View):
    """Who may talk to pods, and to whom they may talk."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NetworkPolicySpec = NetworkPolicySpec()
