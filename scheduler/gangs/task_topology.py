"""Which pods of a gang are to be on one node, by their tasks (Volcano's plugin task-topology, reference/volcano-scheduler §3.11).

Pods of tasks that are drawn to some task are put into buckets, those parted from themselves first. Each goes into the
bucket where most pods draw it, less those it is parted from; among equals into the one that asks for least, so that
buckets are alike; into a new one where more part it than draw it. Pods that have a node make the bucket of that node.
Then the pods of a bucket are placed as `scheduler.engine.kin` says. Tasks that are only parted are in no bucket: they
keep away from each other, nothing else.

All of this is a wish: a bucket that is too large for one node is on several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kube.volcano.task_topology import TaskTopology
from scheduler.engine.arrays import Vector
from scheduler.engine.kin import Following, Kin
from scheduler.engine.relations import Mark
from scheduler.records.records import Pod
from scheduler.records.shapes import PodShape

MIB = 1 << 20
BYTES = ("memory", "ephemeral-storage")


class InBucket(NamedTuple):
    """The mark of the pods of a bucket."""

    group: str
    bucket: int


class OfTask(NamedTuple):
    """The mark of the pods of a task."""

    group: str
    task: str


class Waited(NamedTuple):
    """The mark of those pods of a bucket, of one task and shape, that waited when the cycle began."""

    group: str
    bucket: int
    task: str
    shape: int


@dataclass(slots=True, eq=False)
class Bucket:
    """Pods that are to be on one node: by task, how much they ask for, those that wait by task and shape, those on nodes by node."""

    number: int
    tasks: Counter[str] = field(default_factory=Counter)
    load: int = 0
    waiting: Counter[tuple[str, PodShape]] = field(default_factory=Counter)
    placed: Counter[str] = field(default_factory=Counter)

    def add(self, pod: Pod) -> None:
        """Take a pod in."""
        self.tasks[pod.role] += 1
        self.load += _load(pod)
        if pod.node:
            self.placed[pod.node] += 1
        else:
            self.waiting[pod.role, pod.shape] += 1


@dataclass(frozen=True, slots=True, eq=False)
class Kinship:
    """What pods of one task have to do with others of their group. parted: where those pods are from which they are parted, by task."""

    group: str
    task: str
    bucket: Bucket | None
    parted: Mapping[str, Counter[str]]

    @property
    def kind(self) -> tuple[str, str, int]:
        """What pods of one class have in common."""
        return self.group, self.task, -1 if self.bucket is None else self.bucket.number

    def marks(self, shape: PodShape) -> tuple[Mark, ...]:
        """Return the marks of a pod of this task, bucket and shape."""
        if self.bucket is None:
            return (OfTask(self.group, self.task),)
        number = self.bucket.number
        return (
            OfTask(self.group, self.task),
            InBucket(self.group, number),
            Waited(self.group, number, self.task, shape.number),
        )

    def placed_by_mark(self) -> dict[Mark, Counter[str]]:
        """Return how many pods with each mark that it looks at are on nodes, by their names."""
        found: dict[Mark, Counter[str]] = {OfTask(self.group, task): on for task, on in self.parted.items() if on}
        if self.bucket is not None:
            found[InBucket(self.group, self.bucket.number)] = self.bucket.placed
        return found

    def kin(self, shape: PodShape, vector: Callable[[PodShape], Vector], weight: int) -> Kin:
        """Return the same as the engine has it; vector gives what pods of a shape ask for."""
        parted = tuple(OfTask(self.group, task) for task in self.parted)
        if self.bucket is None:
            return Kin(vector(shape), None, parted, (), weight)
        number = self.bucket.number
        following = tuple(
            Following(
                Waited(self.group, number, task, other.number),
                pods - ((task, other) == (self.task, shape)),
                vector(other),
            )
            for (task, other), pods in self.bucket.waiting.items()
        )
        return Kin(vector(shape), InBucket(self.group, number), parted, following, weight)


class Kinships:
    """The kinship of the pods of a group. waiting, and those on nodes, come in the order of tasks."""

    def __init__(self, group: str, topology: TaskTopology, waiting: Sequence[Pod], on_nodes: Sequence[Pod]) -> None:
        self._group, self._topology = group, topology
        self._tasks, self._drawn = topology.tasks(), topology.drawn()
        self._buckets: list[Bucket] = []
        self._parted = {task: topology.parted_from(task) for task in self._tasks}
        self._on: dict[str, Counter[str]] = {}
        for pod in on_nodes:
            self._on.setdefault(pod.role, Counter())[pod.node] += 1
        by_node: dict[str, Bucket] = {}
        for pod in on_nodes:
            if pod.role in self._drawn:
                if pod.node not in by_node:
                    by_node[pod.node] = self._new()
                by_node[pod.node].add(pod)
        first = {task: number for number, task in enumerate(topology.order)}
        drawn = [pod for pod in waiting if pod.role in self._drawn]
        drawn.sort(key=lambda pod: (first.get(pod.role, len(first)), self.rank(pod.role)))
        self._bucket_of = {pod.key: self._fill(pod) for pod in drawn}
        by_size = sorted(self._buckets, key=lambda each: (-each.waiting.total(), each.number))
        self._ranks = {each.number: rank for rank, each in enumerate(by_size)}
        self._by_task: dict[tuple[str, int], Kinship] = {}

    def of(self, pod: Pod) -> Kinship | None:
        """Return what a pod has to do with others, None where its task has nothing to do with any."""
        if pod.role not in self._tasks:
            return None
        bucket = self._bucket_of.get(pod.key)
        key = pod.role, -1 if bucket is None else bucket.number
        found = self._by_task.get(key)
        if found is None:
            parted = {task: self._on.get(task, Counter()) for task in self._parted[pod.role]}
            found = self._by_task[key] = Kinship(self._group, pod.role, bucket, parted)
        return found

    def rank(self, task: str) -> int:
        """Return which tasks of a bucket come first: those parted from themselves, then those drawn to others, then the rest."""
        if task in self._parted.get(task, ()):
            return 0
        return 1 if any(task in pair and len(pair) > 1 for pair in self._topology.near) else 2

    def bucket_rank(self, pod: Pod) -> int:
        """Return which bucket is served first: the one of which most wait; pods in none come last."""
        bucket = self._bucket_of.get(pod.key)
        return len(self._ranks) if bucket is None else self._ranks[bucket.number]

    def _fill(self, pod: Pod) -> Bucket:
        pulls = [(self._pull(pod.role, each), -each.load, -each.number) for each in self._buckets]
        pull, _, number = max(pulls, default=(-1, 0, 0))
        bucket = self._new() if pull < 0 else self._buckets[-number]
        bucket.add(pod)
        return bucket

    def _pull(self, task: str, bucket: Bucket) -> int:
        """Return how many pods of a bucket draw a task, less those that it is parted from."""
        near, apart = self._topology.near, self._topology.apart
        pairs = ((frozenset((task, other)), pods) for other, pods in bucket.tasks.items())
        return sum(pods * ((pair in near) - (pair in apart)) for pair, pods in pairs)

    def _new(self) -> Bucket:
        self._buckets.append(Bucket(len(self._buckets)))
        return self._buckets[-1]


def _load(pod: Pod) -> int:
    """Return how much a pod asks for, as Volcano counts it: thousandths of CPU and of devices, and MiB."""
    load = 0
    for name, amount in pod.shape.request.items():
        if name in BYTES:
            load += amount // MIB
        elif name != "pods":
            load += amount if name == "cpu" else amount * 1000
    return load
