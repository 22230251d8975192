"""How a node says that it lives: the lease that it renews (Kubernetes' node heartbeats)."""

from __future__ import annotations

LEASE_S = 40  # without a renewal for so long a node counts as silent
LEASE_NAMESPACE = "kube-node-lease"
# Names the lease of a node that shares one with others; a node without it has the lease of its own name.
LEASE_ANNOTATION = "ui.volcano.sh/lease"
