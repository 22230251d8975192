"""As whom a container runs: the user that its pod requests (runAsUser and the like), and whether this machine can give it. Pure.

A cluster that an ordinary user started runs all containers as that user. Where root started it, each namespace has users
of its own, of whom all are nobody outside (`node.shim.users`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from cluster.rules.pod.security_contexts import MAX_ID
from kube.kinds.pod import Container, Pod


class Own(NamedTuple):
    """Who the cluster runs as, and how its containers get their mounts."""

    uid: int
    gid: int
    groups: Collection[int]
    mounts: str


class User(NamedTuple):
    """Whom a container's command becomes."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class RunAs(NamedTuple):
    """As whom a container is to run, by its own securityContext before its pod's."""

    uid: int | None
    gid: int | None
    groups: tuple[int, ...]
    non_root: bool

    @property
    def says_nothing(self) -> bool:
        """Whether anybody will do."""
        return self.uid is None and self.gid is None and not self.groups and not self.non_root


def requested(pod: Pod, container: Container) -> RunAs:
    """Return as whom a container is to run."""
    whole, own = pod.spec.security_context, container.security_context

    def first(field: str) -> int | None:
        values = (getattr(each, field) for each in (own, whole) if each is not None)
        return next((value for value in values if value is not None), None)

    group = group_of(pod)
    supplemental = whole.supplemental_groups if whole is not None else []
    groups = dict.fromkeys([*supplemental, *([group] if group is not None else [])])
    return RunAs(first("run_as_user"), first("run_as_group"), tuple(groups), bool(first("run_as_non_root")))


def group_of(pod: Pod) -> int | None:
    """Return to which group a pod's volumes are to belong (fsGroup)."""
    return pod.spec.security_context.fs_group if pod.spec.security_context is not None else None


def problem(run_as: RunAs, own: Own) -> str:
    """Return why a container cannot run as it requests, with a remedy; empty when it can."""
    ids = [each for each in (run_as.uid, run_as.gid, *run_as.groups) if each is not None]
    # -1 stands for "as before" in system calls.
    if wrong := [each for each in ids if not 0 <= each <= MAX_ID]:
        return f"{wrong[0]} is not the number of a user or group; give one from 0 to {MAX_ID}"
    if run_as.non_root and (own.uid if run_as.uid is None else run_as.uid) == 0:
        if run_as.uid is None:
            return "container has runAsNonRoot and would run as root, who started this cluster; give it a runAsUser"
        return "container's runAsUser breaks non-root policy; give another runAsUser, or remove runAsNonRoot"
    others = [
        f"{field} {value}"
        for field, value, own_ids in (
            ("runAsUser", run_as.uid, (own.uid,)),
            ("runAsGroup", run_as.gid, (own.gid,)),
            *(("the group", group, (own.gid, *own.groups)) for group in run_as.groups),
        )
        if value is not None and value not in own_ids
    ]
    if not others or (own.uid == 0 and own.mounts == "root"):
        return ""
    if own.uid == 0:
        return f"{others[0]} cannot be had, because this machine lets root give containers no users of their own; remove it"
    return (
        f"{others[0]} cannot be had: user {own.uid} started this cluster, and only root can become somebody else; "
        f"remove it, or name user {own.uid} and group {own.gid}, or have root start the cluster"
    )


def user(run_as: RunAs, own: Own, primary_group: Callable[[int], int]) -> User | None:
    """Return whom a container's command becomes; None where it stays who the cluster is.

    Without a runAsGroup it has the machine's primary group of the user.
    """
    uid = own.uid if run_as.uid is None else run_as.uid
    gid = run_as.gid if run_as.gid is not None else own.gid if uid == own.uid else primary_group(uid)
    if own.uid != 0 or (uid, gid, run_as.groups) == (own.uid, own.gid, ()):
        return None
    return User(uid, gid, run_as.groups)
