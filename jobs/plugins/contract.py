"""What a job plugin is (reference: volcano-job §5).

A plugin says which arguments it takes, what it does to each pod and which objects it wants to exist for the job. It is
given values and returns values. `jobs.plugins.table` lists the plugins in the order in which they work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Never

from jobs.plugins.arguments import Flags, Values
from kube import lenient
from kube.meta import Object
from kube.resources import Resource
from node.rules.programs import Program

PodSpec = dict[str, Any]
MOST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """A pod of a job."""

    task: str
    index: int
    name: str


class Draft(NamedTuple):
    """A pod as far as it is made; nothing in it may be changed, as the pods of a task share it."""

    spec: PodSpec
    annotations: Mapping[str, str]


class KeyPair(NamedTuple):
    """A key that opens every pod of a job to the others."""

    private: str  # PEM, PKCS#1
    public: str  # a line of authorized_keys


class Context(NamedTuple):
    """What a plugin knows of the job that it works for."""

    job: str
    namespace: str
    tasks: Sequence[Object]  # as they are stored
    arguments: Values
    keys: KeyPair | None = None  # where a product is to be made that needs new ones

    def task(self, name: str) -> Object | None:
        return next((task for task in self.tasks if lenient.text(task, "name") == name), None)

    def replicas(self, name: str) -> int:
        """Return how many pods a task has; 0 for one that does not exist."""
        return lenient.whole(self.task(name), "replicas") or 0

    def text(self, flag: str) -> str:
        return str(self.arguments[flag])

    def number(self, flag: str) -> int:
        return int(self.arguments[flag])


PodHook = Callable[[Draft, PodIdentity], Draft]


class PluginObject(NamedTuple):
    """An object that a plugin wants to exist while its job has pods.

    `content` is what it holds beside apiVersion, kind and metadata; None where this job is to have no such object. Of
    an object that exists, the keys of `data` that `keeps` names are kept as `content` says, and nothing else.
    """

    resource: Resource
    suffix: str  # its name is the job's with this behind it
    content: Callable[[Context], Object | None]
    keeps: Callable[[str], bool] = lambda _: False


def nothing(_: Context) -> Iterator[Never]:
    """Have nothing to say, and give no container a command."""
    yield from ()


def no_programs(_: Context) -> Mapping[Program, Sequence[str]]:
    """Need no program."""
    return {}


class Plugin(NamedTuple):
    """A plugin.

    `pods` is asked once for each task, and what it returns for each pod. `refusals` say why a job cannot be accepted,
    `warnings` what in it is likely not meant; their contexts come from what somebody wrote, whatever that is, as those
    of `commands` do, which names the containers that get their command from the plugin, each by its task and its name,
    and of `programs`, which names what pods cannot do without, each with the tasks that run it.
    """

    name: str
    flags: Flags
    pods: Callable[[Context], PodHook]
    objects: tuple[PluginObject, ...] = ()
    refusals: Callable[[Context], Iterator[str]] = nothing
    warnings: Callable[[Context], Iterator[str]] = nothing
    commands: Callable[[Context], Iterator[tuple[str, str]]] = nothing
    programs: Callable[[Context], Mapping[Program, Sequence[str]]] = no_programs
    is_registered: bool = True  # the job's status.controlledResources lists it


def unchanged(draft: Draft, _: PodIdentity) -> Draft:
    """Leave a pod as it is."""
    return draft


def wrong_ports(context: Context, *flags: str) -> Iterator[str]:
    """Say which of the ports among the arguments is none."""
    for flag in flags:
        if not 1 <= context.number(flag) <= MOST_PORT:
            yield f"--{flag} must be a port from 1 to {MOST_PORT}, and is {context.number(flag)}."


def unknown_tasks(context: Context, flags: Sequence[str], outcome: str) -> Iterator[str]:
    """Say which of the tasks that arguments name do not exist, and what comes of it."""
    for flag in flags:
        name = context.text(flag)
        if context.task(name) is None:
            yield f"no task is named {name}, so {outcome}; rename a task or give --{flag}=NAME."
