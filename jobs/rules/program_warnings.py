"""Programs that the plugins of a job need, and that nodes open to its pods do not have.

Where an engine runs images a program comes with them, unless the pod wants to run as processes; elsewhere a
container runs its machine's. Only nodes that list their programs (`node.rules.programs`) are spoken of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from cluster.rules.node import node_engines
from jobs.plugins import table
from jobs.plugins.contract import Context, Plugin
from kube import lenient
from kube.meta import Object
from node.rules import programs
from scheduler.records import node_selection, reading
from scheduler.records.node_selection import NodeFacts, NodeRule

MOST_NAMED = 3  # nodes in a sentence; of more the number is told
# A path of the container's own, which the node does not look into, or a search path of its own.
_OWN = r"\bPATH=|(?<!\S)(?!/(?:usr/(?:local/)?)?s?bin/)\S*/{program}(?![\w-])"


class MachinesView(Protocol):
    """What may be asked about machines."""

    def machines(self) -> list[Object]: ...


class Equipped(NamedTuple):
    """A node that lists its programs; with `images` a program comes with these."""

    facts: NodeFacts
    has: frozenset[str]
    images: bool


def of_job(job: Object, view: MachinesView) -> Iterator[str]:
    """Yield for each program that a plugin needs the nodes without it, as `path: sentence`.

    Spoken of are nodes that are ready and open to pods that need the program,
    by selector, required affinity and taints; whether there is room is not asked.
    """
    for plugin, context in table.of_job(job):
        yield from _of_plugin(plugin, context, view)


def _of_plugin(plugin: Plugin, context: Context, view: MachinesView) -> Iterator[str]:
    for program, names in plugin.programs(context).items():
        users = [task for name in names if (task := context.task(name)) and _runs(task, program)]
        if not users:
            continue
        if lacking := _lacking(program, users, list(_equipped(view.machines()))):
            yield (
                f"spec.plugins[{plugin.name}]: {_counted(lacking)} no {program}, and containers run the programs of "
                f"their node, whatever their image; install {programs.PACKAGES[program]} there."
            )


def _runs(task: Object, program: str) -> bool:
    """Whether a task has pods, and these find the program where their node does."""
    if not lenient.whole(task, "replicas"):
        return False
    spec = lenient.mapping(task, "template", "spec")
    every = (*lenient.sequence(spec, "initContainers"), *lenient.sequence(spec, "containers"))
    return not any(_finds_its_own(container, program) for container in every)


def _finds_its_own(container: Any, program: str) -> bool:
    words = (*lenient.texts(container, "command"), *lenient.texts(container, "args"))
    own = re.compile(_OWN.format(program=re.escape(program)))
    return any(lenient.text(each, "name") == "PATH" for each in lenient.sequence(container, "env")) or any(
        own.search(word) for word in words
    )


def _equipped(nodes: Iterable[Object]) -> Iterator[Equipped]:
    for node in nodes:
        has = programs.read(lenient.mapping(node, "metadata", "annotations"))
        engine = node_engines.read(node)
        if has is not None:
            view = msgspec.convert(node, reading.NodeView)
            facts = node_selection.facts_of(node["metadata"]["name"], view)
            yield Equipped(facts, has, images=engine is not None and engine.works)


def _lacking(program: str, tasks: Sequence[Object], nodes: Sequence[Equipped]) -> list[str]:
    """Return the nodes without a program that are open to pods of a task, by name."""
    templates = [lenient.mapping(task, "template") for task in tasks]
    return sorted(
        node.facts.name
        for node in nodes
        if program not in node.has and any(_runs_on(node, template) for template in templates)
    )


def _runs_on(node: Equipped, template: dict[str, Any]) -> bool:
    """Whether pods of a template may run the programs of a node."""
    if node.images and not node_engines.wants_process(lenient.mapping(template, "metadata", "annotations")):
        return False
    return _is_open(node.facts, lenient.mapping(template, "spec"))


def _is_open(node: NodeFacts, spec: dict[str, Any]) -> bool:
    if named := lenient.text(spec, "nodeName"):
        return node.name == named
    rule = NodeRule(spec.get("nodeSelector"), spec.get("affinity"), spec.get("tolerations"))
    return rule.exclusion(node) is None


def _counted(nodes: Sequence[str]) -> str:
    """Return nodes as the subject of a sentence, with its verb."""
    if len(nodes) == 1:
        return f"node {nodes[0]} has"
    if len(nodes) > MOST_NAMED:
        return f"{len(nodes)} nodes, such as {nodes[0]}, have"
    return f"nodes {', '.join(nodes[:-1])} and {nodes[-1]} have"
