"""What the ResourceQuotas of namespaces leave to groups that want to enter (reference/volcano-scheduler §3.11, resourcequota; the KEP's totalResources).

A group whose minimum a quota of its namespace has no room for stays out: its pods would be refused when they are made. What counts
is the quota's own status, and beyond that what groups of the namespace that entered and have no pods yet will use. Quotas with
scopes are left out, as only pods show whether they count. A group that states no minResources, or whose pods exist already, is not asked.

This keeps nobody from making pods: that a gang is made whole or not at all is decided where pods are made (`cluster.api.quota_room`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kube.kinds.scheduling import PodGroupPhase
from scheduler.engine.cause import Cause, Reason
from scheduler.snapshot.quotas import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kube.amounts import Amounts
    from scheduler.snapshot.records import Group, Quota

COMPUTE = ("cpu", "memory", "ephemeral-storage")


class QuotaRoom:
    """The quotas of all namespaces while groups enter."""

    def __init__(self, quotas: Mapping[str, Mapping[str, Quota]], waiting: Iterable[Group]) -> None:
        """quotas are by namespace and name, waiting the groups that wait."""
        self._quotas = quotas
        self._promised: dict[str, Counter[str]] = {}
        for group in waiting if quotas else ():
            if group.namespace in quotas and group.phase == PodGroupPhase.INQUEUE:
                self.admit(group)

    def admit(self, group: Group) -> None:
        """Note what a group will use that has entered."""
        if group.namespace in self._quotas:
            self._promised.setdefault(group.namespace, Counter()).update(_wanted(group))

    def refusal(self, group: Group) -> Cause | None:
        """Return the cause when a quota has no room for the minimum of a group: the first one by name, and its first resource."""
        quotas = self._quotas.get(group.namespace)
        wanted = _wanted(group) if quotas else None
        if not quotas or not wanted:
            return None
        promised = self._promised.get(group.namespace, Counter())
        for name, quota in sorted(quotas.items()):
            for resource, hard in sorted(quota.hard.items()):
                asked = wanted.get(resource, 0)
                left = hard - quota.used.get(resource, 0) - promised[resource]
                if asked > 0 and asked > left:
                    return Cause(
                        Reason.QUOTA_EXCEEDED,
                        never=asked > hard,
                        entering=True,
                        quota=name,
                        resource=resource,
                        requested=asked,
                        free=max(left, 0),
                        whole=hard,
                    )
        return None


def _wanted(group: Group) -> Amounts:
    """Return what the pods of a group's minimum will use, under all names that a quota may have for it; {} where they exist."""
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
