"""What ResourceQuotas leave to groups that want to enter (reference/volcano-scheduler §3.11, resourcequota; the KEP's totalResources).

A group stays out if a quota of its namespace has no room for its minimum: its pods would be refused on creation. What counts is
the quota's own status, or what the pods of groups request where that is more, as the status lags behind the pods; plus what
groups of the namespace that entered and have no pods yet will use. Quotas with scopes are left out, as only pods show whether
they count. A group that states no minResources, or whose pods exist already, is not checked.

This does not stop pods from being created: `cluster.api.quota_room` decides there that a gang is created whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kube.amounts import Amounts
from kube.kinds.scheduling import PodGroupPhase
from scheduler.engine.cause import Cause, Reason
from scheduler.records.quotas import counted
from scheduler.records.records import Group, Quota

COMPUTE = ("cpu", "memory", "ephemeral-storage")


class QuotaRoom:
    """The quotas of all namespaces while groups enter."""

    def __init__(
        self, quotas: Mapping[str, Mapping[str, Quota]], waiting: Iterable[Group], groups: Mapping[str, Group]
    ) -> None:
        """quotas are by namespace and name, waiting the groups that wait, groups all of them by key."""
        self._quotas, self._groups = quotas, groups
        self._held: dict[str, Counter[str]] | None = None
        self._promised: dict[str, Counter[str]] = {}
        for group in waiting if quotas else ():
            if group.namespace in quotas and group.phase == PodGroupPhase.INQUEUE:
                self.admit(group)

    def admit(self, group: Group) -> None:
        """Note what a group that has entered will use."""
        if group.namespace in self._quotas:
            self._promised.setdefault(group.namespace, Counter()).update(_wanted(group))

    def refusal(self, group: Group) -> Cause | None:
        """Return the cause if a quota has no room for the minimum of a group: the first by name, and its first resource."""
        quotas = self._quotas.get(group.namespace)
        wanted = _wanted(group) if quotas else None
        if not quotas or not wanted:
            return None
        return self._exceeded(quotas, wanted, group.namespace, Counter()) or self._exceeded(
            quotas, wanted, group.namespace, self._held_in(group.namespace)
        )

    def _exceeded(
        self, quotas: Mapping[str, Quota], wanted: Amounts, namespace: str, held: Mapping[str, int]
    ) -> Cause | None:
        """Return the cause if a quota has too little left; `held` is used at least, whatever the status of quotas says."""
        promised = self._promised.get(namespace, Counter())
        for name, quota in sorted(quotas.items()):
            for resource, hard in sorted(quota.hard.items()):
                requested = wanted.get(resource, 0)
                left = hard - max(quota.used.get(resource, 0), held.get(resource, 0)) - promised[resource]
                if requested > 0 and requested > left:
                    return Cause(
                        Reason.QUOTA_EXCEEDED,
                        never=requested > hard,
                        entering=True,
                        quota=name,
                        resource=resource,
                        requested=requested,
                        free=max(left, 0),
                        whole=hard,
                    )
        return None

    def _held_in(self, namespace: str) -> Mapping[str, int]:
        """Return what pods of groups request in a namespace; counted for all namespaces with quotas on first use."""
        if self._held is None:
            self._held = {each: Counter() for each in self._quotas}
            for group in self._groups.values():
                if (held := self._held.get(group.namespace)) is None:
                    continue
                shapes = Counter(pod.shape for pod in group.pending.values()) + group.shapes
                for shape, count in shapes.items():
                    for name, amount in shape.request.items():
                        held[name] += amount * count
                        held[f"requests.{name}"] += amount * count
        return self._held[namespace]


def _wanted(group: Group) -> Amounts:
    """Return what the pods of a group's minimum will use, under all names a quota may have for it; {} where they exist."""
    spec = group.view.spec if group.view else None
    stated = (spec.min_resources or spec.total_resources) if spec else None
    if not stated or group.total:
        return {}
    wanted = {name: amount for name, amount in counted(stated).items() if amount > 0}
    for name in COMPUTE:
        if name in wanted:
            wanted.setdefault(f"requests.{name}", wanted[name])
    wanted.setdefault("pods", group.min_member)
    wanted.setdefault("count/pods", wanted["pods"])
    return wanted
