"""The embedded cluster with no more controllers than Kubernetes has of its own."""

from __future__ import annotations

from cluster.api.embedded import Embedded
from cluster.runtime.registry import Registration

OWN = ("garbage", "namespaces", "nodes", "quotas", "budgets", "definitions")


class Bare(Embedded):
    """Runs what kube-controller-manager runs."""

    def runs(self, registration: Registration) -> bool:
        return registration.name in OWN
