"""What a pod group and its pods say about themselves after a cycle.

Phases: reference/volcano-scheduler §5.1, with §11.16 fixed:

* Pods that got their node in this very cycle count as scheduled, so a gang goes to Running in the write that binds it.
* A group that was let in stays let in while it has pods: it falls back to Inqueue, not to Pending. Once it has no pods left, a
  group that ran goes to Pending and must enter again; a Completed one stays Completed.
* A group with running pods that was told that it lacks others stays Unknown until it has them, or none runs: its own status write
  is no sign that pods are about to be created.

Conditions: Unschedulable and Scheduled, and for some Reserved (scheduler.gangs.reserved). One of the first two is True, the
other, once written, False. The reason of Unschedulable is a word of scheduler.engine.cause.Reason, the message its sentence,
followed by Volcano's text (§5.3). The cause itself stands beside it as data (scheduler.reasons.message), also that of pods beyond
a minimum that runs; where nothing waits that condition is removed.

Nothing is written that has not changed. How many pods of a group that waits for nothing run or have ended is written after a
pause (`pause_ms`), for all changes until then; a job that ends sooner has its group deleted. What a waiting group was told is
looked at again after REFRESH_MS at the soonest, later when many groups wait, so that a long queue costs the same work per second
as a short one. Another reason, or another number of its own pods, is told at once, to the pods as well: only other amounts wait
(scheduler.reasons.message.gist). What pods beyond a minimum wait for is looked at again after NOTE_MS, or when one of them gets a
node. An event is written when the reason of waiting changes and when the group becomes ready after it was told to wait. Pods: see
notes().
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kube.kinds.core import EventType
from kube.kinds.scheduling import PodGroupPhase
from kube.meta import now_text, parse_time
from kube.usage import value_of
from kube.volcano.reserved_room import Reservation
from scheduler.decisions import Adoption, Bind, Decisions, GroupDecision, Need, Note, Report
from scheduler.engine.cause import Cause, Reason
from scheduler.gangs import half_bound, reserved
from scheduler.gangs.half_bound import SCHEDULED
from scheduler.reasons import message
from scheduler.reasons.message import CAUSE, OF_MISSING_PODS, UNSCHEDULABLE, gist
from scheduler.reasons.sentence import fit_errors, sentence
from scheduler.records.reading import GroupCondition, find_condition
from scheduler.records.records import READY, Group, Pod, TaskStatus

PAUSE_MS = 1000
"""How long a group that waits for nothing delays its pods' counts: Volcano's time between two sessions."""
PAUSE_PER_GROUP_MS = 1
"""How much each group with delayed counts adds to that."""
REFRESH_MS = 5000
REFRESH_PER_GROUP_MS = 20
NOTE_MS = 60_000
NOTED_PODS = 10

READY_REASON = "tasks in gang are ready to be scheduled"
READY_MESSAGE = "pod group is ready"


@dataclass(slots=True)
class Outcome:
    """What a cycle found out about one group. entered: it was let in by this cycle.

    minima are those of the binds, given_back the pods of a half bound gang. reservation is the group's from now on; in_vain: the
    one it had is given back. hyper_node is the lowest one with all pods of a gang that asks for one, None where none is asked
    for.
    """

    group: Group
    binds: list[Bind]
    unbound: list[Pod]
    cause: Cause | None = None
    entered: bool = False
    minima: list[Need] = field(default_factory=list)
    given_back: list[Pod] = field(default_factory=list)
    reservation: Reservation | None = None
    in_vain: bool = False
    hyper_node: str | None = None


def pause_ms(groups: int) -> int:
    """Return how long so many groups delay the counts of their pods.

    When thousands start at once this limits writes to a thousand a second, and jobs that end sooner need none.
    """
    return max(PAUSE_MS, groups * PAUSE_PER_GROUP_MS)


class Writer:
    """Decides what is written about groups in one cycle."""

    def __init__(self, decisions: Decisions, *, waiting: int, now: int) -> None:
        self._decisions = decisions
        self._now = now
        self._time = now_text(now)
        self._refresh = max(REFRESH_MS, waiting * REFRESH_PER_GROUP_MS)
        self._sentences: dict[int, str] = {}
        self._causes: list[Cause] = []

    def was_reported(self, group: Group) -> bool:
        """Tell whether a group was told lately why it waits; if so it is looked at again when due."""
        condition = find_condition(group.conditions, UNSCHEDULABLE)
        if condition is None or condition.status != "True":
            return False
        due = self._rests_until(condition.last_transition_time, self._refresh)
        if due is None:
            return False
        self._decisions.wake_at(due)
        return True

    def _rests_until(self, transition_time: Any, pause: int) -> int | None:
        """Return until when, in epoch ms, a condition that changed at `transition_time` is not written again; None where that is over.

        A time later than now was written before the clock was set back: it would hold until the clock shows that time again.
        """
        since = _time(transition_time)
        return since + pause if since <= self._now < since + pause else None

    def write(self, outcome: Outcome) -> None:
        """Add to the decisions what must be written about one group, if anything."""
        group = outcome.group
        decision = GroupDecision(group.namespace, group.name, group.uid, outcome.binds)
        decision.minima, decision.given_back = outcome.minima, outcome.given_back
        if outcome.hyper_node is not None and outcome.hyper_node != group.hyper_node:
            decision.hyper_node = outcome.hyper_node
        decision.queue, decision.needed = group.queue, group.min_member
        if outcome.binds:
            ready = group.ready()
            decision.started = bool(ready) and ready >= group.min_member
        cause = outcome.cause
        is_urgent = True
        if group.view is not None:
            counts = _after(group, outcome.binds)
            waits = cause is not None and not cause.started
            before = message.cause_of(group.conditions)
            self._status(decision, outcome, counts, before, waits=waits)
            cause = self._explain(decision, outcome, before, waits=waits)
            # What was said of the whole gang does not hold for the rest of a gang that starts.
            has_changed = cause is not None and (before is None or gist(before) != gist(cause))
            is_urgent = bool(outcome.binds) or has_changed
            self._reserve(decision, outcome)
            self._announce(decision, outcome)
        if cause is not None and outcome.unbound:
            text = self._sentence(cause) if cause is outcome.cause else sentence(cause)
            decision.notes = list(self.notes(outcome.unbound, text, at_once=is_urgent))
        if decision.binds or decision.status or decision.notes or decision.given_back:
            self._decisions.groups.append(decision)

    def _explain(self, decision: GroupDecision, outcome: Outcome, before: Cause | None, *, waits: bool) -> Cause | None:
        """Write the cause as data, beside the words or alone for pods beyond the minimum; return it, or `before` where that stays."""
        group, cause = outcome.group, outcome.cause
        words_stay = "conditions" not in decision.status
        if cause is None:
            words = find_condition(group.conditions, UNSCHEDULABLE)
            if find_condition(group.conditions, CAUSE) is None or (
                words_stay and words is not None and words.status == "True"
            ):
                return None
        elif words_stay if waits else self._holds(outcome, before, cause):
            return before or cause
        conditions = decision.status.get("conditions") or msgspec.to_builtins(group.conditions)
        others = [each for each in conditions if each["type"] != CAUSE]
        new = [self._true(CAUSE, cause.reason, message.data(cause))] if cause is not None else []
        decision.status["conditions"] = [*others, *msgspec.to_builtins(new)]
        return cause

    def _holds(self, outcome: Outcome, before: Cause | None, cause: Cause) -> bool:
        """Tell whether the written cause of pods beyond the minimum still holds; other amounts are written when due, or when one starts."""
        condition = find_condition(outcome.group.conditions, CAUSE)
        if condition is None or condition.message == message.data(cause):
            return condition is not None
        due = self._rests_until(condition.last_transition_time, NOTE_MS)
        if due is None or outcome.binds or before is None or gist(before) != gist(cause):
            return False
        self._decisions.wake_at(due)
        return True

    def _reserve(self, decision: GroupDecision, outcome: Outcome) -> None:
        """Write the reservation of a group, or that it has none any more."""
        group, reservation = outcome.group, outcome.reservation
        previous = reserved.reservation_of(group.conditions)
        if reservation == previous and reserved.is_announced(group.conditions) == (previous is not None):
            return
        if reservation is not None:
            new = reserved.written(reservation, self._now)
        else:
            released = previous is not None and group.has_released(previous)
            new = reserved.ended(previous, self._now, in_vain=outcome.in_vain, released=released)
        conditions = decision.status.get("conditions") or msgspec.to_builtins(group.conditions)
        others = [each for each in conditions if each["type"] not in reserved.TYPES]
        decision.status["conditions"] = [*others, *msgspec.to_builtins(new)]

    def _announce(self, decision: GroupDecision, outcome: Outcome) -> None:
        """Write, where a gang is bound pod by pod, that this is under way, and that it was given back."""
        group = outcome.group
        if outcome.given_back:
            decision.report = Report(EventType.WARNING, half_bound.GIVEN_BACK, half_bound.event_text(group))
        new = half_bound.announcement(group, outcome.binds, outcome.minima, self._time, self._now)
        if new is None:
            return
        others = [each for each in group.conditions if each.type != SCHEDULED]
        decision.announced = {"conditions": msgspec.to_builtins([*others, new])}
        # The last write replaces the announced conditions, even by unchanged ones.
        decision.status.setdefault("conditions", msgspec.to_builtins(group.conditions))

    def keep_out(self, adoption: Adoption, cause: Cause) -> None:
        """Tell pods without a group why none is made for them."""
        notes = list(self.notes((each.pod for each in adoption.pods), self._sentence(cause), at_once=True))
        if notes:
            decision = GroupDecision(adoption.namespace, adoption.name, "", notes=notes)
            self._decisions.groups.append(decision)

    def _sentence(self, cause: Cause) -> str:
        """Return the sentence of a cause; gangs that wait for the same share the object."""
        text = self._sentences.get(id(cause))
        if text is None:
            text = self._sentences[id(cause)] = sentence(cause)
            self._causes.append(cause)  # keeps the id in use
        return text

    def notes(self, pods: Iterable[Pod], text: str, *, at_once: bool) -> Iterable[Note]:
        """Yield what waiting pods are told: condition PodScheduled=False.

        Only the first NOTED_PODS of a gang in task order are told, each at most once in NOTE_MS unless it must be told at once: the
        gang's reason is on its pod group, and a gang of ten thousand must not cost ten thousand writes.
        """
        for pod, _ in zip(pods, range(NOTED_PODS), strict=False):
            condition = pod_scheduled(pod)
            if condition.get("status") == "False" and condition.get("message") == text:
                continue
            due = self._rests_until(condition.get("lastTransitionTime"), NOTE_MS)
            if due is None or at_once:
                yield Note(pod, text)
            else:
                self._decisions.wake_at(due)

    def _status(
        self,
        decision: GroupDecision,
        outcome: Outcome,
        counts: Counter[TaskStatus],
        before: Cause | None,
        *,
        waits: bool,
    ) -> None:
        group = outcome.group
        view = group.view
        if view is None:
            return
        wanted: dict[str, Any] = {
            "phase": str(phase_of(group, counts, waits=waits, entered=outcome.entered)),
            "running": counts[TaskStatus.RUNNING],
            "succeeded": counts[TaskStatus.SUCCEEDED],
            "failed": counts[TaskStatus.FAILED],
        }
        decision.status = {name: value for name, value in wanted.items() if getattr(view.status, name) != value}
        ready = sum(counts[s] for s in READY)
        if waits and outcome.cause is not None:
            self._unschedulable(decision, group, outcome.cause, before, counts)
        elif ready and ready >= group.min_member:
            has_waited = find_condition(group.conditions, UNSCHEDULABLE) is not None
            if self._set(decision, group, SCHEDULED, READY_REASON, "") and has_waited:
                decision.report = Report(EventType.NORMAL, SCHEDULED, READY_MESSAGE)
        elif outcome.entered:
            decision.let_in = self._lift(decision, group, UNSCHEDULABLE)
        elif outcome.cause is not None or reports_missing_pods(group):
            # Only pods beyond a minimum of 0 wait, or no pod is missing any more, though they have no nodes yet.
            self._lift(decision, group, UNSCHEDULABLE)

    def _unschedulable(
        self, decision: GroupDecision, group: Group, cause: Cause, before: Cause | None, counts: Counter[TaskStatus]
    ) -> None:
        condition = find_condition(group.conditions, UNSCHEDULABLE)
        repeated = condition is not None and condition.status == "True" and condition.reason == cause.reason
        if repeated and cause.reason is Reason.WAITING_FOR_VICTIMS and not cause.victims:
            return  # the victims were named when they were chosen
        if repeated and condition is not None and before is not None and gist(before) == gist(cause):
            due = self._rests_until(condition.last_transition_time, self._refresh)
            if due is not None:
                self._decisions.wake_at(due)
                return
        sentence = self._sentence(cause)
        text = f"{sentence} {volcano_text(group, cause, counts)}"
        anew = before is None and message.data_of(group.conditions) != message.data(cause)
        self._set(decision, group, UNSCHEDULABLE, cause.reason, text, anew=anew)
        if not repeated:
            decision.refusal, decision.never = (cause.reason, sentence), cause.never
            decision.report = Report(EventType.WARNING, UNSCHEDULABLE, text)

    def _set(
        self, decision: GroupDecision, group: Group, kind: str, reason: str, text: str, *, anew: bool = False
    ) -> bool:
        """Make one condition True and the other False; tell whether that is a change. anew: it is written in any case."""
        condition = find_condition(group.conditions, kind)
        if (
            not anew
            and condition is not None
            and (condition.status, condition.reason, condition.message) == ("True", reason, text)
        ):
            return False
        new = self._true(kind, reason, text)
        other = SCHEDULED if kind == UNSCHEDULABLE else UNSCHEDULABLE
        remaining = [self._false(c) if c.type == other else c for c in group.conditions if c.type != kind]
        decision.status["conditions"] = msgspec.to_builtins([*remaining, new])
        return True

    def _true(self, kind: str, reason: str, text: str) -> GroupCondition:
        return GroupCondition(
            type=kind,
            status="True",
            reason=str(reason),
            message=text,
            last_transition_time=self._time,
            transition_id=str(self._now),
        )

    def _lift(self, decision: GroupDecision, group: Group, kind: str) -> bool:
        """Make a condition False; tell whether it was True."""
        condition = find_condition(group.conditions, kind)
        if condition is None or condition.status != "True":
            return False
        conditions = [self._false(c) if c.type == kind else c for c in group.conditions]
        decision.status["conditions"] = msgspec.to_builtins(conditions)
        return True

    def _false(self, condition: GroupCondition) -> GroupCondition:
        if condition.status == "False":
            return condition
        return msgspec.structs.replace(
            condition, status="False", last_transition_time=self._time, transition_id=str(self._now)
        )


def phase_of(group: Group, counts: Counter[TaskStatus], *, waits: bool, entered: bool) -> str:
    """Return the phase of a group with these counts of pods by status."""
    total = counts.total()
    completed = counts[TaskStatus.FAILED] + counts[TaskStatus.SUCCEEDED]
    scheduled = total - counts[TaskStatus.PENDING] - counts[TaskStatus.UNKNOWN]
    inside = entered or group.phase not in ("", PodGroupPhase.PENDING)
    ready = sum(counts[status] for status in READY)
    lacks = ready < group.min_member and (counts[TaskStatus.PENDING] or scheduled < group.min_member)
    # While pods may be about to be created nothing new is said of them, but what was said stands.
    if counts[TaskStatus.RUNNING] and (waits or (lacks and group.phase == PodGroupPhase.UNKNOWN)):
        return PodGroupPhase.UNKNOWN
    if scheduled and scheduled >= group.min_member:
        if completed == total:
            return PodGroupPhase.COMPLETED
        is_placed = scheduled > completed or counts[TaskStatus.UNKNOWN]
        return PodGroupPhase.RUNNING if is_placed else PodGroupPhase.INQUEUE
    if not inside:
        return PodGroupPhase.PENDING
    if not total and not entered and group.phase != PodGroupPhase.INQUEUE:
        return PodGroupPhase.COMPLETED if group.phase == PodGroupPhase.COMPLETED else PodGroupPhase.PENDING
    return PodGroupPhase.INQUEUE


def volcano_text(group: Group, cause: Cause, counts: Counter[TaskStatus]) -> str:
    """Return `3/4 tasks in gang unschedulable: pod group is not ready, …`, as Volcano's gang plugin writes it."""
    total, pending = counts.total(), counts[TaskStatus.PENDING]
    ready = sum(counts[s] for s in READY)
    schedulable = min(cause.fit, pending) if cause.tally else 0
    short = max(group.min_member - ready - schedulable, 0)
    parts = sorted([f"{n} {s.title}" for s, n in counts.items() if n] + [f"{group.min_member} minAvailable"])
    text = f"{short}/{total} tasks in gang unschedulable: pod group is not ready, {', '.join(parts)}"
    if pending and cause.tally:
        split = (f"{schedulable} Schedulable" if schedulable else "", f"{pending - schedulable} Unschedulable")
        text += f"; Pending: {', '.join(sorted(filter(None, split)))}. Origin reason is {fit_errors(cause)}"
    else:
        text += "."
    return text


def reports_missing_pods(group: Group) -> bool:
    """Tell whether a group's condition says that pods of it are missing."""
    condition = find_condition(group.conditions, UNSCHEDULABLE)
    return condition is not None and condition.status == "True" and condition.reason in OF_MISSING_PODS


def pod_scheduled(pod: Pod) -> dict[str, Any]:
    """Return the pod's condition PodScheduled, or an empty dict."""
    conditions = value_of(pod.conditions) or ()
    return next((c for c in conditions if c.get("type") == "PodScheduled"), {})


def _after(group: Group, binds: list[Bind]) -> Counter[TaskStatus]:
    if not binds:
        return group.counts
    counts = group.counts.copy()
    counts[TaskStatus.PENDING] -= len(binds)
    counts[TaskStatus.BOUND] += len(binds)
    return counts


def _time(text: Any) -> int:
    try:
        return parse_time(text or "")
    except ValueError:
        return 0
