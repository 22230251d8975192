"""The jobs of a flow as a graph: where each is drawn, and the lines between them.

A job is one column to the right of the rightmost job that it waits for. If several steps name one job, the last decides
its column, as in admission. Sizes are in SVG user units.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import NamedTuple

from jobs.flows import steps
from kube import lenient
from kube.kinds.flow import JobFlow
from kube.meta import Object

WIDTH, HEIGHT = 180, 52  # of a job
GAP_X, GAP_Y, MARGIN = 56, 20, 8
WAITING = "Waiting"  # the word for a job that is not made yet


class Node(NamedTuple):
    """A job: its template (`step`), name and phase, the templates it waits for, its times, and its position."""

    step: str
    job: str
    phase: str
    targets: list[str]
    started: str
    ended: str
    x: int
    y: int


class Graph(NamedTuple):
    """What is drawn: the size, the jobs, and an SVG path for each pair of jobs where one waits for the other."""

    width: int
    height: int
    nodes: list[Node]
    lines: list[str]


def of(flow: JobFlow, status: Object) -> Graph:
    """Return the graph of a flow, with each job's phase and times from the flow's status."""
    statuses = {lenient.text(each, "name"): each for each in lenient.sequence(status, "jobStatusList")}
    waits_for = {step.name: step.depends_on.targets for step in flow.spec.flows}
    columns = dict.fromkeys(waits_for, 0)
    try:
        for name in [*TopologicalSorter(waits_for).static_order()]:
            columns[name] = 1 + max((columns[target] for target in waits_for.get(name, ())), default=-1)
    except CycleError:  # admission refuses such a flow
        pass
    rows: dict[int, int] = {}
    nodes = []
    for template in steps.templates(flow):
        named = (step.depends_on.targets for step in flow.spec.flows if step.name == template)
        column, name = columns[template], steps.job_name(flow.metadata.name, template)
        row = rows[column] = rows.get(column, -1) + 1
        entry = statuses.get(name)
        nodes.append(
            Node(
                template,
                name,
                lenient.text(entry, "state") or WAITING,
                list(dict.fromkeys(chain.from_iterable(named))),
                lenient.text(entry, "startTimestamp"),
                lenient.text(entry, "endTimestamp"),
                MARGIN + column * (WIDTH + GAP_X),
                MARGIN + row * (HEIGHT + GAP_Y),
            )
        )
    width = 2 * MARGIN + (max(rows, default=0) + 1) * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + (max(rows.values(), default=0) + 1) * (HEIGHT + GAP_Y) - GAP_Y
    by_name = {node.step: node for node in nodes}
    lines = []
    for end in nodes:
        for start in (by_name[target] for target in end.targets if target in by_name):
            # From the right edge of one job to the left edge of the other.
            x, y, to_x, to_y = start.x + WIDTH, start.y + HEIGHT // 2, end.x - 6, end.y + HEIGHT // 2
            bend = GAP_X // 2
            lines.append(f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}")
    return Graph(width, height, nodes, lines)
