"""One scheduling cycle: a pure function from the world to decisions.

enqueue (which groups enter, so that their pods are created), allocate (which pods
get nodes), reclaim and preempt (which pods end so that others get theirs), shuffle (which pods end to be made again
elsewhere), as far as the policy names them, then what is said about those that wait. Queues take turns by their shares, in a queue
pod groups go by priority, then age, then key. A group whose queue is wrong gets its cause and stops nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from scheduler.cycle import rescheduling
from scheduler.cycle.adoptions import adopt
from scheduler.cycle.backfill import Backfill
from scheduler.cycle.enqueue import enqueue
from scheduler.cycle.evictions import Evictions
from scheduler.cycle.idle_room import entrants
from scheduler.cycle.node_rules import NodeRules
from scheduler.cycle.order import by_turn
from scheduler.cycle.queue_accounts import queue_accounts, queue_cause
from scheduler.cycle.reservations import Reservations
from scheduler.cycle.status import NOTED_PODS, Outcome, Writer, is_told_of_missing_pods, pause_ms
from scheduler.cycle.weights import packed_columns, weights_of
from scheduler.decisions import Bind, Decisions, Eviction
from scheduler.engine.cause import Cause, Reason
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Bin, Gang, GangStep
from scheduler.engine.place import Placer, place
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import Mark, Relations
from scheduler.gangs import half_bound
from scheduler.gangs.gang_layout import first_pods
from scheduler.gangs.layout import Layout, PodSet
from scheduler.gangs.task_topology import Kinship
from scheduler.gangs.waits import deadline, made_until
from scheduler.policy.actions import Action
from scheduler.reasons.explain import Names, explain, explain_rest, fits_on_empty_nodes
from scheduler.reasons.explain_arranged import explain_arranged, explain_arranged_rest
from scheduler.records.records import Group
from scheduler.snapshot.snapshot import Snapshot

KEEPABLE = frozenset(
    (
        Reason.NOT_ENOUGH_RESOURCES,
        Reason.QUEUE_LIMIT,
        Reason.PARENT_LIMIT,
        Reason.QUEUE_GUARANTEES,
        Reason.QUEUE_OVER_DESERVED,
    )
)
"""Why a gang may be said to wait because of room that is kept for another one."""
HOPELESS = frozenset(
    (
        Reason.QUEUE_NOT_FOUND,
        Reason.QUEUE_HAS_CHILDREN,
        Reason.QUEUE_CLOSED,
        Reason.NEVER_FITS,
        Reason.QUEUE_TOO_SMALL,
        Reason.PARENT_TOO_SMALL,
        Reason.QUOTA_EXCEEDED,
    )
)
"""Why a group is not let in whatever becomes free on nodes."""


def schedule(snapshot: Snapshot, now: int) -> Decisions:
    """Return what is to be done now; the snapshot is not changed, but for layouts and fruitless searches that it remembers.

    The same snapshot and time give the same decisions, whatever order the
    changes came in.
    """
    decisions = Decisions()
    ordered = _ordered(snapshot)
    cycle = _Cycle(snapshot, ordered, now, decisions)
    answers = enqueue(snapshot, ordered, cycle.cluster, cycle.accounts, cycle.reservations, cycle.may_start, now)
    cycle.wake_when_due(group for group in ordered if answers.get(group.key) is not None)
    cycle.allocate([group for group in ordered if answers.get(group.key) is None])
    answers |= dict.fromkeys(cycle.entrants(ordered, answers))
    decisions.evictions = cycle.make_room(ordered) or cycle.moved(answers)
    writer = Writer(decisions, waiting=len(ordered), now=now)
    for group in ordered:
        if cycle.is_unchanged(group) or (cycle.goes_on_waiting(group, answers) and writer.was_told(group)):
            continue
        writer.write(cycle.outcome(group, answers))
    adopt(snapshot, decisions, writer)
    decisions.said = _said(snapshot, decisions, now)
    for key in decisions.said:
        if key not in snapshot.waiting and (settled := snapshot.groups[key]).exists:
            writer.write(Outcome(settled, [], []))
    return decisions


def _said(snapshot: Snapshot, decisions: Decisions, now: int) -> list[str]:
    """Return, by their keys, the groups that wait and those whose pause is over; ask to be woken for the others.

    What changed later than now did so before the clock was set back.
    """
    settled = {key: since for key, since in snapshot.unsaid.items() if key not in snapshot.waiting}
    pause = pause_ms(len(settled))
    resting = {key: since for key, since in settled.items() if 0 <= now - since < pause}
    if resting:
        decisions.wake_at(min(resting.values()) + pause)
    return sorted(snapshot.unsaid.keys() - resting.keys())


def _ordered(snapshot: Snapshot) -> list[Group]:
    """Return the waiting groups in the order of `scheduler.cycle.order`."""
    groups = (snapshot.groups[key] for key in snapshot.waiting)
    return sorted(groups, key=by_turn(snapshot.policy, snapshot.priority_of))


class _Cycle:
    """The arrays of one cycle, and what became of each gang."""

    def __init__(self, snapshot: Snapshot, waiting: list[Group], now: int, decisions: Decisions) -> None:
        self._snapshot, self._now, self._decisions = snapshot, now, decisions
        self._allocates = Action.ALLOCATE in snapshot.policy.actions
        nodes = snapshot.nodes
        allocatable, free = nodes.matrices()
        self.accounts = queue_accounts(snapshot, waiting, allocatable, free) if waiting else {}
        self._rules = NodeRules(snapshot, now)
        self._classes: dict[int, PodClass] = {}
        self.cluster = Cluster(allocatable, free, self._classes, nodes.exclusions)
        self.cluster.weights = weights_of(snapshot.policy.scoring, nodes.columns)
        if nodes.relations:
            self.cluster.relations = Relations(nodes.ground())
        self._names = Names(nodes.names(), list(nodes.columns))
        self._pods = nodes.columns.get("pods", -1)
        self._placer: Placer | None = None
        self._standing: set[Mark] = set()
        self._gangs: dict[str, Gang] = {}
        self._keys: list[str] = []
        self._attempts: dict[str, Attempt] = {}
        self._causes: dict[tuple[Gang, int], Cause] = {}
        world = snapshot, self.cluster, self.accounts, self._gangs, self._pods, now
        self.reservations = Reservations(*world)
        self._evictions = Evictions(*world, self.reservations)

    def may_start(self, group: Group) -> bool:
        """Tell whether a group that was let in may come to what it was promised: whether its minimum would fit if nothing else ran.

        While its pods are being made nobody knows.
        """
        layout = self._snapshot.layout_of(group)
        if not group.pending:
            return True
        if layout.constraint() is not None or self._snapshot.unbound_claim(group):
            return False
        if layout.absent:
            return made_until(group, self._now) is not None
        return fits_on_empty_nodes(self.cluster, self._gang(group, layout))

    def entrants(self, ordered: list[Group], answers: dict[str, Cause | None]) -> list[str]:
        """Return the keys of the groups that were kept out and are let in, as there is room left for them."""
        if not self._allocates:
            return []
        world = self._snapshot, ordered, answers, self.cluster, self.accounts
        return entrants(*world, self._pods, self._now)

    def allocate(self, groups: list[Group]) -> None:
        """Place the gangs of these groups, in order, if that is an action of the policy."""
        if not self._allocates:
            return
        for group in groups:
            if group.key in self._snapshot.resting:
                continue
            if group.exists and group.pending and queue_cause(self._snapshot, group) is None:
                layout = self._snapshot.layout_of(group)
                is_open = layout.constraint() is None and not self._snapshot.unbound_claim(group)
                if layout.pod_sets and not layout.absent and is_open:
                    self._gangs[group.key] = self._gang(group, layout)
        self._keys = list(self._gangs)
        self.reservations.resume()
        kept = self.reservations.keep(self._evictions.keep())
        attempts = place(self.cluster, list(self._gangs.values()), pods=self._pods, tried=kept)
        self.reservations.make(dict(zip(self._keys, attempts, strict=True)))
        if self.reservations.standing:
            protection = self._evictions.protection
            world = self._snapshot, self.cluster, self._gangs, self.reservations, protection
            Backfill(*world, self._pods, self._now).run(attempts)
        self._attempts = dict(zip(self._keys, attempts, strict=True))
        if groups and (due := self._rules.due()) is not None:
            self._decisions.wake_at(due)

    def make_room(self, groups: list[Group]) -> list[Eviction]:
        """Return which pods end for those of these groups, in order, for which there was no room."""
        self._evictions.make_room(groups, self._attempts)
        self.reservations.look_again(groups, self._attempts)
        for due in (*self._evictions.wakes, *self.reservations.wakes):
            self._decisions.wake_at(due)
        revoked, again = self._rules.evictions(self._evictions.protection)
        if again is not None:
            self._decisions.wake_at(again)
        going = {each.pod.key for each in self._evictions.found}
        return [*self._evictions.found, *(each for each in revoked if each.pod.key not in going)]

    def moved(self, answers: dict[str, Cause | None]) -> list[Eviction]:
        """Return which pods end because they would be better elsewhere: none while others wait for room, or where others end now."""
        policy, world = self._snapshot.policy.rescheduling, self._snapshot
        if policy is None or not self._allocates or self._is_room_wanted(answers):
            return []
        found: list[Eviction] = []
        if rescheduling.due(world, policy, self._now) <= self._now:
            world.rescheduled = self._now
            accounts = self.accounts or queue_accounts(world, (), self.cluster.allocatable, self.cluster.free)
            moves = rescheduling.Moves(world, policy, self.cluster, accounts, self._class_of)
            found = moves.found(self._evictions.protection)
        self._decisions.wake_at(rescheduling.due(world, policy, self._now))
        return found

    def _is_room_wanted(self, answers: dict[str, Cause | None]) -> bool:
        """Tell whether anybody would take room that becomes free."""
        causes = (cause for cause in answers.values() if cause is not None)
        return (
            bool(self._snapshot.resting)
            or any(cause.reason not in HOPELESS for cause in causes)
            or any(attempt.placed() < _pods_of(attempt.gang) for attempt in self._attempts.values())
        )

    def wake_when_due(self, kept_out: Iterable[Group]) -> None:
        """Ask to be woken when the first of these groups has waited for as long as it may."""
        if not self._snapshot.policy.sla:
            return
        dues = [deadline(self._snapshot.policy, group) for group in kept_out]
        if later := [due for due in dues if due is not None and due > self._now]:
            self._decisions.wake_at(min(later))

    def is_unchanged(self, group: Group) -> bool:
        """Tell whether a group still waits for its first pods, as in the cycle before."""
        if group.pending or group.is_outside or group.key in self._snapshot.dirty:
            return False
        due = made_until(group, self._now)
        if due is None:
            return False
        self._decisions.wake_at(due)
        return True

    def goes_on_waiting(self, group: Group, answers: dict[str, Cause | None]) -> bool:
        """Tell whether a group waited before, waits still, and nothing of its own changed."""
        if group.key in self._snapshot.dirty or self._evictions.is_news(group.key):
            return False
        if self.reservations.is_news(group.key):
            return False
        if answers.get(group.key) is not None or not self._allocates:
            return True
        attempt = self._attempts.get(group.key)
        return attempt is not None and not attempt.has_minimum()

    def outcome(self, group: Group, answers: dict[str, Cause | None]) -> Outcome:
        """Return what became of a waiting group, with the cause if it goes on waiting."""
        found = self._outcome(group, answers)
        found.reservation = self.reservations.kept.get(group.key)
        found.in_vain = group.key in self.reservations.in_vain
        waits = group.exists and found.cause is not None and not found.binds
        if waits and half_bound.is_half_bound(group, self._snapshot.layout_of(group)):
            found.given_back = half_bound.given_back(group)
        return found

    def _outcome(self, group: Group, answers: dict[str, Cause | None]) -> Outcome:
        if not group.exists:
            return self._after_grace(group, Cause(Reason.GROUP_NOT_FOUND, group=group.name))
        layout = self._snapshot.layout_of(group)
        pods = layout.pods()
        cause = answers.get(group.key) or queue_cause(self._snapshot, group)
        entered = group.is_outside and cause is None
        if cause is not None:
            return Outcome(group, [], first_pods(group, NOTED_PODS), _about_the_rest(group, cause))
        if (constraint := layout.constraint()) is not None:
            cause = Cause(Reason.UNKNOWN_CONSTRAINT, constraint=constraint)
            return Outcome(group, [], pods, _about_the_rest(group, cause), entered)
        if claim := self._snapshot.unbound_claim(group):
            cause = Cause(Reason.CLAIM_NOT_BOUND, claim=claim)
            return Outcome(group, [], pods, _about_the_rest(group, cause), entered)
        if layout.absent:
            return self._absent(group, layout, entered=entered)
        if pods and not self._allocates:
            return Outcome(group, [], pods, _about_the_rest(group, Cause(Reason.NOT_ALLOCATING)), entered)
        attempt = self._attempts.get(group.key)
        if attempt is None:
            return Outcome(group, [], pods, entered=entered)
        if attempt.behind is not None:
            first = self._snapshot.groups[self._keys[attempt.behind]].name
            cause = Cause(Reason.QUEUE_ORDER, queue=group.queue, group=first)
            return Outcome(group, [], pods, _about_the_rest(group, cause), entered)
        if attempt.short is not None:
            return Outcome(group, [], pods, self._shortage(group, layout), entered)
        return self._started(group, layout, attempt, entered=entered)

    def _started(self, group: Group, layout: Layout, attempt: Attempt, *, entered: bool) -> Outcome:
        binds: list[Bind] = []
        unbound = []
        for number, some in enumerate(layout.pod_sets):
            taken = attempt.taken[number]
            chosen = attempt.nodes(number).tolist() if taken else []
            binds += [Bind(pod, self._names.nodes[node]) for pod, node in zip(some.pods[:taken], chosen, strict=True)]
            unbound += some.pods[taken:]
        cause = None
        if unbound:
            gang = self._gangs[group.key]
            tell = explain_arranged_rest if gang.arranged is not None else explain_rest
            cause = tell(self._explainer(), gang, attempt, self._names, started=group.ready())
            if cause is not None and gang.arranged is None:
                cause = self._unless_kept(_one_more(gang, attempt), cause)
        minima = half_bound.needs(layout.gang, attempt.taken, binds)
        outcome = Outcome(group, binds, unbound, cause, entered, minima)
        if layout.gang.arranged is not None and binds and self.cluster.hyper_nodes is not None:
            there = (pod.node for pod in group.holders.values())
            outcome.hyper_node = self.cluster.hyper_nodes.lowest_around([*there, *(b.node for b in binds)])
        return outcome

    def _absent(self, group: Group, layout: Layout, *, entered: bool) -> Outcome:
        """Return the outcome for a gang some of whose pods do not exist."""
        exist = layout.needed - layout.absent
        cause = Cause(
            Reason.SCHEDULING_GATED if layout.gated else Reason.NOT_ENOUGH_TASKS,
            fit=group.ready() + exist,
            needed=group.ready() + layout.needed,
            gated=layout.gated,
        )
        if entered:
            return Outcome(group, [], [], None, entered)
        if group.scheduled() >= group.min_member and not group.pending:
            return Outcome(group, [], [])  # all have run or run still; nothing is missing (§5.2)
        return self._after_grace(group, cause)

    def _after_grace(self, group: Group, cause: Cause) -> Outcome:
        due = made_until(group, self._now)
        if due is not None and not is_told_of_missing_pods(group):
            self._decisions.wake_at(due)
            return Outcome(group, [], [])
        return Outcome(group, [], first_pods(group, NOTED_PODS), cause)

    def _shortage(self, group: Group, layout: Layout) -> Cause:
        """Return why a gang has no room, with what keeps others from being evicted for it."""
        cause = self._evictions.cause_of(group.key) or self._explain_reserved(group, layout)
        cause = cause or self._explain(group, layout)
        protected = self._evictions.protected_from(group.key)
        return msgspec.structs.replace(cause, protected=protected) if protected else cause

    def _explain(self, group: Group, layout: Layout) -> Cause:
        """Return why a gang did not fit; equal gangs are explained once."""
        gang = self._gangs[group.key]
        key = replace(gang, level=0, held=()), layout.needed
        cause = self._causes.get(key)
        if cause is None:
            cause = self._explained(self._explainer(), gang, layout)
            if keeping := self._evictions.keepers(gang):
                cause = msgspec.structs.replace(cause, reason=Reason.ROOM_KEPT, never=False, keeping=keeping)
            cause = self._unless_kept(gang, cause)
            if cause.reason is Reason.NOT_ENOUGH_RESOURCES and not cause.never:
                cause = msgspec.structs.replace(cause, withholding=self._evictions.withholding(gang))
            self._causes[key] = cause
        return cause

    def _explained(self, placer: Placer, gang: Gang, layout: Layout) -> Cause:
        tell = explain_arranged if gang.arranged is not None else explain
        return tell(placer, gang, self._names, needed=layout.needed)

    def _explain_reserved(self, group: Group, layout: Layout) -> Cause | None:
        """Return why a gang waits for which room is kept; None for all others."""
        kept = self.reservations.kept.get(group.key)
        if group.key not in self.reservations.standing or kept is None:
            return None
        with self.reservations.aside(group.key):
            gang, placer = self._gangs[group.key], Placer(self.cluster, pods=self._pods)
            cause = self._explained(placer, gang, layout)
        nodes = sorted({node for some in kept.places for node, _ in some})
        return msgspec.structs.replace(
            cause, reason=Reason.RESERVED, since=kept.made, expected=kept.expected, places=tuple(nodes)
        )

    def _unless_kept(self, gang: Gang, cause: Cause) -> Cause:
        """Return a cause, but that the room is kept for another group where this one would fit in it."""
        if cause.reason not in KEEPABLE or cause.never or not self.reservations.standing:
            return cause
        if not (keeper := self.reservations.keeper(gang)):
            return cause
        made = self.reservations.kept[keeper].made
        keeping = (self._snapshot.groups[keeper].name,)
        return msgspec.structs.replace(cause, reason=Reason.ROOM_KEPT, keeping=keeping, since=made)

    def _explainer(self) -> Placer:
        if self._placer is None:
            self._placer = Placer(self.cluster, pods=self._pods)
        return self._placer

    def _class_of(self, group: Group, some: PodSet) -> int:
        """Return the number of the class of some pods of a group; the cluster has it from now on."""
        number = self._rules.number(group, some)
        if number not in self._classes:
            self._classes[number] = self._rules.pod_class(group, some)
            if some.kinship is not None:
                self._stand(some.kinship)
        return number

    def _gang(self, group: Group, layout: Layout) -> Gang:
        if layout.gang.arranged is not None and self.cluster.hyper_nodes is None:
            self.cluster.hyper_nodes = self._snapshot.hyper_nodes()
            self.cluster.packed = packed_columns(self._snapshot.policy, self._snapshot.nodes.columns)
        bins = layout.gang.bins
        for index, some in enumerate(layout.pod_sets):
            number = self._class_of(group, some)
            if number < 0:
                bins = (*bins[:index], replace(bins[index], pod_class=number), *bins[index + 1 :])
        parts = [self._snapshot.nodes.vector(shape) * count for shape, count in group.shapes.items()]
        held = tuple(sum(parts[1:], parts[0]).tolist()) if parts else ()
        return replace(layout.gang, bins=bins, account=self.accounts.get(group.queue), held=held)

    def _stand(self, kinship: Kinship) -> None:
        """Count the pods on nodes with whom others of their group have to do."""
        if self.cluster.relations is None:
            self.cluster.relations = Relations(self._snapshot.nodes.ground())
        index = self._snapshot.nodes.numbers()
        for mark, on in kinship.standing().items():
            if mark not in self._standing:
                self._standing.add(mark)
                marked = ((mark, index[name], pods) for name, pods in on.items() if name in index)
                self.cluster.relations.shift(marked)


def _pods_of(gang: Gang) -> int:
    return sum(some.count for some in gang.bins)


def _one_more(gang: Gang, attempt: Attempt) -> Gang:
    """Return the first pod of a gang without a node, by itself."""
    some = next(each for each, taken in zip(gang.bins, attempt.taken, strict=True) if taken < each.count)
    return replace(gang, bins=(Bin(some.pod_class, 1),), steps=(GangStep(1, (0,)),))


def _about_the_rest(group: Group, cause: Cause) -> Cause:
    """Return a cause as it is: about the pods beyond the minimum, where the minimum has its nodes."""
    ready = group.ready()
    started = bool(ready) and ready >= group.min_member
    return msgspec.structs.replace(cause, started=True) if started else cause
