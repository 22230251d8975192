"""From a pod's container to the order that the spawner carries out."""

from __future__ import annotations

import logging
import os
import pwd

from django.conf import settings

from cluster.rules.node import node_engines
from cluster.rules.node.node_engines import PROCESS, RUNTIME
from kube import amounts
from kube.kinds.core import Container, Pod
from kube.mount_paths import lies_in
from node import attempts
from node.containers import actions, control_groups, hosts, image_orders, networks, ssh_host_keys, walls
from node.containers.context import NodeContext
from node.containers.engines import INSTALL, EngineLookup
from node.containers.image_containers import wants_image
from node.paths import IDENTITY, TMP, WORK, Layout
from node.pods import environment
from node.rules import devices, probes, users
from node.rules.devices import Assigned
from node.rules.lifecycle import Refusal, Start, grace_s
from node.rules.users import User
from node.shim import users as shim_users
from node.shim.order import Bind, Ids, Order, Wall
from node.status import PodAddress, container_id
from node.volumes import retention, volumes

# Where a container with a root of its own finds its directory and that for temporary files. The path of a socket may have
# 107 bytes, of which the real path leaves too few for programs such as Ray.
WORK_TARGET = "/work"
TMP_TARGETS = ("/tmp", "/var/tmp")  # noqa: S108 - the pod's own is mounted over them
SHARED_MEMORY_SHARE = 2  # of the machine's memory, which is also what a tmpfs may take by default
log = logging.getLogger(__name__)


def refusal(pod: Pod, layout: Layout, engine: EngineLookup) -> Refusal | None:
    """Return why this node cannot run the pod at all, None when it can."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(probe.grpc is not None for probe in probes.of(container).values()):
            return Refusal("UnsupportedProbe", actions.GRPC.format(container.name))
        without_image = engine.engine is None or not wants_image(pod, container)
        if without_image and not node_engines.has_command(container.command, container.args):
            return Refusal("NoCommand", _no_command(container, engine))
    return volumes.refusal(pod, layout)


def _no_command(container: Container, engine: EngineLookup) -> str:
    if engine.engine is not None:
        return (
            f"Without its image container {container.name} has nothing to run; give container {container.name} a command, "
            f"or an image and no annotation {RUNTIME}: {PROCESS}."
        )
    why = f" ({engine.why})" if engine.why else ""
    return (
        f"This node runs commands and no images; give container {container.name} a command, "
        f"or {INSTALL} there and start again{why}."
    )


def order(pod: Pod, start: Start, address: PodAddress, context: NodeContext) -> Order:
    """Make everything ready for one attempt and return its order.

    Raises environment.ConfigError when something that the container refers to
    is missing, images.ImageWaits while its image is, and OSError when the disk does not take it.
    """
    container, layout, wall = start.container, context.layout, context.wall
    image = None
    if context.images is not None and wants_image(pod, container):
        image = context.images.image_for(pod, container)
    else:
        _check_wall(pod, context)
    user = _user(pod, container, wall) if image is None else None
    home = layout.pod(pod.metadata.uid)
    directory = layout.attempt(pod.metadata.uid, container.name, start.number)
    for path in (directory, home / WORK, home / TMP):
        path.mkdir(parents=True, exist_ok=True)
    (home / TMP).chmod(0o1777)  # as programs expect of /tmp; nobody but the pod comes here
    if user is not None:
        (home / WORK).chmod(0o777)
    retention.prune(layout, pod.metadata.uid, container.name)
    attempts.write_identity(home / IDENTITY, identity(pod))
    mounted = wall.mounts != "none"
    # Elsewhere every pod reaches the machine's shared memory.
    directories = volumes.Volumes(pod, address, layout, context.lookup, in_memory=mounted).prepare()
    inventory = context.devices.found_devices.inventory
    network = _network(pod, context, of_image=image is not None)
    assigned = _devices(pod, container, context)
    own_devices, other_devices = devices.files(inventory.kinds, assigned)
    device_variables = devices.variables(inventory.kinds, assigned)
    if image is not None:
        by_name = context.engine.engine is not None and context.engine.engine.cdi
        engine_devices = inventory.by_engine(assigned) if by_name else own_devices
        contained = image_orders.PreparedContainer(
            directory, directories, engine_devices, device_variables, image, network
        )
        return image_orders.order(pod, start, address, context, contained)
    hosts_file = layout.hosts / hosts.group_of(pod)
    work, tmp = (WORK_TARGET, TMP_TARGETS[0]) if mounted else (str(home / WORK), str(home / TMP))
    cwd = container.working_dir or work
    base_env = environment.base(pod, cwd, tmp)
    expressions = volumes.expressions(pod, container, address, base_env, context.lookup, context.allocatable)
    binds = volumes.binds(container, directories, expressions, layout.root.parent)
    base_env |= volumes.variables(container, binds, mounted=mounted)
    base_env["VOLCANO_HOSTS_FILE"] = str(hosts.HOSTS if mounted else hosts_file)
    base_env[attempts.MARK] = container_id(pod, container, start.number)
    home_targets = (WORK_TARGET, *TMP_TARGETS) if mounted else (work, tmp)
    own_binds = [Bind(str(home / (WORK if target == work else TMP)), target) for target in home_targets]
    hidden = [path for path in context.reach if mounted and any(lies_in(path, target) for target in home_targets)]
    own_binds += [Bind(path, path, read_only=True) for path in hidden]
    if hosts_file.exists() and not hosts.is_mounted(binds):
        own_binds.append(Bind(str(hosts_file), str(hosts.HOSTS) if mounted else str(hosts_file), read_only=True))
    if network:
        own_binds.append(Bind(str(layout.resolver), networks.RESOLV_CONF, read_only=True))
    if mounted and ssh_host_keys.TARGET.parent.is_dir():
        own_binds += ssh_host_keys.bind(pod, home)
    targets = [bind.target for bind in binds]
    own_binds = [bind for bind in own_binds if not any(lies_in(bind.target, each) for each in targets)]
    hooks = container.lifecycle
    # What a container has in /dev/shm is part of its memory.
    shared_memory = _limit(container, "memory") or context.allocatable["memory"] // SHARED_MEMORY_SHARE
    command = environment.command(
        pod, container, address, base_env | device_variables, context.lookup, context.allocatable
    )
    return Order(
        directory=str(directory),
        argv=command.argv,
        env=command.env | device_variables,  # whatever the pod says: devices are given out once
        cwd=cwd,
        node=pod.spec.node_name,
        streak=start.streak,
        mounts=wall.mounts,
        pids=wall.pids and mounted,
        binds=(*binds, *own_binds),
        network=network,
        state=str(layout.root.parent),
        ids=_ids(pod, user, context),
        user=(user.uid, user.gid, list(user.groups)) if user is not None else None,
        shared_memory=shared_memory if mounted else 0,
        landlock=wall.landlock,
        read=tuple(path for path in context.reach if path not in hidden),
        devices=own_devices,
        withheld=other_devices,
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


def _devices(pod: Pod, container: Container, context: NodeContext) -> Assigned:
    """Return the devices that a container has, of those that its pod is given now or has already."""
    try:
        assigned = context.devices.assign(pod)
    except devices.Short as error:
        raise environment.ConfigError(str(error)) from None
    return devices.shares(pod, assigned).get(container.name, {})


def _user(pod: Pod, container: Container, wall: Wall) -> User | None:
    """Return whom a container's command becomes, None where nobody new; ConfigError where it cannot be had."""
    requested = users.requested(pod, container)
    if requested.says_nothing:
        return None
    own = users.Own(os.geteuid(), os.getegid(), os.getgroups(), wall.mounts)
    if problem := users.problem(requested, own):
        raise environment.ConfigError(f'{problem} (pod: "{pod.metadata.name}", container: {container.name})')
    return users.user(requested, own, _primary_group)


def _primary_group(uid: int) -> int:
    """Return the group of a user as this machine knows it; of one that it does not know, the one of the same number."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _check_wall(pod: Pod, context: NodeContext) -> None:
    """Refuse a pod that could do all that the user may who runs the cluster, unless it is its administrators' anyway."""
    if walls.holds(context.wall) or settings.ALLOW_UNWALLED or context.lookup.is_administrators(pod):
        return
    raise environment.ConfigError(
        "this machine has no wall between pods and the cluster, so it runs pods of administrators of all namespaces only; "
        f"to change that, its administrator can {walls.remedy(context.wall)}; VOLCANO_UI_ALLOW_UNWALLED=1 allows pods of everybody"
    )


def _network(pod: Pod, context: NodeContext, *, of_image: bool) -> str:
    """Return the namespace in whose network a pod is, "" for the machine's; ConfigError where it may not have that."""
    wall, engine = context.wall, context.engine.engine
    if not wall.networks and not wall.closed:
        return ""
    if pod.spec.host_network:
        if context.lookup.is_administrators(pod):
            return ""
        raise environment.ConfigError(
            "only pods of administrators of all namespaces have the network of their machine; leave hostNetwork out"
        )
    if wall.closed and (not wall.networks or (of_image and engine is not None and not engine.stages)):
        raise environment.ConfigError(
            f"pods are to have a network without a way out (VOLCANO_UI_POD_NETWORK=closed), and this {'engine' if wall.networks else 'machine'}"
            " lets them have none; its administrator is told by manage.py check-wall what it takes, or can choose another network"
        )
    return pod.metadata.namespace


def _ids(pod: Pod, user: User | None, context: NodeContext) -> tuple[Ids, ...]:
    """Return who a pod's users are on this machine, where root gives containers a root of their own."""
    if context.wall.mounts != "root":
        return ()
    ids = (user.uid, user.gid, *user.groups) if user is not None else ()
    return shim_users.subordinate(context.ranges.of(pod.metadata.namespace), ids)


def mentions(pod: Pod, name: str) -> bool:
    """Whether a volume of the pod is made from a ConfigMap or Secret of this name."""
    return any(
        (volume.config_map is not None and volume.config_map.name == name)
        or (volume.secret is not None and volume.secret.secret_name == name)
        or (volume.projected is not None and name in str(volume.projected))
        for volume in pod.spec.volumes
    )


def refresh_volumes(pod: Pod, address: PodAddress, context: NodeContext) -> None:
    """Bring volumes that are made from objects up to date while the pod runs; what is missing stays as it was."""
    try:
        volumes.Volumes(pod, address, context.layout, context.lookup).refresh()
    except (environment.ConfigError, OSError, ValueError) as error:
        log.info("volumes of %s/%s stay as they were: %s", pod.metadata.namespace, pod.metadata.name, error)


def identity(pod: Pod) -> dict[str, str]:
    """Return what tells a pod's directory apart when the pod is gone."""
    return {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "job": pod.metadata.annotations.get("volcano.sh/job-name", ""),
    }


def _limit(container: Container, name: str) -> int:
    return amounts.of(container.resources.limits).get(name, 0)
