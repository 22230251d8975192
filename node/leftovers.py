"""What runs of pods in a state directory, by its files: for programs that start and stop the agent."""

from __future__ import annotations

from enum import StrEnum

from node import shim_claims
from node.paths import IDENTITY, Layout
from node.shim.shim import read_json


class AtStop(StrEnum):
    """What becomes of pods that run when the cluster on their machine is stopped (`VOLCANO_UI_RUNNING`)."""

    LEAVE = "leave"  # they go on, and the next start takes them over
    WAIT = "wait"  # nothing new begins, and what runs may end
    END = "end"  # they end, and their jobs run them again


def shims(layout: Layout) -> dict[int, str]:
    """Return the process ids of all living shims, with the uids of their pods."""
    return shim_claims.shims(layout.pods)


def network_keepers(layout: Layout) -> set[int]:
    """Return the process ids of those that keep networks of pods: they end by themselves when nobody is in these."""
    return {pid for claim in layout.networks.glob("*/claim") if (pid := shim_claims.shim_of(claim.parent))}


def pods(layout: Layout) -> list[str]:
    """Return the pods of which something runs, as namespace/name, in order."""
    return sorted(_name(layout, uid) for uid in set(shims(layout).values()))


def _name(layout: Layout, uid: str) -> str:
    identity = read_json(str(layout.pod(uid) / IDENTITY))
    return f"{identity.get('namespace', '?')}/{identity.get('name', uid)}"
