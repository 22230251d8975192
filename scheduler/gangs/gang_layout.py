"""Which pods of a group start first, and which of them must start together.

Rules: design §4 ("which pods make the minimum"), minTaskMember of
reference/volcano-queue-podgroup §3.1.

* Task order: highest priority first; pods of equal priority role by role in the
  order of their first pods; inside a role by the number at the end of the name,
  then age, then name.
* The minimum is filled in that order: pods of higher priority are part of it, or
  no pod starts. Among pods of the priority at which the minimum ends, any that
  fit will do.
* Where the plugin task-topology is listed and the group says so, some tasks come first among pods of equal priority, and pods
  that should share a node are kept together (`scheduler.gangs.task_topology`).
* minTaskMember holds as well, unless its sum is larger than minMember.
* Pods that have a node, run or succeeded count; failed ones do not. A pod that
  a scheduling gate holds back does not exist yet.
* `scheduler.gangs.sub_groups` adds the group's network topology and its sub-groups.
* When some pods failed and none runs any more, failed ones count too: they
  started with the others, and nobody makes them again, or they would be gone.
  Otherwise the last pod of a gang, created or given room after the others had
  failed, would wait for them forever, and its job too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.gangs import sub_groups
from scheduler.gangs.layout import Layout, PodSet, SubGroup
from scheduler.gangs.task_topology import Kinship, Kinships
from scheduler.policy.policy import TaskTopologies
from scheduler.records.records import Group, Pod, TaskStatus

PriorityOf = Callable[[str], int]
"""The value of a priority class."""
SubGroupOf = Callable[[Pod], SubGroup | None]
"""The sub-group of a pod."""


@dataclass(frozen=True, slots=True)
class _Ordering:
    """What decides which pods of one priority come first and which are alike. first: the position of each task that comes first."""

    of: SubGroupOf | None = None
    first: Mapping[str, int] = field(default_factory=dict)
    kinships: Kinships | None = None

    def key(self, pod: Pod) -> tuple[int, int, int]:
        """Return what is compared before the numbers of pods."""
        first, rank = self.rank(pod.role)
        return first, self.kinships.bucket_rank(pod) if self.kinships else 0, rank

    def rank(self, role: str) -> tuple[int, int]:
        """Return the sort key of a role: its position as the group states it, then its rank in filling buckets."""
        return self.first.get(role, len(self.first)), self.kinships.rank(role) if self.kinships else 0


def first_pods(group: Group, count: int) -> list[Pod]:
    """Return the first waiting pods of a group, whatever their priority.

    Gated pods are left out: they keep the condition that the API server gave them.
    """
    return nsmallest(count, [pod for pod in group.pending.values() if not pod.gated], key=_rank)


def started(group: Group) -> int:
    """Return how many pods count for the minimum: the ready ones and, in a gang that is over, the failed ones."""
    return group.scheduled() if _is_over(group) else group.ready()


def _is_over(group: Group) -> bool:
    """Tell whether pods of a gang have failed, none is on a node any more, and the rest are fewer than the minimum."""
    is_short = group.ready() + len(group.pending) < group.min_member
    return is_short and bool(group.counts[TaskStatus.FAILED]) and not group.holders


def lay_out(group: Group, priority_of: PriorityOf, tasks: TaskTopologies | None = None) -> Layout:
    """Return the layout of a group. tasks: the policy for task topologies, None where there is none."""
    if not group.is_arranged:
        return _lay_out(group, priority_of, _ordering(group, None, tasks))
    of = None if _is_over(group) else sub_groups.sub_group_of(group)
    return sub_groups.arranged(_lay_out(group, priority_of, _ordering(group, of, tasks)), group, of)


def _ordering(group: Group, of: SubGroupOf | None, tasks: TaskTopologies | None) -> _Ordering | None:
    """Return how pods are ordered; None for most groups, where priority, role and number decide alone."""
    topology = group.task_topology if tasks is not None else None
    if tasks is None or topology is None:
        return None if of is None else _Ordering(of)
    first = {task: number for number, task in enumerate(topology.order)} if tasks.orders else {}
    if not tasks.weight or not topology.tasks():
        return _Ordering(of, first)
    waiting = sorted((pod for pod in group.pending.values() if not pod.gated), key=_rank)
    on_nodes = sorted(group.holders.values(), key=_rank)
    return _Ordering(of, first, Kinships(group.key, topology, waiting, on_nodes))


def _lay_out(group: Group, priority_of: PriorityOf, ordering: _Ordering | None) -> Layout:
    """Return the layout of a group without network topology and parts."""
    missing = max(group.min_member - started(group), 0)
    if len(group.pending) < missing:  # a shortcut: true in each cycle while the pods of a large gang are being created
        return Layout([], Gang(()), missing, missing - len(group.pending), 0)
    waiting = [pod for pod in group.pending.values() if not pod.gated]
    sets = _pod_sets(waiting, priority_of, ordering)
    roles = _role_minima(group)
    if ordering is not None:
        roles = {role: roles[role] for role in sorted(roles, key=ordering.rank)}
    level, gated = priority_of(group.priority_class), len(group.pending) - len(waiting)
    bins = tuple(Bin(some.shape.number, len(some.pods)) for some in sets)
    if len(sets) == 1 and not roles:  # all pods are equal: one bin, at most one step
        absent = max(missing - len(waiting), 0)
        equal_steps = (GangStep(missing, (0,)),) if missing and not absent else ()
        return Layout(sets, Gang(bins, equal_steps, level=level), missing, absent, gated)
    needed = max(missing, sum(roles.values()))
    present = Counter(pod.role for pod in waiting)
    absent = max(missing - len(waiting), sum(max(n - present[role], 0) for role, n in roles.items()))
    steps = () if absent > 0 else tuple(_steps(sets, roles, missing))
    return Layout(sets, Gang(bins, steps, level=level), needed, max(absent, 0), gated)


def _pod_sets(pods: list[Pod], priority_of: PriorityOf, ordering: _Ordering | None) -> list[PodSet]:
    if len(pods) == 1 and ordering is None:
        pod = pods[0]
        return [PodSet(_priority(pod, priority_of), pod.role, pod.shape, pods)]
    ranks = {id(pod): _rank(pod) for pod in pods}
    found: dict[tuple[int, str, int, SubGroup | None, Kinship | None], PodSet] = {}
    of = ordering.of if ordering is not None else None
    kinships = ordering.kinships if ordering is not None else None
    for pod in sorted(pods, key=lambda pod: ranks[id(pod)]):
        priority = _priority(pod, priority_of)
        sub_group = None if of is None else of(pod)
        kinship = None if kinships is None else kinships.of(pod)
        some = found.setdefault(
            (priority, pod.role, pod.shape.number, sub_group, kinship),
            PodSet(priority, pod.role, pod.shape, [], sub_group, kinship),
        )
        some.pods.append(pod)
    if ordering is None:
        return sorted(found.values(), key=lambda some: (-some.priority, ranks[id(some.pods[0])]))
    before = ordering.key
    return sorted(found.values(), key=lambda some: (-some.priority, before(some.pods[0]), ranks[id(some.pods[0])]))


def task_order(pod: Pod, priority_of: PriorityOf) -> tuple[int, tuple[int, int, str]]:
    """Return the sort key of a pod in its gang: the first pods start first and are evicted last."""
    return -_priority(pod, priority_of), _rank(pod)


def _priority(pod: Pod, priority_of: PriorityOf) -> int:
    return priority_of(pod.priority_class) if pod.priority is None else pod.priority


def _rank(pod: Pod) -> tuple[int, int, str]:
    tail = pod.name.rpartition("-")[2]
    number = int(tail) if tail.isascii() and tail.isdigit() and len(tail) < 10 else -1
    return number, pod.created, pod.name


def _role_minima(group: Group) -> dict[str, int]:
    """Return how many more pods each role must get; empty when roles set no minimum that counts."""
    minima = group.roles
    if _is_over(group) or sum(minima.values()) > group.min_member:
        return {}
    missing = {role: least - group.ready_roles[role] for role, least in minima.items()}
    return {role: number for role, number in missing.items() if number > 0}


def _steps(sets: list[PodSet], roles: Mapping[str, int], missing: int) -> Iterable[GangStep]:
    """Yield a step per role minimum, then the rest of the minimum by priority."""
    taken: Counter[int] = Counter()
    left = dict(roles)
    for some in sets:
        first = min(left.get(some.role, 0), len(some.pods))
        taken[some.priority] += first
        if first:
            left[some.role] -= first
    for role, number in roles.items():
        yield GangStep(number, tuple(i for i, some in enumerate(sets) if some.role == role))
    more = missing - sum(roles.values())
    for priority in dict.fromkeys(some.priority for some in sets):
        if more <= 0:
            return
        level = tuple(i for i, some in enumerate(sets) if some.priority == priority)
        here = min(sum(len(sets[i].pods) for i in level) - taken[priority], more)
        if here:
            more -= here
            yield GangStep(taken[priority] + here, level)
