"""What the quotas of a namespace leave, while objects are admitted one after the other.

Pure: what is used is counted elsewhere (`cluster.api.quota_room`) and handed in, kind
by kind; from then on an account does the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster.rules import quotas as rules
from cluster.rules.quotas import Quota
from kube.amounts import Amounts
from kube.meta import Object
from kube.resources import Resource


class Account:
    """What is used of each quota of a namespace, with what was admitted since it was counted.

    Methods raise KeyError for a kind that was not counted.
    """

    def __init__(self, quotas: Sequence[Quota]) -> None:
        self.quotas = quotas
        self.names: set[tuple[str, str]] = set()
        self._used: dict[str, dict[str, Amounts]] = {}

    def has_counted(self, resource: Resource) -> bool:
        """Whether the account has counted what objects of a kind use."""
        return resource.id in self._used

    def begin(self, resource: Resource, used: dict[str, Amounts]) -> None:
        """Begin with what the stored objects of a kind use, by the names of the quotas."""
        self._used[resource.id] = used

    def refusal(self, resource: Resource, obj: Object, more: Amounts) -> str:
        """Say why there is no room for an object; "" when there is, which is then taken."""
        text = rules.refusal(self.quotas, self._used[resource.id], resource, obj, more)
        if not text:
            self._take(resource, obj, more)
        return text

    def fit(self, resource: Resource, obj: Object, number: int) -> tuple[int, str]:
        """Take room for up to `number` objects like this one; return for how many there is, and why not for more."""
        more, used = rules.usage(resource, obj), self._used[resource.id]
        concerned = [quota for quota in self.quotas if quota.counts_object(resource, obj)]
        text = rules.refusal(concerned, used, resource, obj, more)
        if text:
            return 0, text
        rooms = [rules.room(quota, used.get(quota.name, {}), more) for quota in concerned]
        fitting = min([number, *(room for room in rooms if room is not None)])
        taken = {name: amount * fitting for name, amount in more.items()}
        self._take(resource, obj, taken)
        return fitting, rules.refusal(concerned, used, resource, obj, more) if fitting < number else ""

    def lack(self, resource: Resource, objects: Iterable[tuple[Object, int]]) -> str:
        """Say why there is no room for so many objects together; nothing is taken."""
        used = self._used[resource.id]
        wanted: dict[str, Amounts] = {quota.name: {} for quota in self.quotas}
        for obj, number in objects:
            more = {name: amount * number for name, amount in rules.usage(resource, obj).items()}
            for quota in self.quotas:
                if quota.counts_object(resource, obj):
                    rules.grow(wanted[quota.name], more, quota)
        texts = (rules.exceeded(each, used.get(each.name, {}), wanted[each.name]) for each in self.quotas)
        return next(filter(None, texts), "")

    def copy(self) -> Account:
        """Return an account of its own that begins with what is used of this one."""
        other = Account(self.quotas)
        other._used = {
            kind: {name: dict(used) for name, used in by_quota.items()} for kind, by_quota in self._used.items()
        }
        return other

    def become(self, other: Account) -> None:
        """Take over what is used of a copy."""
        self._used = other._used

    def _take(self, resource: Resource, obj: Object, more: Amounts) -> None:
        used = self._used[resource.id]
        for quota in self.quotas:
            if quota.counts_object(resource, obj):
                rules.grow(used.setdefault(quota.name, {}), more, quota)
