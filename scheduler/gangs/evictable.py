"""Which pods of a group may be evicted, and which of them only together.

Rules: reference/volcano-scheduler §1.3 (preemptable), §2.6 (bundles), §3.1 (gang), §3.3 (conformance).

* Only pods of this scheduler that run or have a node may be evicted, and none that is being deleted already.
* A pod with `volcano.sh/preemptable: "false"`, as annotation or label, stays; without it, its group's value holds.
* Pods in kube-system and those of the classes system-cluster-critical and system-node-critical stay.
* Pods that a gang has beyond its minimum, and beyond the minima of its roles, are *loose*: they go one by one. The rest goes
  together or not at all, and not at all when one of its pods has to stay. A gang below its minimum has no minimum left to keep.
* A group with sub-groups has no loose pods, so that no sub-group is left below its size.
* Within a gang, pods that would start last go first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from scheduler.gangs.gang_layout import PriorityOf, task_order
from scheduler.records.records import Group, Pod, TaskStatus

KUBE_SYSTEM = "kube-system"
CRITICAL = ("system-cluster-critical", "system-node-critical")
_STAYING = (TaskStatus.BOUND, TaskStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class Evictable:
    """loose pods are evicted one by one, in this order; core pods only together, and with all loose ones."""

    loose: tuple[Pod, ...] = ()
    core: tuple[Pod, ...] = ()


def evictable(
    group: Group, priority_of: PriorityOf, going: Collection[str] = (), protected: Collection[str] = ()
) -> Evictable:
    """Return which pods of a group may be evicted, given the keys of pods that go anyway (going) or must stay (protected)."""
    holders = [pod for pod in group.holders.values() if pod.key not in going]
    found = [pod for pod in holders if could_go(pod, group) and pod.key not in protected]
    if not group.exists or not found:
        return Evictable()
    found.sort(key=lambda pod: task_order(pod, priority_of), reverse=True)
    ready = group.ready() - (len(group.holders) - len(holders))
    spare = ready - group.min_member
    if spare < 0:
        return Evictable(tuple(found))
    if group.policies:
        spare = 0
    roles = _spare_by_role(group, going)
    loose: list[Pod] = []
    core: list[Pod] = []
    for pod in found:
        if len(loose) < spare and roles.get(pod.role, 1) > 0:
            loose.append(pod)
            if pod.role in roles:
                roles[pod.role] -= 1
        else:
            core.append(pod)
    staying = sum(pod.status is not TaskStatus.RELEASING for pod in holders) - len(found)
    return Evictable(tuple(loose), () if staying else tuple(core))


def _spare_by_role(group: Group, going: Collection[str]) -> dict[str, int]:
    """Return how many pods each role with a minimum has beyond it."""
    minima = group.roles
    if sum(minima.values()) > group.min_member:
        return {}
    gone = [group.holders[key].role for key in going if key in group.holders]
    return {role: group.ready_roles[role] - gone.count(role) - least for role, least in minima.items()}


def could_go(pod: Pod, group: Group) -> bool:
    """Tell whether a pod is bound or runs, and may be evicted."""
    return pod.status in _STAYING and may_go(pod, group)


def may_go(pod: Pod, group: Group) -> bool:
    """Tell whether a pod may be evicted, by its namespace, its class, and its own or its group's setting."""
    if pod.namespace == KUBE_SYSTEM or pod.priority_class in CRITICAL:
        return False
    preemptable = group.preemptable if pod.preemptable is None else pod.preemptable
    return preemptable is not False
