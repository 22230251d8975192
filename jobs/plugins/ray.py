"""The plugin ray: starts a Ray cluster in the pods of a job (reference: volcano-job §5.8).

Volcano lets Ray find its own address, which is the machine's: two pods on one machine, as all pods here are, would take
each other's ports. So each Ray process is given its pod's address.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.plugins import addresses, containers, svc
from jobs.plugins.arguments import Flags
from jobs.plugins.contract import Context, Draft, Plugin, PluginObject, PodHook, PodIdentity, unchanged, wrong_ports
from kube import lenient
from kube.meta import Object
from kube.resources import SERVICES
from node.rules.programs import Program

SUFFIX = "-head-svc"
OWN_ADDRESS = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
PORTS = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}  # its name → the flag
ROLES = ("head", "worker")
FLAGS: Flags = {
    "head": "head",
    "headContainer": "head",
    "worker": "worker",
    "workerContainer": "worker",
    "port": 6379,
    "dashboardPort": 8265,
    "clientPort": 10001,
}


def _pods(context: Context) -> PodHook:
    head, worker = context.text("head"), context.text("worker")
    first = context.task(head)
    if first is None:
        return unchanged  # admission refuses such a job; one that was stored before is left as it is
    address = f"{addresses.of_pod(context.job, first, 0).address}:{context.number('port')}"

    def hook(draft: Draft, identity: PodIdentity) -> Draft:
        if identity.task not in (head, worker):
            return draft
        leads = identity.task == head
        name = context.text("headContainer" if leads else "workerContainer")
        command = f"ray start --block --address={address}"
        if leads:
            command = (
                "ray start --head --block --dashboard-host=0.0.0.0"
                f" --port={context.number('port')} --dashboard-port={context.number('dashboardPort')}"
                f" --ray-client-server-port={context.number('clientPort')}"
            )

        def change(container: Object) -> Object:
            if container.get("name") != name:
                return container
            for port, flag in PORTS.items() if leads else ():
                container = containers.opened(container, context.number(flag), port)
            return {
                **container,
                "command": ["sh", "-c", f"{command} --node-ip-address=$({OWN_ADDRESS['name']})"],
                "env": [*(container.get("env") or ()), OWN_ADDRESS],
            }

        return draft._replace(spec=containers.changed(draft.spec, change, containers.MAIN))

    return hook


def _starts(context: Context, role: str) -> bool:
    """Tell whether the task of a role has the container in which Ray is started."""
    containers = lenient.sequence(context.task(context.text(role)), "template", "spec", "containers")
    return any(lenient.text(each, "name") == context.text(f"{role}Container") for each in containers)


def _service(context: Context) -> Object:
    ports = [
        {"name": name, "port": context.number(flag), "protocol": "TCP", "targetPort": name}
        for name, flag in PORTS.items()
    ]
    labels = {**svc.selector(context), "volcano.sh/task-spec": context.text("head")}
    return {"spec": {"type": "ClusterIP", "selector": labels, "ports": ports}}


def _refusals(context: Context) -> Iterator[str]:
    head = context.text("head")
    if context.task(head) is None:
        yield f"ray head task not found: no task is named {head}; rename one or give the plugin --head=NAME."
    yield from wrong_ports(context, *PORTS.values())


def _warnings(context: Context) -> Iterator[str]:
    for role in ROLES:
        if context.task(context.text(role)) is not None and not _starts(context, role):
            name = context.text(f"{role}Container")
            yield (
                f"no container of task {context.text(role)} is named {name}, so Ray is not started in it;"
                f" rename one or give --{role}Container=NAME."
            )


PLUGIN = Plugin(
    "ray",
    FLAGS,
    _pods,
    objects=(PluginObject(SERVICES, SUFFIX, _service),),
    refusals=_refusals,
    warnings=_warnings,
    commands=lambda context: ((context.text(role), context.text(f"{role}Container")) for role in ROLES),
    programs=lambda context: {Program.RAY: [context.text(role) for role in ROLES if _starts(context, role)]},
)
