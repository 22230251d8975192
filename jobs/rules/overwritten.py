"""What a plugin overwrites in a job: found by letting it make a pod, so it works for every plugin.

A plugin appends variables and mounts to those of a container, and the last one of a name or a path counts; its command
replaces the container's.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import Any, NamedTuple

from jobs.plugins import table
from jobs.plugins.containers import EVERY
from jobs.plugins.contract import Draft, PodIdentity
from kube import lenient
from kube.meta import Object

_LISTS = {"env": "name", "volumeMounts": "mountPath", "volumes": "name"}
_MERGED = ("ports", *_LISTS)  # what plugins only add to


class _Made(NamedTuple):
    """What a plugin made of a pod or a container: the plugin's name, and the object before and after it."""

    plugin: str
    before: Object
    after: Object


def of_job(job: Object) -> Iterator[str]:
    """Yield what plugins overwrite in a job with its defaults, as `path: sentence`."""
    name = lenient.text(job, "metadata", "name")
    tasks = lenient.sequence(job, "spec", "tasks")
    # With two pods a task, plugins set the same names, and do not list up to 100,000 addresses.
    few = [
        {**each, "replicas": min(lenient.whole(each, "replicas") or 0, 2)} for each in tasks if isinstance(each, dict)
    ]
    small = {**job, "spec": {**lenient.mapping(job, "spec"), "tasks": few}}
    hooks = [(plugin.name, plugin.pods(context)) for plugin, context in table.of_job(small)]
    for number, task in enumerate(tasks):
        task_name = lenient.text(task, "name")
        spec = lenient.mapping(task, "template", "spec")
        # Leave out items that are no mappings: plugins never get those.
        kinds = {
            kind: [_listed(each) for each in lenient.sequence(spec, kind) if isinstance(each, dict)] for kind in EVERY
        }
        written = {**_listed(spec), **{kind: items for kind, items in kinds.items() if items}}
        draft, identity = Draft(written, {}), PodIdentity(task_name, 0, f"{name}-{task_name}-0")
        for plugin, hook in hooks:
            before, draft = draft, hook(draft, identity)
            change = _Made(plugin, before.spec, draft.spec)
            yield from _of_pod(change, written, f"spec.tasks[{number}].template.spec")
            for at, volume in enumerate(lenient.sequence(job, "spec", "volumes")):
                where = lenient.text(volume, "mountPath")
                if any(_normalized(where) in _added(one, "volumeMounts") for one in _containers(change, "containers")):
                    yield _hides(f"spec.volumes[{at}].mountPath", plugin, where)


def _listed(owner: dict[str, Any]) -> dict[str, Any]:
    lists = {
        key: [each for each in lenient.sequence(owner, key) if isinstance(each, dict)]
        for key in _MERGED
        if key in owner
    }
    return {**owner, **lists}


def _of_pod(change: _Made, written: dict[str, Any], path: str) -> Iterator[str]:
    names = _added(change, "volumes")
    for number, volume in enumerate(written.get("volumes", ())):
        if lenient.text(volume, "name") in names:
            yield f"{path}.volumes[{number}].name: the plugin {change.plugin} adds a volume of this name; give yours another."
    for kind in EVERY:
        for number, one in enumerate(_containers(change, kind)):
            if number < len(written.get(kind, ())):
                yield from _of_container(one, written[kind][number], f"{path}.{kind}[{number}]")


def _containers(change: _Made, kind: str) -> list[_Made]:
    pairs = zip(change.before.get(kind, ()), change.after.get(kind, ()), strict=False)
    return [_Made(change.plugin, before, after) for before, after in pairs]


def _of_container(change: _Made, written: Object, path: str) -> Iterator[str]:
    variables, mount_paths = _added(change, "env"), _added(change, "volumeMounts")
    for number, each in enumerate(written.get("env", ())):
        if (name := lenient.text(each, "name")) in variables:
            yield (
                f"{path}.env[{number}]: the plugin {change.plugin} sets {name} as well, and what it sets counts; "
                "rename this variable or remove it."
            )
    for number, each in enumerate(written.get("volumeMounts", ())):
        if _normalized(where := lenient.text(each, "mountPath")) in mount_paths:
            yield _hides(f"{path}.volumeMounts[{number}].mountPath", change.plugin, where)
    for field in written.keys() - set(_MERGED):
        if change.after.get(field) != change.before.get(field):
            yield f"{path}.{field}: the plugin {change.plugin} puts its own in its place; remove yours, or name the container otherwise."
    if written.get("args") and change.after.get("command") != change.before.get("command"):
        yield f"{path}.args: the plugin {change.plugin} gives the container a command that reads no arguments; remove them."


def _added(change: _Made, field: str) -> set[str]:
    """Return the names or paths of items that a plugin added to a list."""
    before, after = (one.get(field) or () for one in (change.before, change.after))
    return {_normalized(lenient.text(each, _LISTS[field])) for each in after[len(before) :]}


def _normalized(name: str) -> str:
    """Return a name, or a normalized path, so that equal ones match."""
    return normpath(name) if name.startswith("/") else name


def _hides(path: str, plugin: str, where: str) -> str:
    return f"{path}: the plugin {plugin} mounts its files at {where} as well, which hides this; mount it elsewhere."
