"""What the layers of a wall round a node's containers come to, in words and in one word: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.rules.node_walls import HOLDS, NONE
from node.shim.landlock import SCOPES_ABI

if TYPE_CHECKING:
    from node.shim.order import Wall

_MOUNTS = {
    "user": "a root directory of their own",
    "root": "a root directory and users of their own",
}


def holds(wall: Wall) -> bool:
    """Whether pods are kept from the cluster's files and from each other.

    Landlock does it, and so does a root directory of their own. Where root starts them it takes users of their own, too: root
    may give away and open all of a machine's files, of which Landlock does not speak. A filter of system calls knows nothing of files.
    """
    return wall.mounts == "root" if wall.root else wall.landlock > 0 or wall.mounts == "user"


def describe(wall: Wall) -> str:
    """Return which layers there are, and what the lack of one means to the people of this cluster."""
    layers = []
    if wall.landlock:
        layers.append(f"Landlock (ABI {wall.landlock})")
    if wall.mounts in _MOUNTS:
        layers.append(_MOUNTS[wall.mounts])
    if wall.pids and wall.mounts != "none":
        layers.append("processes of their own")
    if wall.seccomp:
        layers.append("a filter of system calls")
    if not holds(wall):
        who = "root may" if wall.root else "the user may who runs the cluster"
        return f"{NONE}pods reach what {who}" + _list("; there is only ", layers)
    signals = "" if wall.landlock >= SCOPES_ABI or wall.pids else "; pods may send signals to each other"
    return _list(f"{HOLDS}: ", layers) + signals


def _list(before: str, words: list[str]) -> str:
    return before + ", ".join(words) if words else ""
