"""What a job plugin is (reference: volcano-job §5).

A plugin declares its arguments, how it changes each pod, and which objects it wants to exist for the job. Its functions
have no side effects. `jobs.plugins.table` lists the plugins in the order in which they are applied.
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
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """A pod of a job."""

    task: str
    index: int
    name: str


class Draft(NamedTuple):
    """A pod that is being made; its values must not be changed in place, since the pods of a task share them."""

    spec: PodSpec
    annotations: Mapping[str, str]


class KeyPair(NamedTuple):
    """A key pair with which the pods of a job log in to each other."""

    private: str  # PEM, PKCS#1
    public: str  # a line of authorized_keys


class Context(NamedTuple):
    """What a plugin knows of its job."""

    job: str
    namespace: str
    tasks: Sequence[Object]  # as they are stored
    arguments: Values
    keys: KeyPair | None = None  # a new pair, if an object that needs one is to be made

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

    `content` returns the object without apiVersion, kind and metadata, or None if this job has no such object. In an
    existing object only the keys of `data` for which `keeps` is true are updated to `content`.
    """

    resource: Resource
    suffix: str  # its name is the job's name followed by this
    content: Callable[[Context], Object | None]
    keeps: Callable[[str], bool] = lambda _: False


def nothing(_: Context) -> Iterator[Never]:
    """Yield nothing: no messages, and no containers that get a command."""
    yield from ()


def no_programs(_: Context) -> Mapping[Program, Sequence[str]]:
    """Return that no program is needed."""
    return {}


class Plugin(NamedTuple):
    """A plugin.

    `pods` is called once for each task, and the hook that it returns once for each pod. `refusals` yields why a job cannot
    be accepted, `warnings` what in it is probably a mistake. `commands` yields task and name of the containers that get
    their command from the plugin, and `programs` returns the programs that pods need, with the tasks that run them. The
    contexts of these four come from unchecked user input.
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
    """Return a pod as it is."""
    return draft


def wrong_ports(context: Context, *flags: str) -> Iterator[str]:
    """Yield a message for each of these flags whose value is not a valid port."""
    for flag in flags:
        if not 1 <= context.number(flag) <= MAX_PORT:
            yield f"--{flag} must be a port from 1 to {MAX_PORT}, and is {context.number(flag)}."


def unknown_tasks(context: Context, flags: Sequence[str], outcome: str) -> Iterator[str]:
    """Yield a message for each of these flags that names a task that does not exist, with the outcome of that."""
    for flag in flags:
        name = context.text(flag)
        if context.task(name) is None:
            yield f"no task is named {name}, so {outcome}; rename a task or give --{flag}=NAME."
