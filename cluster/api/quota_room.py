"""What the ResourceQuotas of a namespace leave, asked of the store at the moment of a creation.

Whoever creates asks inside the transaction that holds the log's lock, so what was counted stays true until the write:
the door always, controllers for the groups that they plan as `within_quota`. A namespace without quotas costs one query
in the life of a `ClusterView`; the others one more for each kind that is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from cluster.api.cluster_view import ClusterView
from cluster.rules import quotas as rules
from cluster.rules.quota_accounts import Account
from cluster.rules.quotas import Quota
from cluster.store import Create, Group, store
from kube import amounts
from kube.amounts import Amounts
from kube.errors import Forbidden
from kube.kinds.pod import UNENDED
from kube.meta import Object
from kube.resources import CLAIMS, EVENTS, LEASES, PODS, RESOURCE_QUOTAS, SERVICES, Resource

UNCOUNTED = frozenset(kind.id for kind in (EVENTS, LEASES))
GROWING = frozenset(kind.id for kind in (CLAIMS, SERVICES))  # an update may make them use more
MAX_CACHED = 100_000
# What a pod uses is in the part of it that stays, so each is weighed once.
_usages: dict[str, Amounts] = {}


def account_in(namespace: str, view: ClusterView) -> Account | None:
    """Return the account of a namespace that a view sees; None where no quota bounds anything."""
    if namespace not in view.accounts and (quotas := view.listed(RESOURCE_QUOTAS, namespace)):
        view.accounts[namespace] = Account([rules.read(quota) for quota in quotas])
    return view.accounts.get(namespace)


def count_into(account: Account, resource: Resource, namespace: str) -> None:
    """Count what the stored objects of a kind use into the account of their namespace, unless that was done."""
    if not account.has_counted(resource):
        account.begin(resource, count(resource, namespace, account.quotas))


def admit(resource: Resource, obj: Object, old: Object | None, view: ClusterView) -> None:
    """Raise Forbidden when a quota has no room for a new object, or for what an old one becomes."""
    if not resource.namespaced or resource.id in UNCOUNTED:
        return
    if old is not None and resource.id not in GROWING:
        return
    namespace = obj["metadata"]["namespace"]
    account = account_in(namespace, view)
    if account is None:
        return
    more = rules.usage(resource, obj)
    name = obj["metadata"].get("name") or ""
    if old is not None:
        more = amounts.subtract(more, rules.usage(resource, old))
    elif name and ((resource.id, name) in account.names or view.get(resource, namespace, name) is not None):
        return  # the store will say that it exists
    count_into(account, resource, namespace)
    text = account.refusal(resource, obj, more)
    if text:
        raise Forbidden.of(resource.id, name or obj["metadata"].get("generateName") or "", text)
    account.names.add((resource.id, name))


def check(view: ClusterView, group: Group) -> None:
    """Raise Forbidden unless there is room for the pods of a group that asks for it.

    What there is room for is taken, for the groups that are asked about next with the same view.
    """
    if not group.within_quota:
        return
    pods = [write.object for write in group.writes if isinstance(write, Create) and write.resource == PODS]
    for namespace, own in groupby(pods, key=lambda pod: str(pod["metadata"]["namespace"])):
        account = account_in(namespace, view)
        if account is None:
            continue
        count_into(account, PODS, namespace)
        trial = account.copy()
        for _, similar in groupby(own, key=_likeness):
            alike = list(similar)
            fitting, text = trial.fit(PODS, alike[0], len(alike))
            if text:
                raise Forbidden.of(PODS.id, alike[fitting]["metadata"]["name"], text)
        account.become(trial)


def _likeness(pod: Object) -> bytes:
    """Return a key that is the same for pods that all quotas count alike, as those of a task are."""
    spec = pod["spec"]
    containers = [
        [(each.get("name"), each.get("resources")) for each in spec.get(field) or ()]
        for field in ("containers", "initContainers")
    ]
    return msgspec.json.encode({**spec, "containers": containers, "initContainers": None, "hostname": None})


def count(resource: Resource, namespace: str, quotas: Sequence[Quota]) -> dict[str, Amounts]:
    """Return what the stored objects of a kind use, by the names of the quotas that count the kind."""
    concerned = [quota for quota in quotas if quota.counts(resource)]
    if not concerned:
        return {}
    if resource.id == PODS.id:
        return _count_pods(namespace, concerned)
    if resource.id in rules.WEIGHED:
        objects = [stored.object for stored in store.find(resource, namespace=namespace)]
        return {quota.name: rules.total(quota, resource, objects) for quota in concerned}
    number = _number(resource, namespace)
    each = rules.usage(resource, {})
    return {quota.name: {name: number for name in each if name in quota.hard} for quota in concerned}


def _count_pods(namespace: str, quotas: Sequence[Quota]) -> dict[str, Amounts]:
    """Add up pods; those that ended are read only where a quota counts some of them, and numbered where it counts all."""
    used: dict[str, Amounts] = {}
    plain = [quota for quota in quotas if not quota.scopes]
    if plain:
        sums = _sum_of_live(namespace)
        if rules.counts_ended(plain):
            sums[f"count/{PODS.id}"] = _number(PODS, namespace)
        used = {quota.name: {name: sums.get(name, 0) for name in quota.hard} for quota in plain}
    by_scope = [quota for quota in quotas if quota.scopes]
    if by_scope:
        phase = None if rules.counts_ended(by_scope) else UNENDED
        pods = [stored.object for stored in store.find(PODS, namespace=namespace, phase=phase)]
        used |= {quota.name: rules.total(quota, PODS, pods) for quota in by_scope}
    return used


def _sum_of_live(namespace: str) -> Amounts:
    """Add up the pods of a namespace that have not ended; only those that are new here are read."""
    keys = store.names(PODS, namespace=namespace, phase=UNENDED)
    weights = {uid: _usages[uid] for uid in keys if uid in _usages}
    unread = store.by_keys(PODS, [key for uid, key in keys.items() if uid not in weights])
    new = {stored.uid: rules.usage(PODS, stored.object) for stored in unread.values()}
    if len(_usages) + len(new) > MAX_CACHED:
        _usages.clear()
    _usages.update(new)
    total: dict[str, int] = {}
    for weight in (weights | new).values():
        for name, amount in weight.items():
            total[name] = total.get(name, 0) + amount
    return total


def _number(resource: Resource, namespace: str) -> int:
    return sum(store.count(resource, namespace=namespace).values())
