"""The cluster as the log shows it, kept up to date change by change, with the sums that several invariants need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from cluster.store import Change
from proof.invariants.queue_use import QueueUse
from proof.invariants.views import (
    GROUPS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    QUEUES,
    QUOTAS,
    Group,
    Namespace,
    Pod,
    Queue,
    Seen,
    Thing,
    read,
)


class Step:
    """One change: the object before it (None: there was none), as the row says it, and after it (None: gone).

    `key` is `namespace/name`.
    """

    __slots__ = ("after", "before", "change", "key", "seen")

    def __init__(self, change: Change, key: str, before: Seen | None, seen: Seen) -> None:
        self.change, self.key, self.before, self.seen = change, key, before, seen
        self.after = None if change.verb == "DELETED" else seen


class Picture:
    """All objects by kind and key, and what pods take of nodes and queues.

    Keys are `namespace/name`. `lag_ms` is how old the state may be that a
    decision was made from, see `is_recent`.
    """

    def __init__(self, lag_ms: int = 0) -> None:
        self.lag_ms = lag_ms
        self.revision = 0
        self.at = 0
        self.things: defaultdict[str, dict[str, Seen]] = defaultdict(dict)
        self.pods, self.nodes, self.jobs = self.things[PODS], self.things[NODES], self.things[JOBS]
        self.groups, self.queues = self.things[GROUPS], self.things[QUEUES]
        self.namespaces, self.quotas = self.things[NAMESPACES], self.things[QUOTAS]
        # Node → what its pods take.
        self.used: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        # Key of a pod group → its pods by key.
        self.members: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        # Revisions by which somebody tells what is not so, see `proof.simulation.checks.lies`.
        self.untrue: set[int] = set()
        self.queue_use = QueueUse(self.groups, self.namespaces, self.queues)
        # Each is told of objects of its own kind.
        self._followers: dict[str, Callable[[str, Any, Any], None]] = {
            PODS: self._follow_pod,
            GROUPS: self._follow_group,
            QUEUES: self._follow_queue,
            NAMESPACES: self._follow_namespace,
        }

    def take(self, change: Change) -> Step:
        """Take over a change; return it as a step."""
        self.revision, self.at = change.revision, change.at
        objects, key = self.things[change.resource], f"{change.namespace}/{change.name}"
        step = Step(change, key, objects.get(key), read(change))
        if step.after is None:
            objects.pop(key, None)
        else:
            objects[key] = step.after
        follow = self._followers.get(change.resource)
        if follow is not None:
            before, after = step.before, step.after
            # One that could not be read as its kind is a Thing, and has nothing to follow.
            follow(key, None if type(before) is Thing else before, None if type(after) is Thing else after)
        return step

    def is_recent(self, at: int) -> bool:
        """Say whether something happened so lately that who decided now may not have known of it.

        Consumers plan from what they read, and commit without looking again at
        all of it: between the two somebody else may have written.
        """
        return self.at - at < self.lag_ms

    def _follow_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.group != before.group):
            self._leave(before.group, key)
        if after is not None and after.group:
            self.members[after.group][key] = after
        if _taken(before) == _taken(after):
            return
        for pod, sign in ((before, -1), (after, 1)):
            if pod is not None and pod.holds:
                used = self.used[pod.node]
                for name, amount in pod.ask.request.items():
                    used[name] += sign * amount
        self.queue_use.put(key, after)

    def _leave(self, group: str, key: str) -> None:
        members = self.members.get(group)
        if members is not None:
            members.pop(key, None)
            if not members:
                del self.members[group]

    def _follow_group(self, key: str, before: Group | None, after: Group | None) -> None:
        if (before and before.queue) != (after and after.queue):
            self.queue_use.move(self.members.get(key, {}), self.at)

    def _follow_queue(self, key: str, before: Queue | None, after: Queue | None) -> None:
        if (before and before.spec) != (after and after.spec):
            self.queue_use.forget_tree(key, self.at)

    def _follow_namespace(self, key: str, before: Namespace | None, after: Namespace | None) -> None:
        if (before and before.queue) != (after and after.queue):
            name = key.removeprefix("/")
            there = {k: pod for k, pod in self.pods.items() if type(pod) is Pod and k.startswith(f"{name}/")}
            self.queue_use.move(there, self.at)


def _taken(pod: Pod | None) -> tuple[object, ...] | None:
    """Return what decides about the sums that a pod is part of."""
    return None if pod is None else (pod.holds, pod.node, id(pod.ask), pod.group, pod.wish, pod.ours)
