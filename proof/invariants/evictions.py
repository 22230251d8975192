"""The scheduler has pods end only for somebody, and leaves no gang half (docs/design/evictions.md; reference: volcano-scheduler §2.4 to §2.6).

A pod that the scheduler evicts is known by its condition DisruptionTarget with the reason PreemptionByScheduler, from which its
deletion follows in the same transaction.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
from msgspec import field

from cluster.store import Change
from kube.kinds.fields import View
from kube.meta import parse_time
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import EVENTS, GROUPS, PODS, Condition, Event, Group, Pod, key_of

WAITING = "WaitingForVictims"
CONFIGMAPS, CONFIGURATION = "configmaps", "volcano-scheduler-configmap"
LEAST_MS = 300_000
RECLAIMED = "Pod is evicted, because of reclaim"


class Timed(Condition):
    """A condition with its time."""

    last_transition_time: str = ""


class MarkedStatus(View):
    """What is reported of a pod that goes."""

    conditions: list[Timed] = []


class MarkedPod(View):
    """A pod that may have been evicted."""

    status: MarkedStatus = MarkedStatus()

    def time_of(self, kind: str) -> int | None:
        """Return when a condition became true, in whole seconds as ms; None where it is not, or does not say."""
        times = [
            each.last_transition_time for each in self.status.conditions if (each.type, each.status) == (kind, "True")
        ]
        return _seconds(times[0]) if times else None


class Notes(View):
    """What is noted on a pod group."""

    first_evicted: str = field(default="", name="ui.volcano.sh/first-evicted")


class NotedMeta(View):
    """The metadata of a pod group."""

    annotations: Notes | None = None


class NotedGroup(View):
    """A pod group that may have been evicted before."""

    metadata: NotedMeta = NotedMeta()


_decode = msgspec.json.Decoder(MarkedPod).decode
_decode_noted = msgspec.json.Decoder(NotedGroup).decode


def _seconds(text: str) -> int | None:
    try:
        return parse_time(text) // 1000 * 1000
    except ValueError:
        return None


def evicted(step: Step) -> Pod | None:
    """Return the pod that a step asks to end because the scheduler wants it; None for any other step."""
    before, after = step.before, step.after
    if type(after) is not Pod or not after.deleting or (type(before) is Pod and before.deleting):
        return None
    try:
        conditions = _decode(step.change.body).status.conditions
    except msgspec.ValidationError:
        return None
    is_victim = any(each.type == "DisruptionTarget" and each.reason == "PreemptionByScheduler" for each in conditions)
    return after if is_victim else None


class ForSomebody(Invariant):
    """Source: docs/design/evictions.md: who waits for his victims says so in the write by which they are evicted."""

    name = "evicted for somebody"
    meaning = "When the scheduler evicts a pod, another pod group waits for its victims."
    kinds = (PODS, GROUPS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._waiting: set[str] = set()

    def take(self, step: Step) -> None:
        if step.change.resource == GROUPS:
            conditions = step.after.status.conditions if type(step.after) is Group else ()
            is_waiting = any(
                (each.type, each.status, each.reason) == ("Unschedulable", "True", WAITING) for each in conditions
            )
            (self._waiting.add if is_waiting else self._waiting.discard)(step.key)
        elif (pod := evicted(step)) is not None and not self._waiting - {pod.group}:
            raise self.broken(key_of(step.change), "is evicted, and no other pod group waits for its victims")


class LeavesWhole(Invariant):
    """Source: reference volcano-scheduler §3.1 and §2.6: what is beyond a minimum goes alone, the rest of a gang as a whole.

    A gang that was below its minimum, or became so by something else lately, has none to keep; so has one whose minimum was
    raised lately.
    """

    name = "gang is evicted whole"
    meaning = "After a burst of evictions no pod group that had its minimum is below it, unless none of its pods is left on a node."
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Key of a group → a step by which a pod of it was evicted in this burst.
        self._begun: dict[str, Change] = {}
        # Key of a group → when its minimum changed, or it lost a pod otherwise.
        self._disturbed: dict[str, int] = {}

    def take(self, step: Step) -> None:
        if (pod := evicted(step)) is not None:
            self._evicted(step, pod)
            return
        if self._begun:
            self.finish()
        before, after = step.before, step.after
        if step.change.resource == GROUPS:
            if type(before) is Group and type(after) is Group and before.minimum != after.minimum:
                self._disturbed[step.key] = self.picture.at
        elif type(before) is Pod and before.ready and not (type(after) is Pod and after.ready):
            self._disturbed[before.group] = self.picture.at

    def _evicted(self, step: Step, pod: Pod) -> None:
        group = self.picture.groups.get(f"{step.change.namespace}/{pod.group.partition('/')[2]}")
        if type(group) is not Group or pod.group in self._begun:
            return
        ready = len(self._ready(pod.group)) + 1
        at = self._disturbed.get(pod.group, 0)
        if ready >= group.minimum and not self.picture.is_recent(at):
            self._begun[pod.group] = step.change

    def finish(self) -> None:
        begun, self._begun = self._begun, {}
        for key, change in begun.items():
            group, ready = self.picture.groups.get(key), self._ready(key)
            if type(group) is not Group or len(ready) >= group.minimum:
                continue
            if left := sum(pod.holds for pod in ready):
                text = f"its eviction leaves {key} with {len(ready)} of {group.minimum}, {left} of them on nodes"
                raise self.broken(key_of(change), text, revision=change.revision)

    def _ready(self, key: str) -> list[Pod]:
        return [pod for pod in self.picture.members.get(key, {}).values() if pod.ready]


class RunsAgain(Invariant):
    """Source: docs/design/evictions.md, "No churn": reclaim leaves alone for a while what was evicted before and has started again.

    Each pod by itself; a gang goes whole when half of those that have started again have run for so long. Where the scheduler is
    configured the time may be another one, and nothing is judged.
    """

    name = "runs before it is reclaimed again"
    meaning = "Whoever was evicted before and has started again runs for five minutes before reclaim evicts him again."
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._is_configured = False
        self._noted: dict[str, int | None] = {}  # key of a group → its first eviction
        self._new: dict[str, int] = {}  # key of a group → at which time of the log that was noted
        # Uids of pods of which the scheduler says that they are evicted for another queue.
        self._reclaimed: set[str] = set()
        # Key of a group → how many ms its pods have run, and the change by which they go.
        self._gone: defaultdict[str, list[tuple[int, Change]]] = defaultdict(list)

    def take(self, step: Step) -> None:
        if (pod := evicted(step)) is not None:
            self._evicted(step, pod)
            return
        if self._gone:
            self.finish()
        change, after = step.change, step.after
        if change.resource == CONFIGMAPS:
            self._is_configured |= change.name == CONFIGURATION
        elif change.resource == EVENTS and type(after) is Event and after.message.startswith(RECLAIMED):
            self._reclaimed.add(after.involved_object.uid)
        elif change.resource == GROUPS:
            notes = _decode_noted(change.body).metadata.annotations if type(after) is Group else None
            noted = _seconds(notes.first_evicted) if notes else None
            if noted is not None and self._noted.get(step.key) is None:
                self._new[step.key] = change.at
            self._noted[step.key] = noted

    def _evicted(self, step: Step, pod: Pod) -> None:
        first, uid = self._noted.get(pod.group), step.change.uid
        if uid not in self._reclaimed:
            return
        self._reclaimed.discard(uid)
        if self._is_configured:
            return
        if first is None:
            raise self.broken(key_of(step.change), f"is reclaimed, and nothing says so on {pod.group}")
        marked = _decode(step.change.body)
        started, now = marked.time_of("PodScheduled"), marked.time_of("DisruptionTarget")
        is_first = self._new.get(pod.group) == step.change.at  # whoever goes now has not been evicted before
        if started is not None and now is not None and started >= first and not is_first:
            self._gone[pod.group].append((now - started, step.change))

    def finish(self) -> None:
        gone, self._gone = self._gone, defaultdict(list)
        for key, pods in gone.items():
            young = [change for ran, change in pods if ran + 1000 < LEAST_MS]
            stay = any(pod.holds and not pod.deleting for pod in self.picture.members.get(key, {}).values())
            if len(young) > (0 if stay else len(pods) // 2):
                change = young[0]
                text = (
                    f"is reclaimed, as {len(pods)} pods of {key} that have started again, {len(young)} of them too soon"
                )
                raise self.broken(key_of(change), text, revision=change.revision)


INVARIANTS = (ForSomebody, LeavesWhole, RunsAgain)
