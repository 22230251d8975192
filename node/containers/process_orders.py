"""From a pod's container without an image to the order that has the shim start its command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kube import amounts
from kube.kinds.core import Container, Pod
from kube.mount_paths import lies_in
from node import attempts
from node.containers import actions, control_groups, hosts, networks, ssh_host_keys
from node.containers.context import NodeContext
from node.paths import TMP, WORK
from node.pods import environment
from node.rules.lifecycle import Start, grace_s
from node.rules.users import User
from node.shim import users as shim_users
from node.shim.order import Bind, Ids, Order
from node.status import PodAddress, container_id
from node.volumes import volumes
from node.volumes.volumes import Prepared

# Where a container with a root of its own finds its directory and that for temporary files. The path of a socket may have
# 107 bytes, of which the real path leaves too few for programs such as Ray.
WORK_TARGET = "/work"
TMP_TARGETS = ("/tmp", "/var/tmp")  # noqa: S108 - the pod's own is mounted over them
SHARED_MEMORY_SHARE = 2  # of the machine's memory, which is also what a tmpfs may take by default


class PreparedProcess(NamedTuple):
    """What was prepared for a command that the machine itself runs."""

    directory: Path
    volumes: Mapping[str, Prepared]
    devices: tuple[str, ...]  # files of /dev
    withheld: tuple[str, ...]  # those of other containers
    device_variables: dict[str, str]  # the ids of its devices
    network: str  # the namespace whose network it is in; "": the machine's
    user: User | None  # whom the command becomes; None: nobody new


def order(pod: Pod, start: Start, address: PodAddress, context: NodeContext, prepared: PreparedProcess) -> Order:
    """Return the order of one attempt; ConfigError when it cannot be as the pod wants it."""
    container, layout, wall = start.container, context.layout, context.wall
    mounted = wall.mounts != "none"
    home = layout.pod(pod.metadata.uid)
    work, tmp = (WORK_TARGET, TMP_TARGETS[0]) if mounted else (str(home / WORK), str(home / TMP))
    cwd = container.working_dir or work
    base_env = environment.base(pod, cwd, tmp)
    expressions = volumes.expressions(pod, container, address, base_env, context.lookup, context.allocatable)
    binds = volumes.binds(container, prepared.volumes, expressions, layout.root.parent)
    hosts_file = layout.hosts / hosts.group_of(pod)
    base_env |= volumes.variables(container, binds, mounted=mounted)
    base_env["VOLCANO_HOSTS_FILE"] = str(hosts.HOSTS if mounted else hosts_file)
    base_env[attempts.MARK] = container_id(pod, container, start.number)
    homes = (WORK_TARGET, *TMP_TARGETS) if mounted else (work, tmp)
    hidden = [path for path in context.reach if mounted and any(lies_in(path, target) for target in homes)]
    own_binds = [Bind(str(home / (WORK if target == work else TMP)), target) for target in homes]
    own_binds += [Bind(path, path, read_only=True) for path in hidden]
    own_binds += _system_binds(pod, context, binds, prepared.network, mounted=mounted)
    targets = [bind.target for bind in binds]
    own_binds = [bind for bind in own_binds if not any(lies_in(bind.target, each) for each in targets)]
    hooks, user, variables = container.lifecycle, prepared.user, prepared.device_variables
    # What a container has in /dev/shm is part of its memory.
    shared_memory = _limit(container, "memory") or context.allocatable["memory"] // SHARED_MEMORY_SHARE
    env = base_env | variables
    command = environment.command(pod, container, address, env, context.lookup, context.allocatable)
    return Order(
        directory=str(prepared.directory),
        argv=command.argv,
        env=command.env | variables,  # whatever the pod says: devices are given out once
        cwd=cwd,
        node=pod.spec.node_name,
        streak=start.streak,
        mounts=wall.mounts,
        pids=wall.pids and mounted,
        binds=(*binds, *own_binds),
        network=prepared.network,
        state=str(layout.root.parent),
        ids=_ids(pod, user, context),
        user=(user.uid, user.gid, list(user.groups)) if user is not None else None,
        shared_memory=shared_memory if mounted else 0,
        landlock=wall.landlock,
        read=tuple(path for path in context.reach if path not in hidden),
        devices=prepared.devices,
        withheld=prepared.withheld,
        seccomp=wall.seccomp,
        memory_bytes=_limit(container, "memory"),
        cpus=-(-_limit(container, "cpu") // 1000),
        group=control_groups.order(context.groups, pod, container, start.number),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        grace_s=float(grace_s(pod)),
        post_start=actions.of_hook(hooks.post_start if hooks else None, container, address.pod_ip),
        pre_stop=actions.of_hook(hooks.pre_stop if hooks else None, container, address.pod_ip),
    )


def _system_binds(pod: Pod, context: NodeContext, binds: Sequence[Bind], network: str, *, mounted: bool) -> list[Bind]:
    """Return the files of /etc that a container has instead of the machine's: hosts, resolver, host keys of ssh."""
    layout = context.layout
    hosts_file = layout.hosts / hosts.group_of(pod)
    found = []
    if hosts_file.exists() and not hosts.is_mounted(binds):
        found.append(Bind(str(hosts_file), str(hosts.HOSTS) if mounted else str(hosts_file), read_only=True))
    if network:
        found.append(Bind(str(layout.resolver), networks.RESOLV_CONF, read_only=True))
    if mounted and ssh_host_keys.TARGET.parent.is_dir():
        found += ssh_host_keys.bind(pod, layout.pod(pod.metadata.uid))
    return found


def _ids(pod: Pod, user: User | None, context: NodeContext) -> tuple[Ids, ...]:
    """Return who a pod's users are on this machine, where root gives containers a root of their own."""
    if context.wall.mounts != "root":
        return ()
    ids = (user.uid, user.gid, *user.groups) if user is not None else ()
    return shim_users.subordinate(context.ranges.of(pod.metadata.namespace), ids)


def _limit(container: Container, name: str) -> int:
    return amounts.of(container.resources.limits).get(name, 0)
