"""A pod group's network topology, and its sub-groups as parts of a gang.

Rules: reference/volcano-scheduler §1.4 (sub-jobs), reference/volcano-queue-podgroup §3.1 (subGroupPolicy, networkTopology).

* A pod belongs to the first policy whose selector it matches and for all of whose matchLabelKeys it has values. Pods of one policy
  with equal values are a sub-group. Without a selector all pods match; without keys all matching pods are one sub-group.
* A sub-group needs subGroupSize pods to start. Its pods that have nodes or succeeded count; once they are that many it runs, and
  others join it one by one.
* minSubGroups of a policy run, or start with the minimum of the gang. When a gang is over (`gang_layout`), sub-groups hold no pod back.
* Pods on nodes, unless they are being deleted, determine where the others have to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kube import selector
from kube.selector import LabelSelector
from kube.usage import value_of
from scheduler.engine.gang import Arranged, Part, PartStep
from scheduler.engine.hyper_nodes import Topology
from scheduler.gangs.layout import Layout, SubGroup
from scheduler.records.reading import SubGroupView, TopologyView
from scheduler.records.records import READY, Group, Pod, TaskStatus

SOFT = "soft"


def sub_group_of(group: Group) -> Callable[[Pod], SubGroup | None] | None:
    """Return a function from a pod to its sub-group; None if the group has no policy."""
    policies = [(_selector(each), tuple(each.match_label_keys or ())) for each in group.policies]
    if not policies:
        return None

    def of(pod: Pod) -> SubGroup | None:
        labels: Mapping[str, str] = value_of(pod.labels) or {}
        for number, (chosen, keys) in enumerate(policies):
            values = tuple(labels.get(key) or "" for key in keys)
            if all(values) and chosen.matches(labels):
                return SubGroup(number, values)
        return None

    return of


def arranged(layout: Layout, group: Group, of: Callable[[Pod], SubGroup | None] | None) -> Layout:
    """Return the layout of a group with its network topology, and with its sub-groups as parts."""
    view = group.view.spec.network_topology if group.view else None
    gang, topology = layout.gang, _topology(view, group.holders.values())
    if of is None:
        return replace(layout, gang=replace(gang, arranged=Arranged(topology)))
    started = _by_sub_group([*group.holders.values(), *group.succeeded.values()], of)
    bins_of: dict[SubGroup, list[int]] = {}
    for number, some in enumerate(layout.pod_sets):
        if some.sub_group is not None:
            bins_of.setdefault(some.sub_group, []).append(number)
    numbers = {each: number for number, each in enumerate(bins_of)}
    bins = tuple(
        replace(some, part=numbers.get(pods.sub_group)) if pods.sub_group else some
        for some, pods in zip(gang.bins, layout.pod_sets, strict=True)
    )
    parts = tuple(_part(group.policies, each, tuple(places), started.get(each, ())) for each, places in bins_of.items())
    sizes = [sum(bins[some].count for some in part.bins) for part in parts]
    steps: list[PartStep] = []
    needed = absent = 0
    for number, policy in enumerate(group.policies):
        run = sum(_ready(pods) >= _size(policy) for each, pods in started.items() if each.policy == number)
        missing = (policy.min_sub_groups or 0) - run
        if missing <= 0:
            continue
        own = [position for position, part in enumerate(parts) if part.policy == number and part.need > 0]
        short = sorted(max(parts[place].need - sizes[place], 0) for place in own)
        short += [_size(policy)] * (missing - len(short))
        absent += sum(short[:missing])
        needs = sorted(parts[place].need for place in own) + [_size(policy)] * missing
        needed += sum(needs[:missing])
        steps.append(PartStep(missing, tuple(own)))
    return replace(
        layout,
        gang=replace(gang, bins=bins, arranged=Arranged(topology, parts, tuple(steps))),
        needed=max(layout.needed, needed),
        absent=max(layout.absent, absent),
    )


def _part(policies: Sequence[SubGroupView], each: SubGroup, bins: tuple[int, ...], there: Sequence[Pod]) -> Part:
    policy = policies[each.policy]
    name = "-".join((policy.name, *each.values))
    need = max(_size(policy) - _ready(there), 0)
    return Part(name, each.policy, bins, need, _topology(policy.network_topology, there))


def _by_sub_group(pods: Iterable[Pod], of: Callable[[Pod], SubGroup | None]) -> dict[SubGroup, list[Pod]]:
    found: dict[SubGroup, list[Pod]] = {}
    for pod in pods:
        if (each := of(pod)) is not None:
            found.setdefault(each, []).append(pod)
    return found


def _ready(pods: Sequence[Pod]) -> int:
    return sum(pod.status in READY for pod in pods)


def _size(policy: SubGroupView) -> int:
    return max(policy.sub_group_size or 1, 1)


def _selector(policy: SubGroupView) -> LabelSelector:
    """Return the selector of a policy; one that matches nothing if it cannot be read."""
    try:
        return selector.from_object(policy.label_selector or {})
    except selector.SelectorError:
        return selector.from_object(None)


def _topology(view: TopologyView | None, pods: Iterable[Pod]) -> Topology | None:
    if view is None:
        return None
    on = sorted(pod.node for pod in pods if pod.holds and pod.status is not TaskStatus.RELEASING)
    tier = view.highest_tier_allowed
    name = (view.highest_tier_name or "") if tier is None else ""
    return Topology((view.mode or "").lower() != SOFT, tier, name, tuple(on))
