"""What a job's plugins gave its pods, in sentences: names, ports and files, computed from the stored job.

Rules: reference: volcano-job §5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jobs.plugins import addresses, table
from jobs.plugins.addresses import Host
from jobs.plugins.contract import Context
from jobs.rules import words
from kube import lenient
from kube.meta import Object


@dataclass(frozen=True, slots=True)
class Sentences:
    """A plugin: its summary, its arguments as written, and what it gave."""

    name: str
    summary: str
    arguments: tuple[str, ...] = ()
    gave: tuple[str, ...] = ()


def of_job(job: Object) -> list[Sentences]:
    """Return what each plugin of a stored job gave."""
    wanted = lenient.mapping(job, "spec", "plugins")
    contexts = {plugin.name: context for plugin, context in table.of_job(job)}
    return [
        Sentences(
            name,
            words.PLUGIN_WORDS[name].description if name in words.PLUGIN_WORDS else "",
            tuple(lenient.texts(wanted, name)),
            tuple(SAYS[name](contexts[name])) if name in contexts else (),
        )
        for name in wanted
    ]


def _svc(context: Context) -> Iterator[str]:
    for task in context.tasks:
        if hosts := addresses.of_task(context.job, task):
            yield f"Pods of {lenient.text(task, 'name')} are found as {_range(hosts)}."
    yield "The directory /etc/volcano has a file for each task with these names, one a line."
    if context.arguments["inject-hosts-env"]:
        yield "The variables VC_TASK_HOSTS and VC_TASK_NUM, with each task's name for TASK, hold the same."
    if not context.arguments["disable-network-policy"]:
        yield f"The NetworkPolicy {context.job} asks that only pods of this job connect to them; this machine does not enforce it."


def _pytorch(context: Context) -> Iterator[str]:
    master, worker = context.text("master"), context.text("worker")
    hosts, followers = _hosts(context, "master"), context.replicas(worker)
    if not hosts:
        yield f"No pod of a task {master} leads, so nothing is set."
        return
    world = context.replicas(master) + followers
    yield f"MASTER_ADDR is {hosts[0].address}, MASTER_PORT {context.number('port')}, WORLD_SIZE {world}."
    if followers:
        yield f"RANK is 0 in {master} and {_numbers(1, followers)} in {worker}."


def _tensorflow(context: Context) -> Iterator[str]:
    for role in ("chief", "ps", "worker", "evaluator"):
        if hosts := _hosts(context, role):
            yield f"In TF_CONFIG {role} is {_range(hosts)} at port {context.number('port')}."


def _mpi(context: Context) -> Iterator[str]:
    if hosts := _hosts(context, "worker"):
        yield f"MPI_HOST in the pods of {context.text('master')} is the list {_range(hosts)}."
    yield f"Containers open port {context.number('port')} for ssh."


def _ray(context: Context) -> Iterator[str]:
    port = context.number("port")
    if hosts := _hosts(context, "head"):
        yield f"The head is {hosts[0].address}; workers join it at port {port}."
    yield (
        f"The Service {context.job}-head-svc leads to it: port {port} for workers, {context.number('dashboardPort')} "
        f"for the dashboard, {context.number('clientPort')} for clients."
    )


def _hcclrank(context: Context) -> Iterator[str]:
    master, worker = context.text("master"), context.text("worker")
    first = context.replicas(master)
    for task, start in ((master, 0), (worker, first)):
        if number := context.replicas(task):
            yield f"The annotation hccl/rankIndex is {_numbers(start, start + number - 1)} in {task}, unless RANK is set."


SAYS: dict[str, Callable[[Context], Iterable[str]]] = {
    "env": lambda _: ["VC_TASK_INDEX and VK_TASK_INDEX hold the number of each pod in its task, from 0."],
    "svc": _svc,
    "ssh": lambda context: [
        f"The keys are in {context.text('ssh-key-file-path')} of each container, from the Secret {context.job}-ssh; "
        f"clients use port {context.number('ssh-port')}."
    ],
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "mpi": _mpi,
    "ray": _ray,
    "hcclrank": _hcclrank,
}


def _hosts(context: Context, flag: str) -> list[Host]:
    """Return the hosts of the task that an argument names."""
    task = context.task(context.text(flag))
    return [] if task is None else addresses.of_task(context.job, task)


def _range(hosts: Sequence[Host]) -> str:
    return hosts[0].address if len(hosts) == 1 else f"{hosts[0].address} to {hosts[-1].address}"


def _numbers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"
