"""From a pod's container to the order that the spawner carries out."""

from __future__ import annotations

import logging
import os
import pwd

from django.conf import settings

from cluster.rules.node import node_engines
from cluster.rules.node.node_engines import PROCESS, RUNTIME
from kube.kinds.core import Container, Pod
from node import attempts
from node.containers import actions, image_orders, process_orders, walls
from node.containers.context import NodeContext
from node.containers.engines import INSTALL, EngineLookup
from node.containers.image_containers import wants_image
from node.paths import IDENTITY, TMP, WORK, Layout
from node.pods import environment
from node.rules import devices, probes, users
from node.rules.devices import Assigned
from node.rules.lifecycle import Refusal, Start
from node.rules.users import User
from node.shim.order import Order, Wall
from node.status import PodAddress
from node.volumes import retention, volumes

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
        prepared_image = image_orders.PreparedContainer(
            directory, directories, engine_devices, device_variables, image, network
        )
        return image_orders.order(pod, start, address, context, prepared_image)
    prepared = process_orders.PreparedProcess(
        directory, directories, own_devices, other_devices, device_variables, network, user
    )
    return process_orders.order(pod, start, address, context, prepared)


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
