"""Why a gang waits, found by trying it again.

A cause tells "can never start as the cluster is" (`never`) from "waits for
room". The gang is tried on what is left after all others were placed, so the
cause describes the nodes as people see them; the attempt is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.engine.cause import Cause, ExclusionKind, Reason
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.place import Placer
from scheduler.engine.pod_class import PodClass
from scheduler.engine.spared import left
from scheduler.reasons import obstacle
from scheduler.reasons.limits import beyond_deserved, limit_cause, most_of, never_cause

_OF_LIMITS = ("never", "queue", "resource", "requested", "free", "whole", "keepers")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of nodes and resources by number."""

    nodes: Sequence[str]
    resources: Sequence[str]


def explain(placer: Placer, gang: Gang, names: Names, *, needed: int) -> Cause:
    """Return why the minimum of a gang (`needed` pods) cannot be placed on what is left."""
    attempt = placer.place_part(gang)
    try:
        if attempt.short is None:  # room came back through a gang that was undone after this one
            return Cause(Reason.NOT_ENOUGH_RESOURCES, fit=needed, needed=needed, nodes=len(names.nodes))
        step, number = attempt.short
        fit = attempt.placed()
        bins, need = gang.steps[step].bins, gang.steps[step].need
        empty = {b: on_empty_nodes(placer.cluster, gang.bins[b].pod_class) for b in bins}
        at_best = sum(min(gang.bins[b].count, rooms) for b, rooms in empty.items())
        if at_best >= need and not empty[number]:  # other bins of the step suffice, so it waits for those
            left = (b for b in bins if empty[b] and attempt.taken[b] < gang.bins[b].count)
            number = next(left, number)
        return _cause(
            placer,
            gang,
            number,
            names,
            fit=fit,
            needed=needed,
            missing=need - sum(attempt.taken[b] for b in bins),
            at_best=None if at_best >= need else (at_best, need),
        )
    finally:
        placer.undo(gang, attempt)


def explain_rest(placer: Placer, gang: Gang, attempt: Attempt, names: Names, *, started: int) -> Cause | None:
    """Return why pods beyond the minimum have no node, or None when all have one.

    started is the number of pods of the gang that have a node without this attempt.
    """
    for number, some in enumerate(gang.bins):
        if attempt.taken[number] < some.count:
            total = sum(b.count for b in gang.bins)
            fit = started + attempt.placed()
            return _cause(placer, gang, number, names, fit=fit, needed=started + total, missing=1, started=True)
    return None


def _cause(
    placer: Placer,
    gang: Gang,
    number: int,
    names: Names,
    *,
    fit: int,
    needed: int,
    missing: int,
    at_best: tuple[int, int] | None = None,
    started: bool = False,
) -> Cause:
    """Return the first cause that stops a bin's pods, permanent obstacles before temporary ones."""
    cluster = placer.cluster
    pod_class = cluster.classes[gang.bins[number].pod_class]
    facts = _Facts(cluster, pod_class, names, fit=fit, needed=needed, started=started)
    if (closed := facts.closed()) is not None:
        return closed
    if (too_large := facts.too_large()) is not None:
        return too_large
    if at_best is not None:
        return facts.cause(Reason.NEVER_FITS, never=True, fit=at_best[0], needed=at_best[1])
    limit = _limit(gang, pod_class, missing, placer.room(gang.bins[number].pod_class))
    if limit is None or gang.account is None:
        return facts.other_pods() or facts.no_room(gang.account, missing)
    account, column, left = limit
    least = 0 if started else _least(cluster, gang, column)
    return facts.queue_limit(gang.account, account, column, left, missing, least)


def _limit(gang: Gang, pod_class: PodClass, missing: int, room: int) -> tuple[Account, int, int] | None:
    """Return the queue whose ceiling stops the pods, the column, and how much of it is left; None if no queue stops them."""
    if gang.account is None or gang.account.allowed(pod_class.requests, missing) >= min(missing, room + 1):
        return None
    short = [
        (left // amount, depth, account, column, left)
        for column, amount in pod_class.requests
        for depth, (account, left) in enumerate(gang.account.rooms(column))
    ]
    _, _, account, column, left = min(short, key=lambda each: each[:2])
    return account, column, left


def _least(cluster: Cluster, gang: Gang, column: int) -> int:
    """Return how much of a column the minimum of a gang requests, with the smallest pods where any will do."""
    amounts = [int(cluster.classes[some.pod_class].request[column]) for some in gang.bins]
    taken = [0] * len(gang.bins)
    for step in gang.steps:
        missing = step.need - sum(taken[some] for some in step.bins)
        for some in sorted(step.bins, key=amounts.__getitem__):
            more = max(min(missing, gang.bins[some].count - taken[some]), 0)
            taken[some] += more
            missing -= more
    return sum(amount * pods for amount, pods in zip(amounts, taken, strict=True))


def on_empty_nodes(cluster: Cluster, number: int) -> int:
    """Return how many pods of a class would fit if nothing else ran."""
    if (count := cluster.when_empty.get(number)) is None:
        count = cluster.when_empty[number] = int(rooms_when_empty(cluster, number).sum())
    return count


def rooms_when_empty(cluster: Cluster, number: int) -> Vector:
    """Return how many pods of a class would fit on each node if nothing else ran."""
    return cluster.classes[number].rooms_on(cluster.allocatable)


def fits_on_empty_nodes(cluster: Cluster, gang: Gang) -> bool:
    """Tell whether each step of a minimum, taken by itself, would fit if nothing else ran."""
    return all(
        sum(min(gang.bins[some].count, on_empty_nodes(cluster, gang.bins[some].pod_class)) for some in step.bins)
        >= step.need
        for step in gang.steps
    )


class _Facts:
    """The nodes as one class of pods sees them."""

    def __init__(
        self, cluster: Cluster, pod_class: PodClass, names: Names, *, fit: int, needed: int, started: bool
    ) -> None:
        self._cluster, self._class, self._names = cluster, pod_class, names
        self._fit, self._needed, self._started = fit, needed, started
        self._open = np.flatnonzero(pod_class.verdicts == 0)
        self._requested: list[int] = np.flatnonzero(pod_class.request).tolist()
        self._free = left(cluster.free, pod_class.spared)
        codes, counts = np.unique(pod_class.verdicts[pod_class.verdicts > 0], return_counts=True)
        excluded = [(n, cluster.exclusions[code]) for code, n in zip(codes.tolist(), counts.tolist(), strict=True)]
        self._excluded = tuple(sorted(excluded, key=lambda pair: (-pair[0], pair[1].text)))

    def cause(self, reason: Reason, **more: object) -> Cause:
        """Return a cause with the fields that all causes have, and some more."""
        # `pods` is listed in the request only when a pod requests nothing else.
        amounts = [(self._names.resources[c], int(self._class.request[c])) for c in self._requested]
        common: dict[str, object] = {
            "fit": self._fit,
            "needed": self._needed,
            "started": self._started,
            "request": tuple([pair for pair in amounts if pair[0] != "pods"] or amounts) + self._class.foreign,
            "nodes": len(self._class.verdicts),
            "excluded": self._excluded,
            "tally": self._tally(),
        }
        return Cause(reason, **{**common, **more})  # type: ignore[arg-type]

    def closed(self) -> Cause | None:
        """Return the cause when the pods may use no node at all, else None."""
        if not len(self._class.verdicts):
            return self.cause(Reason.NO_NODES)
        if len(self._open):
            return None
        kinds = {exclusion.kind for _, exclusion in self._excluded}
        if kinds == {ExclusionKind.SELECTOR}:
            lacking = self._class.lacking
            return self.cause(Reason.NO_MATCHING_NODE, lacking=lacking() if lacking else None)
        if ExclusionKind.NODE_GROUP in kinds:
            return self.cause(Reason.NODE_GROUP)
        if ExclusionKind.BUSY in kinds:
            return self.cause(Reason.NODES_BUSY)
        if ExclusionKind.REVOCABLE in kinds:
            return self.cause(Reason.REVOCABLE_ZONE)
        firm = kinds <= {ExclusionKind.SELECTOR, ExclusionKind.TAINT}
        return self.cause(Reason.UNTOLERATED_TAINT if firm else Reason.NODES_UNAVAILABLE)

    def too_large(self) -> Cause | None:
        """Return the cause when one pod requests more than any node that it may use has."""
        if self._class.foreign:
            name, amount = self._class.foreign[0]
            return self.cause(Reason.NEVER_FITS, never=True, resource=name, requested=amount)
        whole, request = self._cluster.allocatable[self._open], self._class.request
        if not self._requested or (whole[:, self._requested] >= request[self._requested]).all(axis=1).any():
            return None
        largest = whole[:, self._requested].max(axis=0)
        worst = int(np.argmax(request[self._requested] / np.maximum(largest, 1)))
        if largest[worst] >= request[self._requested[worst]]:
            return self.cause(Reason.NEVER_FITS, never=True)
        return self.cause(Reason.NEVER_FITS, never=True, **self._about(self._requested[worst]))

    def queue_limit(self, own: Account, account: Account, column: int, left: int, missing: int, least: int) -> Cause:
        """Return the cause when the ceiling of queue `account` stops pods of queue `own`; `left` is what is left under it.

        least is what the minimum requests, 0 where that has started.
        """
        amount, name = int(self._class.request[column]), self._names.resources[column]
        most = most_of(own, account, column)
        if least > most:
            found = never_cause(own, account, column, name, least, most)
        else:
            found = limit_cause(own, account, column, name, missing * amount, left)
        keeps = any(each.guarantee[column] for each in account.below)
        if account.parent is None and keeps and found.reason is not Reason.QUEUE_GUARANTEES:
            return self.no_room(own, missing)  # root's ceiling is the cluster itself
        return self.cause(found.reason, **{each: getattr(found, each) for each in _OF_LIMITS})

    def other_pods(self) -> Cause | None:
        """Return the cause when other pods keep these off all nodes with room; None otherwise."""
        relations, ties = self._cluster.relations, self._class.ties
        if relations is None or ties is None:
            return None
        free, request = self._free[:, self._requested], self._class.request[self._requested]
        roomy = (self._class.verdicts == 0) & (free >= request).all(axis=1)
        found = obstacle.find(relations, ties, roomy)
        return None if found is None else self.cause(found[0], obstacle=found[1])

    def no_room(self, own: Account | None, missing: int) -> Cause:
        """Return the cause when `missing` pods of queue `own` wait for others to leave."""
        free, request = self._free[self._open], self._class.request
        if not self._requested:
            return self.cause(Reason.NOT_ENOUGH_RESOURCES)
        enough = (free[:, self._requested] >= request[self._requested]).sum(axis=0)
        scarcest = self._requested[int(np.argmin(enough))]
        if enough.min() > 0:
            return self.cause(Reason.NOT_ENOUGH_RESOURCES)
        more = missing * int(request[scarcest])
        over = beyond_deserved(own, scarcest, more) if own is not None else None
        if over is None:
            return self.cause(Reason.NOT_ENOUGH_RESOURCES, **self._about(scarcest))
        shares = {"queue": over.name, "used": over.used[scarcest] + more, "deserved": over.deserved[scarcest]}
        return self.cause(Reason.QUEUE_OVER_DESERVED, **self._about(scarcest), **shares)

    def _about(self, column: int) -> dict[str, object]:
        """Return the fields of a cause that describe one resource."""
        free, whole = self._free[self._open, column], self._cluster.allocatable[self._open, column]
        freest, largest = int(np.argmax(free)), int(np.argmax(whole))
        return {
            "resource": self._names.resources[column],
            "requested": int(self._class.request[column]),
            "free": max(int(free[freest]), 0),
            "free_node": self._names.nodes[int(self._open[freest])],
            "whole": int(whole[largest]),
            "whole_node": self._names.nodes[int(self._open[largest])],
            "spared": self._spared_for(column),
        }

    def _spared_for(self, column: int) -> str:
        """Return the device for which a column is spared, if some node would have room otherwise; "" for none."""
        devices = [each.device for each in self._class.spared if each.column == column]
        is_enough = self._cluster.free[self._open, column] >= self._class.request[column]
        return self._names.resources[devices[0]] if devices and is_enough.any() else ""

    def _tally(self) -> tuple[tuple[int, str], ...]:
        """Count all nodes by the first thing that stops the pod, in kube-scheduler's words."""
        counts = {exclusion.text: count for count, exclusion in self._excluded}
        if self._class.foreign:
            counts[f"Insufficient {self._class.foreign[0][0]}"] = len(self._open)
            return _sorted(counts)
        are_left = self._class.verdicts == 0
        for column in self._requested:
            request, name = self._class.request[column], self._names.resources[column]
            if device := self._spared_for(column):
                spared = are_left & (self._free[:, column] < request) & (self._cluster.free[:, column] >= request)
                counts[f"proportional of resource {device} check failed"] = int(spared.sum())
                are_left &= ~spared
            short = are_left & (self._free[:, column] < request)
            text = "node(s) pod number exceeded" if name == "pods" else f"Insufficient {name}"
            counts[text] = int(short.sum())
            are_left &= ~short
        if self._cluster.relations is not None and self._class.ties is not None:
            counts |= obstacle.tally(self._cluster.relations, self._class.ties, are_left)
        return _sorted(counts)


def _sorted(counts: dict[str, int]) -> tuple[tuple[int, str], ...]:
    return tuple(sorted(((n, text) for text, n in counts.items() if n), key=lambda pair: f"{pair[0]} {pair[1]}"))
