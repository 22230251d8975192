"""How a node says that it lives: the lease that it renews (Kubernetes' node heartbeats)."""

from __future__ import annotations

from kube import lenient
from kube.meta import Object, parse_time

LEASE_S = 40  # without a renewal for so long a node counts as silent
LEASE_NAMESPACE = "kube-node-lease"
# Names the lease of a node that shares one with others; a node without it has the lease of its own name.
LEASE_ANNOTATION = "ui.volcano.sh/lease"
# Of a node's lease: the state directory of the agent that renews it, as HOST:DIRECTORY, "" once it has stopped in order.
STATE_DIRECTORY = "ui.volcano.sh/state-directory"


def state_directory_of(lease: Object) -> str:
    """Return where the agent is that has a node's lease, "" where none has said so or the last one has stopped in order."""
    return str(lenient.mapping(lease, "metadata", "annotations").get(STATE_DIRECTORY) or "")


def other_state_directory(lease: Object, state_directory: str, now_ms: int) -> str:
    """Return where another agent lives that renews a node's lease, "" when nobody but the one at a place does."""
    current = state_directory_of(lease)
    if not current or current == state_directory:
        return ""
    try:
        renewed = parse_time(lenient.text(lease, "spec", "renewTime"))
    except ValueError:
        return ""
    return current if now_ms - renewed < LEASE_S * 1000 else ""
