"""From a pod's container with an image to the order that has an engine run it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kube import amounts
from kube.kinds.core import Pod
from node import attempts
from node.containers import actions, engines, hosts, image_containers
from node.containers.context import NodeContext
from node.containers.engines import Engine
from node.containers.images import LocalImage
from node.containers.networks import RESOLV_CONF
from node.pods import environment
from node.rules import users
from node.rules.lifecycle import Start, grace_s
from node.shim import users as shim_users
from node.shim.order import Bind, Ids, Image, Order
from node.status import PodAddress, container_id
from node.volumes import volumes
from node.volumes.volumes import Prepared


class PreparedContainer(NamedTuple):
    """What was prepared for a container."""

    directory: Path
    volumes: Mapping[str, Prepared]
    devices: tuple[str, ...]  # files of /dev, or names that the engine knows (CDI)
    device_variables: Mapping[str, str]  # the ids of these devices
    image: LocalImage
    network: str  # the namespace whose network it is in; "": the machine's


def order(pod: Pod, start: Start, address: PodAddress, context: NodeContext, prepared: PreparedContainer) -> Order:
    """Return the order of one attempt; ConfigError when it cannot be as the pod wants it."""
    container, layout = start.container, context.layout
    engine = context.engine.engine
    if engine is None:
        raise environment.ConfigError(f"this node runs no images; {engines.INSTALL} there")
    image_containers.check_user(pod, container, prepared.image.user)
    state = str(layout.root.parent)
    expressions = volumes.expressions(pod, container, address, {}, context.lookup, context.allocatable)
    binds = volumes.binds(container, prepared.volumes, expressions, layout.root.parent)
    variables = volumes.variables(container, binds, mounted=True)
    variables["VOLCANO_HOSTS_FILE"] = str(hosts.HOSTS)
    variables[attempts.MARK] = container_id(pod, container, start.number)
    hosts_file = layout.hosts / hosts.group_of(pod)
    if hosts_file.exists() and not hosts.is_mounted(binds):
        binds = (*binds, Bind(str(hosts_file), str(hosts.HOSTS), read_only=True))
    network = prepared.network if engine.stages else ""
    if network and not any(bind.target == RESOLV_CONF for bind in binds):
        binds = (*binds, Bind(str(layout.resolver), RESOLV_CONF, read_only=True))
    image_containers.check_binds(binds, staged=engine.stages)
    ids: tuple[Ids, ...] = ()
    if engine.maps and not prepared.devices:  # files of devices often belong to groups that its users are not in
        run_as = users.requested(pod, container)
        named = [each for each in (run_as.uid, run_as.gid, *run_as.groups) if each is not None]
        ids = shim_users.subordinate(context.ranges.of(pod.metadata.namespace), named)
    hooks = container.lifecycle
    env = {**variables, **prepared.device_variables}
    command = environment.command(pod, container, address, env, context.lookup, context.allocatable)
    return Order(
        directory=str(prepared.directory),
        argv=image_containers.image_arguments(container, command.argv),
        env={**command.env, **prepared.device_variables},
        cwd="/",
        node=pod.spec.node_name,
        streak=start.streak,
        binds=binds,
        network=network,
        state=state,
        ids=ids,
        # Where the engine limits nothing, the shim does.
        memory_bytes=0 if engine.limits else amounts.of(container.resources.limits).get("memory", 0),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        grace_s=float(grace_s(pod)),
        post_start=actions.of_hook(hooks.post_start if hooks else None, container, address.pod_ip),
        pre_stop=actions.of_hook(hooks.pre_stop if hooks else None, container, address.pod_ip),
        image=_image(pod, start, command.argv, prepared, engine, state, engines.users_of(ids)),
    )


def _image(
    pod: Pod,
    start: Start,
    argv: list[str],
    prepared: PreparedContainer,
    engine: Engine,
    state: str,
    users: tuple[str, ...],
) -> Image:
    devices = [part for each in prepared.devices for part in ("--device", each)]
    more = ["--label", f"{image_containers.LABEL}={node_id(state)}", *engines.ulimits(), *devices, *users]
    return Image(
        engine=engine.program,
        kind=engine.kind,
        id=prepared.image.id,
        name=image_containers.name(pod, start.container, start.number),
        options=image_containers.options(pod, start.container, argv, engine, more, user=prepared.image.user),
        env=engines.environment(),
        reference=prepared.image.reference,
        stages=engine.stages,
        filters=engine.filters,
    )


def node_id(state: str) -> str:
    """Return an id for the containers of one state directory, as others may share the engine."""
    return hashlib.sha256(state.encode()).hexdigest()[:16]
