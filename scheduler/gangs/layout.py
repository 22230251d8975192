"""A group as a gang: which of its pods are alike, and how many must start together. Built by `gang_layout`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scheduler.engine.cause import Constraint
from scheduler.engine.gang import Gang
from scheduler.gangs.task_topology import Kinship
from scheduler.records.records import Pod
from scheduler.records.shapes import PodShape


class SubGroup(NamedTuple):
    """A sub-group: the number of its policy and the values of its labels."""

    policy: int
    values: tuple[str, ...] = ()


@dataclass(slots=True)
class PodSet:
    """Pods of one priority, role, shape, sub-group and kinship that wait for nodes, in task order."""

    priority: int
    role: str
    shape: PodShape
    pods: list[Pod]
    sub_group: SubGroup | None = None
    kinship: Kinship | None = None


@dataclass(slots=True)
class Layout:
    """A group as a gang: gang.bins[i] is pod_sets[i]. needed pods must start together; absent of them do not exist.

    gated pods, as many, are in no set.
    """

    pod_sets: list[PodSet]
    gang: Gang
    needed: int
    absent: int
    gated: int

    def pods(self) -> list[Pod]:
        """Return the pods in task order."""
        return [pod for some in self.pod_sets for pod in some.pods]

    def constraint(self) -> Constraint | None:
        """Return the first constraint of the pods that the scheduler cannot judge, or None."""
        return next((some.shape.constraint for some in self.pod_sets if some.shape.constraint), None)
