"""Programs that the plugins of a job need, and that nodes eligible for its pods lack.

Where an engine runs images they bring their programs, unless the pod is to run as processes; elsewhere a
container runs its node's. Only nodes that list their programs (`node.rules.programs`) are considered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import msgspec

from cluster.rules.node import node_engines
from jobs.plugins import table
from kube import lenient
from kube.meta import Object
from node.rules import programs
from scheduler.records import node_selection, reading
from scheduler.records.node_selection import NodeFacts, NodeRule

MAX_NAMED = 3  # nodes in a sentence; of more, the number is given
# A program outside the node's bin directories, or a search path of the container's own.
_OWN = r"\bPATH=|(?<!\S)(?!/(?:usr/(?:local/)?)?s?bin/)\S*/{program}(?![\w-])"


class MachinesView(Protocol):
    """What these rules query of machines."""

    def machines(self) -> list[Object]: ...


class Equipped(NamedTuple):
    """A node that lists its programs; with `images`, these bring their own."""

    facts: NodeFacts
    has: frozenset[str]
    images: bool


def of_job(job: Object, view: MachinesView) -> Iterator[str]:
    """Yield, for each program that a plugin needs, the nodes without it, as `path: sentence`.

    Only nodes count that are ready and eligible for pods that need the program,
    by selector, required affinity and taints; free resources are ignored.
    """
    for plugin, context in table.of_job(job):
        for program, names in plugin.programs(context).items():
            users = [task for name in names if (task := context.task(name)) and _runs(task, program)]
            nodes = [each for each in _equipped(view.machines()) if program not in each.has] if users else []
            lacking = sorted(each.facts.name for each in nodes if any(_is_open(each, task) for task in users))
            if not lacking:
                continue
            if len(lacking) == 1:
                subject = f"node {lacking[0]} has"
            elif len(lacking) > MAX_NAMED:
                subject = f"{len(lacking)} nodes, such as {lacking[0]}, have"
            else:
                subject = f"nodes {', '.join(lacking[:-1])} and {lacking[-1]} have"
            yield (
                f"spec.plugins[{plugin.name}]: {subject} no {program}, and containers run the programs of "
                f"their node, whatever their image; install {programs.PACKAGES[program]} there."
            )


def _runs(task: Object, program: str) -> bool:
    """Whether a task has pods, and these use their node's copy of the program."""
    spec = lenient.mapping(task, "template", "spec")
    own = re.compile(_OWN.format(program=re.escape(program)))
    for container in (*lenient.sequence(spec, "initContainers"), *lenient.sequence(spec, "containers")):
        words = (*lenient.texts(container, "command"), *lenient.texts(container, "args"))
        variables = (lenient.text(each, "name") for each in lenient.sequence(container, "env"))
        if "PATH" in variables or any(own.search(word) for word in words):
            return False
    return bool(lenient.whole(task, "replicas"))


def _equipped(nodes: Iterable[Object]) -> Iterator[Equipped]:
    for node in nodes:
        has = programs.read(lenient.mapping(node, "metadata", "annotations"))
        engine = node_engines.read(node)
        if has is not None:
            facts = node_selection.facts_of(node["metadata"]["name"], msgspec.convert(node, reading.NodeView))
            yield Equipped(facts, has, images=engine is not None and engine.works)


def _is_open(node: Equipped, task: Object) -> bool:
    """Whether a task's pods may run on a node, with its programs."""
    template = lenient.mapping(task, "template")
    if node.images and not node_engines.wants_process(lenient.mapping(template, "metadata", "annotations")):
        return False
    spec = lenient.mapping(template, "spec")
    if named := lenient.text(spec, "nodeName"):
        return node.facts.name == named
    rule = NodeRule(spec.get("nodeSelector"), spec.get("affinity"), spec.get("tolerations"))
    return rule.exclusion(node.facts) is None
