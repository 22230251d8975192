"""Which pods of a group may be evicted, and which of them only together.

Rules: reference/volcano-scheduler §1.3 (preemptable), §2.6 (bundles), §3.1 (gang), §3.3 (conformance).

* Only pods of ours that run or have their node; those that are going already are no news.
* A pod that says `volcano.sh/preemptable: "false"`, as annotation or label, stays; if it says nothing its group may say so.
* Pods in kube-system and those of the classes system-cluster-critical and system-node-critical stay.
* What a gang has beyond its minimum, and beyond the minima of its roles, goes pod by pod: *loose* pods. The rest of it goes
  whole or not at all, and not at all when one of its pods has to stay. A gang that is below its minimum already has none left to keep.
* Of a group with sub-groups nobody is loose: none of them is left below its size.
* In a gang those go first that were to start last.
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
    """loose pods go one by one, in this order; core pods together, with those that are loose."""

    loose: tuple[Pod, ...] = ()
    core: tuple[Pod, ...] = ()


def evictable(
    group: Group, priority_of: PriorityOf, going: Collection[str] = (), protected: Collection[str] = ()
) -> Evictable:
    """Return what of a group may be evicted when pods with the keys of `going` are to go anyway, and those of `protected` stay."""
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
    """Return how many pods each role with a minimum has beyond that."""
    minima = group.roles
    if sum(minima.values()) > group.min_member:
        return {}
    gone = [group.holders[key].role for key in going if key in group.holders]
    return {role: group.ready_roles[role] - gone.count(role) - least for role, least in minima.items()}


def could_go(pod: Pod, group: Group) -> bool:
    """Tell whether a pod holds a node, or is about to, and may be evicted."""
    return pod.status in _STAYING and may_go(pod, group)


def may_go(pod: Pod, group: Group) -> bool:
    """Tell whether a pod may be evicted by what it is, and by what it and its group say."""
    if pod.namespace == KUBE_SYSTEM or pod.priority_class in CRITICAL:
        return False
    preemptable = group.preemptable if pod.preemptable is None else pod.preemptable
    return preemptable is not False
