"""Job plugins: what `spec.plugins` adds to a job (reference: volcano-job §5).

A plugin is asked for the spec of each pod. It is given the pod's place and a
Context: the job, all its tasks and the plugin's own arguments, enough to name
every other pod of the job. It returns the spec to use and never changes its
argument, which all pods of a task share. Plugins are asked in the order of
`WORKING`, whatever the order in the job (§10, Q-21).

Objects of a plugin's own (config maps, secrets, services) belong beside `pod`,
as a function of the same Context: `jobs.controller.plan` creates such objects in the
round that makes the pod group, as it does with claims, and `controlledResources`
lists every plugin of `WORKING` that the job names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jobs.controller.facts import JobFact
    from kube.meta import Object

PodSpec = dict[str, Any]

KNOWN = ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")


@dataclass(frozen=True, slots=True)
class Place:
    """A pod of a job."""

    task: str
    index: int
    name: str


class Context(NamedTuple):
    """What a plugin knows of the job that it works for."""

    job: JobFact
    tasks: Sequence[Object]  # as they are stored
    arguments: Sequence[str]  # what the job gives the plugin, in the syntax of `argument`


class Plugin(NamedTuple):
    """A plugin that works here."""

    name: str
    pod: Callable[[Context, PodSpec, Place], PodSpec]


def task_index(_: Context, spec: PodSpec, place: Place) -> PodSpec:
    """Tell every container its index: VK_TASK_INDEX and VC_TASK_INDEX (reference: volcano-job §5.2)."""
    index = str(place.index)
    added = [{"name": "VK_TASK_INDEX", "value": index}, {"name": "VC_TASK_INDEX", "value": index}]
    changed = {
        kind: [{**container, "env": [*(container.get("env") or ()), *added]} for container in spec[kind]]
        for kind in ("initContainers", "containers")
        if spec.get(kind)
    }
    return {**spec, **changed}


WORKING = {plugin.name: plugin for plugin in (Plugin("env", task_index),)}


def of_job(job: JobFact, whole: Object) -> list[Callable[[PodSpec, Place], PodSpec]]:
    """Return what the plugins of a job do to the spec of a pod, in their order."""
    wanted: Mapping[str, Any] = whole["spec"].get("plugins") or {}
    tasks = whole["spec"].get("tasks") or ()
    return [
        partial(plugin.pod, Context(job, tasks, wanted[name] or ()))
        for name, plugin in WORKING.items()
        if name in wanted
    ]


def argument(arguments: list[str], name: str, default: str) -> str:
    """Return the value of a plugin's flag in Go's syntax: `--name=value`, `-name=value` or `--name value`."""
    following = iter(arguments)
    for word in following:
        flag, separator, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            break  # a bare word ends the flags (reference: volcano-job §5.1)
        if flag == name:
            return value if separator else next(following, default)
    return default
