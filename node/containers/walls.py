"""What the layers of a wall round a node's containers come to, in words and in one word: pure."""

from __future__ import annotations

from cluster.rules.node.node_walls import HOLDS, NO_PODS, NONE
from node.containers.control_groups import Groups
from node.shim.isolation.landlock import SCOPES_ABI
from node.shim.order import Wall

_MOUNTS = {"user": "a root directory of their own", "root": "a root directory and users of their own"}

_LANDLOCK = "Linux 5.19 or newer, with landlock among the kernel's lsm="

_OPEN = {
    "signals": "send signals to each other and to the cluster's processes",
    "sockets without a path": "connect to sockets without a path",
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
    if wall.networks:
        how = "without a way out" if wall.networks == "closed" else f"with a way out by {wall.networks}"
        layers.append(f"a network for each namespace {how}")
    if wall.seccomp:
        layers.append("a filter of system calls")
    if not holds(wall):
        who = "root may" if wall.root else "the user may who runs the cluster"
        return (
            f"{NONE}pods reach what {who}"
            + _list("; there is only ", layers)
            + f". To have one, {remedy(wall)}"
            + _unconnected(wall)
        )
    open_ways = _list("; pods may ", [_OPEN[each] for each in _unscoped(wall)])
    return _list(f"{HOLDS}: ", layers) + _list("; without ", _lacking(wall)) + open_ways + _unconnected(wall)


def _unscoped(wall: Wall) -> list[str]:
    """Return what ends at the wall neither by a namespace nor by Landlock."""
    if wall.landlock >= SCOPES_ABI:
        return []
    own = {"signals": wall.pids and wall.mounts != "none", "sockets without a path": bool(wall.networks)}
    return [what for what, there in own.items() if not there]


def _unconnected(wall: Wall) -> str:
    if wall.networks or not wall.closed:
        return ""
    return f"; {NO_PODS}there is no network without a way out for them, as VOLCANO_UI_POD_NETWORK=closed wants it"


def _lacking(wall: Wall) -> list[str]:
    """Return the layers that a wall that holds does not have."""
    has = {
        "a root directory of their own": wall.mounts != "none",
        "processes of their own": wall.pids and wall.mounts != "none",
        "a network for each namespace": bool(wall.networks),
        "Landlock": bool(wall.landlock),
        "a filter of system calls": wall.seccomp,
    }
    return [words for words, there in has.items() if not there]


def remedy(wall: Wall) -> str:
    """Return what an administrator can do where there is no wall, as he is told to."""
    remedies = [_way_to_mounts(wall)]
    if wall.root and wall.landlock:
        remedies.insert(0, "start the cluster as an ordinary user")
    elif not wall.root and not wall.old:
        remedies.append(f"have Landlock ({_LANDLOCK})")
    return ", or ".join(remedies)


def _way_to_mounts(wall: Wall) -> str:
    if wall.old:
        return "run Linux 5.15 or newer: this kernel, or the filter of an engine round the cluster, has no mount_setattr(2)"
    who, more = (
        ("root", "")
        if wall.root
        else (
            "users",
            " Debian: sysctl kernel.unprivileged_userns_clone=1;"
            " Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile that allows them;",
        )
    )
    return (
        f"let {who} make user namespaces (sysctl user.max_user_namespaces;{more}"
        " in a container: its engine's filter has to allow them)"
    )


def missing(wall: Wall) -> list[str]:
    """Return which layers a machine does not have, what that costs, and how it could have them."""
    lacking = []
    if wall.mounts == "none" and wall.root:
        lacking.append(
            f"a root directory and users of their own: only administrators' pods run. To change that, {remedy(wall)}"
        )
    elif wall.mounts == "none":
        lacking.append(
            "a root directory of their own: sockets whose path is known, /tmp and shared memory are open."
            f" To have it, {_way_to_mounts(wall)}"
        )
    elif not wall.pids:
        lacking.append(
            "processes of their own: commands that run on the machine are seen. /proc has to be mountable,"
            " which engines prevent that cover parts of it"
        )
    if wall.mounts != "none" and not wall.networks:
        cost = (
            "they do not run"
            if wall.closed
            else "they share the addresses of this machine, and reach what listens on its loopback"
        )
        lacking.append(
            f"a network for each namespace of pods: {cost}. It takes network namespaces that ordinary users may make"
            " (sysctl user.max_net_namespaces, and user namespaces), and pasta (Debian, Ubuntu: passt) or slirp4netns,"
            " with a /dev/net/tun that everybody may open; VOLCANO_UI_POD_NETWORK=closed takes no such program"
        )
    if not wall.landlock:
        lacking.append(f"Landlock, a second wall round files: {_LANDLOCK}")
    elif unscoped := _unscoped(wall):
        lacking.append(f"{' and '.join(unscoped)} that end at the wall: Linux 6.12 or newer")
    if not wall.seccomp:
        lacking.append("the filter of system calls: on x86-64 and ARM64, with CONFIG_SECCOMP_FILTER")
    return lacking


def limits(groups: Groups) -> str:
    """Return what keeps containers that are processes within their limits."""
    if groups.home:
        return _list("bound by control groups: ", list(groups.controllers))
    return "counted, not bound: memory and processes are looked at, processors are only named to commands" + (
        f"; {groups.why}" if groups.why else ""
    )


def _list(before: str, words: list[str]) -> str:
    return before + ", ".join(words) if words else ""
