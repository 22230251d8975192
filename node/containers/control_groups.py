"""Control groups (version 2) for the containers of this node that are processes: where there may be some, and what is left in them.

```
a delegated group, or the top of the hierarchy
├── volcano-ui              the cluster's own processes, where they were in the delegated group itself
└── volcano-ui-…            this state directory's pods
    └── <uid>               a pod: the agent makes it, and removes it when nothing of the pod runs
        └── main-0          an attempt: its shim makes it, and removes it at its end (`node.shim.control_group`)
```

A group that another manager owns is not divided: systemd, an engine or an administrator arranges what is in it.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from cluster import pid_lock
from kube import amounts
from kube.kinds.core import Container, Pod
from node import shim_claims
from node.paths import Layout, checked
from node.shim import control_group, linux, tree
from node.shim.order import Group

LEAF = "volcano-ui"  # deploy/volcano-ui.service names it, too
NEEDED = ("cpu", "memory", "pids")
ALSO = ("io", "cpuset")
DELEGATED = ("user.delegate", "trusted.delegate")  # extended attributes, by systemd
MOVES = 100  # rounds over a group whose processes go on to fork while they are moved
END_S = 1.0  # in which the kernel ends killed processes, unless they wait for a disk
LEAST_QUOTA_US = 1000
LEAST_SHARES, MAX_SHARES, MAX_WEIGHT = 2, 262144, 10000


class Unavailable(Exception):
    """There are no control groups for pods, because of what the message says."""


class Groups(NamedTuple):
    """Where the groups of pods are, with which controllers; without a home there are none, and `why` says why."""

    home: str = ""
    controllers: tuple[str, ...] = ()
    why: str = ""


class GroupState(NamedTuple):
    """A group in which this cluster's processes are, or which they share out."""

    path: str
    is_delegated: bool  # by systemd, or by an engine as all that its container sees
    processes: int  # in the group itself
    others: int  # of these, those that are not the cluster's


def directory(mounts: str, groups: str) -> tuple[str, str]:
    """Return the directory of a process's group and the hierarchy's, of its /proc/self/mountinfo and cgroup; Unavailable."""
    own = next((line[3:] for line in groups.splitlines() if line.startswith("0::")), None)
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        if after.startswith("cgroup2 ") and own is not None and f"{own}/".startswith(f"{root.rstrip('/')}/"):
            return point + own[len(root.rstrip("/")) :].rstrip("/"), point
    raise Unavailable("this machine, or the container round it, shows no control groups of version 2")


def shared_group(state: GroupState, top: str, *, leaves: bool) -> str:
    """Return the group that is shared out between the cluster's processes and its pods; Unavailable.

    top is the hierarchy's, for root of the machine or of all that is in a container; leaves, whether pods go on when the cluster is stopped.
    """
    if not state.is_delegated and state.processes:
        if top:
            return top
        if state.others:
            raise Unavailable(f"the group {state.path} was not delegated, and others' processes are in it")
    if leaves and state.processes and state.path.endswith(".service"):
        raise Unavailable(
            f"pods are to go on when {Path(state.path).name} stops (VOLCANO_UI_RUNNING=leave), and systemd could not start"
            f" it again beside their groups; that takes DelegateSubgroup={LEAF}, which systemd has from 254 on"
        )
    return state.path


def cpu_weight(millicpus: int) -> int:
    """Return the weight of a request, by Kubernetes' conversion from shares."""
    shares = min(MAX_SHARES, max(LEAST_SHARES, millicpus * 1024 // 1000))
    return 1 + (shares - LEAST_SHARES) * (MAX_WEIGHT - 1) // (MAX_SHARES - LEAST_SHARES)


def cpu_quota_us(millicpus: int) -> int:
    """Return the microseconds of each period that a limit stands for, 0 for none; the kernel takes no less than a thousand."""
    return max(LEAST_QUOTA_US, millicpus * control_group.PERIOD_US // 1000) if millicpus else 0


def order(groups: Groups, pod: Pod, container: Container, number: int) -> Group | None:
    """Return the group that an attempt is ordered with, and make that of its pod; OSError names the file."""
    if not groups.home:
        return None
    path = of_pod(groups, pod.metadata.uid, amounts.pod_request(pod.spec).get("cpu", 0))
    limit = amounts.of(container.resources.limits).get("cpu", 0)
    request = amounts.of(container.resources.requests).get("cpu", limit)
    name = f"{checked(container.name)}-{number}"
    return Group(f"{path}/{name}", cpu_weight(request), cpu_quota_us(limit), "cpuset" in groups.controllers)


def of_pod(groups: Groups, uid: str, millicpus: int) -> str:
    """Make the group of a pod with this request of processor time, and return its path; OSError names the file."""
    path = _make(f"{groups.home}/{checked(uid)}")
    _share_out(path, groups.controllers)
    control_group.write(f"{path}/cpu.weight", str(cpu_weight(millicpus)))
    return path


def find(layout: Layout, *, leaves: bool) -> Groups:
    """Return where the groups of pods are: found by making and dividing them, as what may be is known only then."""
    try:
        own, top = directory(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"))
        shared = own.removesuffix(f"/{LEAF}")
        is_ours = os.geteuid() == 0 and not (_is_below(top) and _processes(top))
        return _divide(
            shared_group(_inspect(shared, top, layout), top if is_ours else "", leaves=leaves), layout.groups
        )
    except Unavailable as error:
        return Groups(why=str(error))
    except OSError as error:
        return Groups(why=f"{error.strerror}: {error.filename}")


def _is_below(path: str) -> bool:
    """Whether there is something above a group, be it that an engine's container does not see it."""
    return Path(path, "cgroup.type").exists()


def _inspect(path: str, top: str, layout: Layout) -> GroupState:
    inside = _processes(path)
    is_delegated = (path == top and _is_below(path)) or any(_attribute(path, each) == b"1" for each in DELEGATED)
    others = set() if is_delegated else set(inside) - _of_cluster(layout)
    return GroupState(path, is_delegated, len(inside), len(others))


def _of_cluster(layout: Layout) -> set[int]:
    """Return the processes of this state directory: the agent's, and those of the `up` that runs there."""
    pids = {os.getpid(), *tree.below(os.getpid())}
    with contextlib.suppress(OSError, ValueError):
        up = int(pid_lock.holder(layout.root.parent / "run" / "up.lock"))
        if os.getpid() in (below := tree.below(up)):
            pids |= {up, *below}
    return pids


def _divide(shared: str, name: str) -> Groups:
    offered = _read(f"{shared}/cgroup.controllers").split()
    if missing := [each for each in NEEDED if each not in offered]:
        raise Unavailable(f"the group {shared} is given no {', '.join(missing)} to share out")
    if _is_below(shared):
        _move_processes(shared)
    _share_out(shared, NEEDED)
    controllers = (*NEEDED, *(each for each in ALSO if each in offered and _can_share_out(shared, each)))
    home = _make(f"{shared}/{name}")
    _share_out(home, controllers)
    return Groups(home, controllers)


def _move_processes(path: str) -> None:
    """Move the processes of a group into one below it: only the machine's root may have both, processes and groups."""
    for _ in range(MOVES):
        if not (pids := _processes(path)):
            return
        leaf = _make(f"{path}/{LEAF}")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                control_group.write(f"{leaf}/cgroup.procs", str(pid))
    raise Unavailable(f"processes of the group {path} begin others faster than they can be moved")


def _make(path: str) -> str:
    Path(path).mkdir(mode=0o755, exist_ok=True)
    return path


def _share_out(path: str, controllers: Collection[str]) -> None:
    control_group.write(f"{path}/cgroup.subtree_control", " ".join(f"+{name}" for name in controllers))


def _can_share_out(path: str, controller: str) -> bool:
    try:
        _share_out(path, [controller])
    except OSError:
        return False
    return True


def _processes(path: str) -> list[int]:
    return [int(word) for word in _read(f"{path}/cgroup.procs").split()]


def _attribute(path: str, name: str) -> bytes:
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""


def _read(path: str) -> str:
    return linux.content(path).decode()


class ControlGroups:
    """All groups of pods: in the present home, and in the homes of earlier starts."""

    def __init__(self, layout: Layout, groups: Groups) -> None:
        self._layout = layout
        # The homes that there are, this one included, are noted for the next agent.
        note = self._layout.root / "control-groups"
        noted = note.read_text().splitlines() if note.exists() else []
        homes = [each for each in dict.fromkeys((*noted, groups.home)) if each and Path(each).is_dir()]
        if homes != noted:
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text("".join(f"{each}\n" for each in homes))
        self._homes = [Path(each) for each in homes]
        self.sweep(())  # before anything is started

    def end(self, uid: str, container: str, number: int) -> bool:
        """End what is left of an attempt whose shim was killed; return whether it had a group, so that nothing is left."""
        groups = [home / uid / f"{container}-{number}" for home in self._homes]
        return any(_end(group) for group in groups if group.is_dir())

    def forget(self, uid: str) -> None:
        """Remove the group of a pod of which nothing runs; what cannot be removed yet is when it is swept."""
        for home in self._homes:
            self._clear(home / uid)

    def sweep(self, running: Collection[str]) -> None:
        """Remove what shims that were killed left, and the groups of pods of which nothing runs, but for those named."""
        for home in self._homes:
            for pod in _below(home):
                if pod.name not in running:
                    self._clear(pod)

    def close(self) -> None:
        """Remove what holds no pods any more."""
        for home in self._homes:
            control_group.remove(str(home))

    def _clear(self, pod: Path) -> None:
        for group in _below(pod):
            container, _, number = group.name.rpartition("-")
            if not shim_claims.shim_of(self._layout.attempt(pod.name, container, int(number))):
                _end(group)
        control_group.remove(str(pod))


def _end(group: Path) -> bool:
    """Kill all that is in a group, and remove it when it has ended; return whether it could be killed."""
    killed = control_group.kill(str(group))
    deadline = time.monotonic() + END_S
    poll = select.poll()
    with contextlib.suppress(OSError), (group / "cgroup.events").open() as events:
        poll.register(events, select.POLLPRI)
        while control_group.counts(events.read())["populated"] and (remaining := deadline - time.monotonic()) > 0:
            poll.poll(remaining * 1000)
            events.seek(0)
    control_group.remove(str(group))
    return killed


def _below(path: Path) -> list[Path]:
    try:
        return [each for each in path.iterdir() if each.is_dir()]
    except FileNotFoundError:
        return []
