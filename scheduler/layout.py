"""Which pods of a group start first, and which of them must start together.

Rules: design §4 ("which pods make the minimum"), minTaskMember of
reference/volcano-queue-podgroup §3.1.

* Task order: priority, highest first; equal pods role by role in the order of
  their first pods; inside a role by the number at the end of the name, then
  age, then name.
* The minimum is made in that order: pods of higher priority are part of it or
  nobody starts. Among pods of the priority at which the minimum ends, any that
  fit will do.
* minTaskMember holds as well, unless its sum is larger than minMember.
* Pods that have a node already, run or succeeded count; failed ones do not. A
  pod that a scheduling gate holds back does not exist yet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING

from scheduler.engine.gang import Bin, Gang, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scheduler.nodes import Shape
    from scheduler.records import Group, Pod
    from scheduler.snapshot import Snapshot


@dataclass(slots=True)
class Heap:
    """Pods of one priority, role and shape that wait for nodes."""

    priority: int
    role: str
    shape: Shape
    pods: list[Pod]


@dataclass(slots=True)
class Layout:
    """A group as a gang: gang.bins[i] is heaps[i]. needed pods must start together; absent of them do not exist."""

    heaps: list[Heap]
    gang: Gang
    needed: int
    absent: int
    gated: int

    def pods(self) -> list[Pod]:
        """Return the pods in task order."""
        return [pod for heap in self.heaps for pod in heap.pods]


def first_pods(group: Group, count: int) -> list[Pod]:
    """Return the first waiting pods of a group, whatever their priority."""
    return nsmallest(count, group.pending.values(), key=_rank)


def layout_of(snapshot: Snapshot, group: Group) -> Layout:
    """Return the layout of a group; it is kept until one of its pods changes."""
    if group.layout is None:
        group.layout = _lay_out(snapshot, group)
    return group.layout


def _lay_out(snapshot: Snapshot, group: Group) -> Layout:
    missing = max(group.min_member - group.ready(), 0)
    if len(group.pending) < missing:  # while pods of a large gang are being created, each round
        return Layout([], Gang(()), missing, missing - len(group.pending), 0)
    waiting = [pod for pod in group.pending.values() if not pod.gated]
    heaps = _heaps(snapshot, waiting)
    roles = _role_minima(group)
    if len(heaps) == 1 and not roles:
        return _of_equals(snapshot, group, heaps[0], missing)
    needed = max(missing, sum(roles.values()))
    present = Counter(pod.role for pod in waiting)
    absent = max(missing - len(waiting), sum(max(n - present[role], 0) for role, n in roles.items()))
    steps = () if absent > 0 else tuple(_steps(heaps, roles, missing))
    bins = tuple(Bin(heap.shape.number, len(heap.pods)) for heap in heaps)
    gang = Gang(bins, steps, level=snapshot.priority_of(group.priority_class))
    return Layout(heaps, gang, needed, max(absent, 0), len(group.pending) - len(waiting))


def _of_equals(snapshot: Snapshot, group: Group, heap: Heap, missing: int) -> Layout:
    """Return the layout when all pods are equal: one bin, at most one step."""
    absent = max(missing - len(heap.pods), 0)
    steps = (Step(missing, (0,)),) if missing and not absent else ()
    level = snapshot.priority_of(group.priority_class)
    gang = Gang((Bin(heap.shape.number, len(heap.pods)),), steps, level=level)
    return Layout([heap], gang, missing, absent, len(group.pending) - len(heap.pods))


def _heaps(snapshot: Snapshot, pods: list[Pod]) -> list[Heap]:
    if len(pods) == 1:
        pod = pods[0]
        return [Heap(_priority(snapshot, pod), pod.role, pod.shape, pods)]
    ranks = {id(pod): _rank(pod) for pod in pods}
    found: dict[tuple[int, str, int], Heap] = {}
    for pod in sorted(pods, key=lambda pod: ranks[id(pod)]):
        priority = _priority(snapshot, pod)
        heap = found.setdefault(
            (priority, pod.role, pod.shape.number), Heap(priority, pod.role, pod.shape, [])
        )
        heap.pods.append(pod)
    return sorted(found.values(), key=lambda heap: (-heap.priority, ranks[id(heap.pods[0])]))


def _priority(snapshot: Snapshot, pod: Pod) -> int:
    return snapshot.priority_of(pod.priority_class) if pod.priority is None else pod.priority


def _rank(pod: Pod) -> tuple[int, int, str]:
    tail = pod.name.rpartition("-")[2]
    number = int(tail) if tail.isascii() and tail.isdigit() and len(tail) < 10 else -1
    return number, pod.created, pod.name


def _role_minima(group: Group) -> dict[str, int]:
    """Return how many more pods each role must get; empty when roles set no minimum."""
    minima = (group.view.spec.min_task_member if group.view else None) or {}
    if sum(minima.values()) > group.min_member:
        return {}
    missing = {role: least - group.ready_roles[role] for role, least in minima.items()}
    return {role: number for role, number in missing.items() if number > 0}


def _steps(heaps: list[Heap], roles: Mapping[str, int], missing: int) -> Iterable[Step]:
    """Yield the minima of roles, then what is left of the minimum by priority."""
    taken: Counter[int] = Counter()
    left = dict(roles)
    for heap in heaps:
        first = min(left.get(heap.role, 0), len(heap.pods))
        taken[heap.priority] += first
        if first:
            left[heap.role] -= first
    for role, number in roles.items():
        yield Step(number, tuple(i for i, heap in enumerate(heaps) if heap.role == role))
    more = missing - sum(roles.values())
    for priority in dict.fromkeys(heap.priority for heap in heaps):
        if more <= 0:
            return
        level = tuple(i for i, heap in enumerate(heaps) if heap.priority == priority)
        here = min(sum(len(heaps[i].pods) for i in level) - taken[priority], more)
        if here:
            more -= here
            yield Step(taken[priority] + here, level)
