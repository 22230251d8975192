"""A waiting pod, as far as it decides which nodes it may use."""

from __future__ import annotations

from typing import Any

from kube.kinds.fields import View
from kube.kinds.meta import Condition
from kube.kinds.pod import Toleration


class WaitingContainer(View):
    """The part of a container that matters."""

    ports: list[dict[str, Any]] | None = None


class WaitingSpec(View):
    """The part of a pod's spec that decides which nodes it may use."""

    node_selector: dict[str, str] = {}
    affinity: Any = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[Any] = []
    containers: list[WaitingContainer] = []
    scheduling_gates: list[Any] = []
    resource_claims: list[Any] = []
    volumes: list[dict[str, Any]] = []


class WaitingStatus(View):
    """The status of a waiting pod."""

    conditions: list[Condition] = []


class WaitingPod(View):
    """A pod that waits for a node."""

    spec: WaitingSpec = WaitingSpec()
    status: WaitingStatus = WaitingStatus()

    @property
    def is_gated(self) -> bool:
        """Whether a scheduling gate holds it back."""
        return bool(self.spec.scheduling_gates)

    @property
    def has_rules(self) -> bool:
        """Whether more than labels and taints decides where it may be: other pods on a node, or devices that it claims."""
        spec = self.spec
        affinity = spec.affinity or {}
        return bool(
            spec.topology_spread_constraints
            or spec.resource_claims
            or affinity.get("podAffinity")
            or affinity.get("podAntiAffinity")
            or any(port.get("hostPort") for each in spec.containers for port in each.ports or ())
        )

    @property
    def has_claims(self) -> bool:
        """Whether it uses volumes that may be on some nodes only."""
        return any(each.get("persistentVolumeClaim") or each.get("ephemeral") for each in self.spec.volumes)

    @property
    def message(self) -> str:
        """What its condition PodScheduled says."""
        conditions = self.status.conditions
        return next((each.message for each in conditions if each.type == "PodScheduled"), "")
