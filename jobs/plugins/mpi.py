"""The plugin mpi: gives the master the workers' addresses, which it reaches by ssh (reference: volcano-job §5.7)."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.plugins import addresses, containers
from jobs.plugins.arguments import Flags
from jobs.plugins.contract import Context, Draft, Plugin, PodHook, PodIdentity, unknown_tasks, wrong_ports
from node.rules.programs import Program

PORT_NAME = "mpijob-port"
FLAGS: Flags = {"master": "master", "worker": "worker", "port": 22}


def _pods(context: Context) -> PodHook:
    master, port = context.text("master"), context.number("port")
    worker = context.task(context.text("worker"))
    hosts = [] if worker is None else addresses.of_task(context.job, worker)
    variables = [{"name": "MPI_HOST", "value": ",".join(host.address for host in hosts)}]

    def hook(draft: Draft, identity: PodIdentity) -> Draft:
        spec = draft.spec
        if identity.task == master:
            if worker is None:
                return draft
            spec = containers.with_variables(spec, variables)
        return draft._replace(spec=containers.with_port(spec, port, PORT_NAME))

    return hook


def _refusals(context: Context) -> Iterator[str]:
    master = context.text("master")
    if context.task(master) is None:
        yield f"mpi master task not found: no task is named {master}; rename one or give the plugin --master=NAME."
    yield from wrong_ports(context, "port")


PLUGIN = Plugin(
    "mpi",
    FLAGS,
    _pods,
    refusals=_refusals,
    warnings=lambda context: unknown_tasks(context, ["worker"], "the master gets no MPI_HOST"),
    # The workers need mpirun's installation too: it starts its daemon in each of them.
    programs=lambda context: {Program.MPIRUN: [context.text("master"), context.text("worker")]},
)
