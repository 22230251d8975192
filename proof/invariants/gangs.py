"""Pod groups start together or not at all (design §4; reference: volcano-scheduler §3.1, volcano-queue-podgroup-cli §3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from proof.invariants.invariant import Broken, Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import ENDED, GROUPS, PODS, Group, Pod, key_of


def bound(step: Step) -> Pod | None:
    """Return the pod, which was there before, that a step gives its node; None for any other step."""
    before, after = step.before, step.after
    return after if type(before) is Pod and type(after) is Pod and not before.node and after.node else None


class Minimums:
    """The minimum of each pod group, and when it became another one."""

    def __init__(self) -> None:
        # Key of a group → its minimum and those of its roles.
        self.of: dict[str, tuple[int, dict[str, int]]] = {}
        self.changed: dict[str, int] = {}  # key of a group → when

    def note(self, key: str, group: Group | None, at: int) -> None:
        """Take over a pod group; None when it is gone."""
        if group is None:
            self.of.pop(key, None)
            return
        minimum = group.minimum, group.roles
        if key in self.of and self.of[key] != minimum:
            self.changed[key] = at
        self.of[key] = minimum


class RunsWhole(Invariant):
    """Source: design §7, "no gang started below its minimum".

    A pod may run once as many of its group have or had a node as the minimum
    was when it was bound, or as the minimum is, where it has been lowered
    since: a minimum that is raised later stops nobody. Pods made with a
    nodeName ask no scheduler and are not judged.
    """

    name = "gang runs whole"
    meaning = "No pod of a pod group runs while fewer than its minimum are or were bound."
    kinds = (PODS, GROUPS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._minimums = Minimums()
        self._bound: dict[str, set[str]] = {}  # key of a group → uids of its pods that are or were bound
        self._needs: dict[str, int] = {}  # key of a pod → the minimum of its group when it was bound

    def take(self, step: Step) -> None:
        if step.change.resource == GROUPS:
            self._group(step)
        elif step.after is None:
            self._needs.pop(step.key, None)
        elif type(step.after) is Pod and step.after.group:
            self._pod(step, step.after)

    def _group(self, step: Step) -> None:
        key, group = step.key, step.after if type(step.after) is Group else None
        self._minimums.note(key, group, self.picture.at)
        members = self.picture.members.get(key, {})
        if step.change.verb == "ADDED":
            self._bound[key] = {pod.metadata.uid for pod in members.values() if pod.node}
        elif group is None and not members:
            self._bound.pop(key, None)

    def _pod(self, step: Step, pod: Pod) -> None:
        key = step.key
        if pod.node:
            self._bound.setdefault(pod.group, set()).add(step.change.uid)
        minimum = self._minimums.of.get(pod.group)
        is_recent = self.picture.is_recent(self._minimums.changed.get(pod.group, 0))
        if minimum and not is_recent and bound(step):
            self._needs[key] = minimum[0]
        if pod.phase == "Running" and not (type(step.before) is Pod and step.before.phase == "Running"):
            need = min(self._needs.get(key, 0), minimum[0] if minimum else self._needs.get(key, 0))
            placed = len(self._bound[pod.group]) if pod.node else 0
            if placed < need:
                raise self.broken(key_of(step.change), f"runs with {placed} of {need} of {pod.group} placed")


class PodCounts:
    """How many pods of a group count for its minimum: on a node or run, or have succeeded."""

    __slots__ = ("lost", "ready", "roles")

    def __init__(self) -> None:
        self.ready = 0
        self.roles: Counter[str] = Counter()
        self.lost = 0  # when one of them last ceased to count

    def count(self, pod: Pod, sign: int) -> None:
        """Count a pod in, or out."""
        self.ready += sign
        self.roles[pod.role] += sign


class BoundWhole(Invariant):
    """Source: design §4, "a gang that does not fit holds nothing partially".

    The scheduler binds a gang in neighbouring rows of the log. After the last
    of them as many pods count as the minimum says, in all and by role; failed
    pods and those being deleted do not. Who binds pods one by one by hand
    breaks this, too: the log does not say who bound. What is left of a gang
    that has failed, and of which nobody runs, starts by itself: then those that
    failed count.
    """

    name = "gang is bound whole"
    meaning = "A burst of bindings leaves no pod group below its minimum."
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._minimums = Minimums()
        self._counts: dict[str, PodCounts] = {}
        self._burst = ""  # the group whose pods are being bound
        self._together: set[str] = set()  # the keys of those pods
        self._verdict: Broken | None = None  # the error to raise if nothing more of the burst follows

    def take(self, step: Step) -> None:
        kind = step.change.resource
        if kind == PODS:
            self._pod(step)
        else:
            if self._burst:
                self.finish()
            if kind == GROUPS:
                group = step.after if type(step.after) is Group else None
                self._minimums.note(step.key, group, self.picture.at)

    def finish(self) -> None:
        self._burst, verdict, self._verdict = "", self._verdict, None
        self._together.clear()
        if verdict is not None:
            raise verdict

    def _pod(self, step: Step) -> None:
        before = step.before if type(step.before) is Pod else None
        after = step.after if type(step.after) is Pod else None
        pod = bound(step)
        group = pod.group if pod is not None else ""
        if self._burst and group != self._burst:
            self.finish()
        if _counted(before) != _counted(after):
            self._count(before, after)
        if group:
            self._together.add(step.key)
            self._burst, self._verdict = group, self._judge(group, step)

    def _count(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and before.ready and before.group:
            counts = self._counts[before.group]
            counts.count(before, -1)
            counts.lost = self.picture.at
            if not counts.ready and before.group not in self.picture.members:
                del self._counts[before.group]
        if after is not None and after.ready and after.group:
            self._counts.setdefault(after.group, PodCounts()).count(after, 1)

    def _judge(self, group: str, step: Step) -> Broken | None:
        # A pod that is bound while it is deleted does not count, and may be the only one.
        counts, minimum = self._counts.get(group, PodCounts()), self._minimums.of.get(group)
        if minimum is None:
            return None  # nobody says what the minimum is
        lately = max(counts.lost, self._minimums.changed.get(group, 0))
        short = "" if self.picture.is_recent(lately) else _short(counts, *minimum)
        if not short or self._is_what_is_left(group, minimum[0]):
            return None
        return self.broken(key_of(step.change), f"its binding leaves {group} with {short} placed")

    def _is_what_is_left(self, group: str, minimum: int) -> bool:
        members = self.picture.members.get(group, {}).items()
        others = [pod for key, pod in members if key not in self._together]
        ended = [pod.phase for pod in others if pod.phase in ENDED]
        is_over = "Failed" in ended and not any(pod.holds for pod in others)
        return is_over and len(ended) + len(self._together) >= minimum


def _short(counts: PodCounts, minimum: int, roles: Mapping[str, int]) -> str:
    """Say how many there are of a minimum that is not reached, or "" when all are."""
    if counts.ready < minimum:
        return f"{counts.ready} of {minimum}"
    missing = (role for role, least in roles.items() if counts.roles[role] < least)
    return next((f"{counts.roles[role]} of {roles[role]} of {role}" for role in missing), "")


def _counted(pod: Pod | None) -> tuple[str, str] | None:
    return (pod.group, pod.role) if pod is not None and pod.ready and pod.group else None


INVARIANTS = (RunsWhole, BoundWhole)
