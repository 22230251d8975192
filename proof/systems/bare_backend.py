"""The embedded cluster with no more controllers than Kubernetes has of its own."""

from __future__ import annotations

from cluster.api.embedded import Embedded

OWN = ("garbage", "namespaces", "nodes", "quotas", "budgets", "definitions")


class Bare(Embedded):
    """Runs what kube-controller-manager runs."""

    def runs(self, registration):
        return registration.name in OWN
