"""Room for groups whose minimum does not fit: which pods a cycle evicts for them, and for whom it reserves room.

preempt   a group takes the room of groups of lower priority in its own queue (reference/volcano-scheduler §2.4)
reclaim   a group whose queue has less than it deserves takes from queues that have more (§2.5), as far as
          `scheduler.victims.reclaim` says

Reclaim comes first, whatever the order of the actions: a group preempted in a queue that may reclaim would only reclaim in turn.
Pods are evicted only for the minimum of a group, and only if all of it gets room. A group that waits for its victims is nominated
(`scheduler.gangs.nominations`): in later cycles it comes first, beside groups of higher priority in its queue, and what it cannot
have yet is reserved for it. It does not get room that a reservation keeps for others (`scheduler.cycle.reservations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from kube.usage import ROOT_QUEUE
from scheduler.cycle import order
from scheduler.cycle.candidates import Candidates, Going, Ranked, marks_of
from scheduler.cycle.protection import ProtectedPods
from scheduler.cycle.queue_accounts import giving_queues
from scheduler.cycle.reservations import Reservations
from scheduler.cycle.world import World
from scheduler.decisions import ROOM, Eviction
from scheduler.engine.arrays import Vector
from scheduler.engine.cause import Cause, Reason, listed
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.relations import NodeSet
from scheduler.gangs import fruitless
from scheduler.gangs.fruitless import Protected
from scheduler.policy.actions import Action
from scheduler.reasons.explain import fits_on_empty_nodes
from scheduler.records.records import Group
from scheduler.victims.evict import find_victims
from scheduler.victims.leaving import Leaving
from scheduler.victims.overlap import Holders, Overlap
from scheduler.victims.reclaim import Reclaim
from scheduler.victims.trial import Yields

Find = Callable[[Group, Gang], "Source | None"]


COSTLY = 2000
"""When more units than this, some 10 ms of work, were drawn in vain, the search rests for gangs alike."""


class Source(NamedTuple):
    """The groups whose pods may be evicted for a group, and whether their queue yields them as it stands then."""

    groups: Ranked
    yields: Yields


class _AwaitedRoom:
    """Room reserved for a group, given by key, that waits for victims: its attempt is on the cluster.

    What the victims will free is not charged on top of what they still hold.
    """

    def __init__(
        self, key: str, gang: Gang, attempt: Attempt, cluster: Cluster, coming: Mapping[int, Vector], holders: Holders
    ) -> None:
        """Note the room while it is not charged: coming is by node what leaving pods free of it, holders whose that is."""
        self.key, self.gang, self.attempt = key, gang, attempt
        self._cluster, self._coming = cluster, coming
        self._overlap: Overlap | None = None
        if gang.account is not None:
            whole = np.zeros(cluster.free.shape[1], dtype=np.int64)
            for column, amount in cluster.minimum_requests(gang):
                whole[column] = amount
            self._overlap = Overlap(gang.account, whole, coming, holders)
        self._is_once = False

    def count_once(self, *, on: bool) -> None:
        """Let others use what the group does not need yet, as leaving pods will free it; on=False undoes that."""
        if on == self._is_once:
            return
        self._is_once = on
        for node, amounts in self._coming.items():
            self._cluster.free[node] += amounts if on else -amounts
            self._cluster.touched.append(node)
        if self._overlap is not None:
            self._overlap.take_off(on=on)


class Evictions:
    """Which pods one cycle evicts, for whom, and for whom it reserves room."""

    def __init__(self, world: World, reservations: Reservations) -> None:
        self._world, self._reservations = world, reservations
        self._candidates = Candidates(world)
        self._protected: dict[str, Counter[str]] = {}
        self._leaving: Leaving | None = None
        self._failed: dict[tuple[object, ...], Protected] = {}
        self._waiting: dict[str, Cause] = {}
        self._starting: set[str] = set()
        self._awaited: list[_AwaitedRoom] = []
        """Room reserved for groups that cannot have it yet."""
        self._expected: dict[int, Vector] = {}
        """By node, what of that leaving pods will free."""
        self.found: list[Eviction] = []

    def cause_of(self, key: str) -> Cause | None:
        """Return the cause of a group that waits for victims; None for all others."""
        return self._waiting.get(key)

    def protected_from(self, key: str) -> Protected:
        """Return what protects pods that would otherwise be evicted for a group, and how many; most first."""
        return tuple(sorted(self._protected.get(key, {}).items(), key=lambda each: (-each[1], each[0])))

    def withholding(self, gang: Gang) -> tuple[str, ...]:
        """Return the queues with `reclaimable: false` that have more than they deserve of what a gang is owed."""
        queues = self._world.snapshot.queues
        unwilling = {
            name: account
            for name, account in self._world.accounts.items()
            if name in queues and not queues[name].reclaimable and not account.below
        }
        if not unwilling or Action.RECLAIM not in self._world.policy.actions:
            return ()
        reclaim = self._owed(gang)
        if not reclaim:
            return ()
        return tuple(sorted(name for name, account in unwilling.items() if reclaim.may_have_to_give(account)))

    def has_changed(self, key: str) -> bool:
        """Tell whether this cycle nominates a group or ends its nomination."""
        cause = self._waiting.get(key)
        return bool(cause.victims) if cause is not None else key in self._world.snapshot.groups.nominated

    # Groups that wait for their victims

    def keep(self) -> dict[int, Attempt]:
        """Place the minima of nominated groups, or reserve room for them; return the attempts by gang number.

        Groups of higher priority in the same queue come before them. A group without room even once all leaving pods are gone is
        no longer nominated.
        """
        attempts: dict[int, Attempt] = {}
        keys, gangs = list(self._world.gangs), list(self._world.gangs.values())
        for number in order.first(self._world.gangs, self._world.snapshot.groups.nominated):
            key, gang = keys[number], gangs[number]
            with self._reservations.aside(key):
                attempt = self._world.placer().place_minimum(gang)
                if attempt.short is None:
                    attempts[number] = attempt
                    self._reservations.drop(key)
                elif key in self._world.snapshot.groups.nominated:
                    with self._gone():
                        later = self._place_later(gang)
                    if later.short is None:
                        attempts[number] = attempt
                        self._waiting[key] = Cause(Reason.WAITING_FOR_VICTIMS)
                        self._awaited.append(self._keep(key, gang, later))
        return attempts

    def _place_later(self, gang: Gang) -> Attempt:
        """Place a minimum while leaving pods are gone: on what they free if that suffices, so that others may use idle room meanwhile."""
        idle = self._world.cluster.free.copy()
        for node, left in self._all_leaving().by_node().items():
            idle[node] -= np.minimum(left - self._expected.get(node, 0), np.maximum(idle[node], 0))
        self._world.cluster.free -= idle
        attempt = self._world.placer().place_minimum(gang)
        self._world.cluster.free += idle
        if attempt.short is None:
            return attempt
        return self._world.placer().place_minimum(gang)

    def _keep(self, key: str, gang: Gang, attempt: Attempt) -> _AwaitedRoom:
        """Reserve the room on which a gang is placed already, as far as leaving pods do not free it."""
        leaving = self._all_leaving()
        rooms = leaving.by_node()
        coming: dict[int, Vector] = {}
        for node, wanted in self._world.cluster.taken(gang, attempt).items():
            nothing = np.zeros_like(wanted)
            left = rooms.get(node, nothing)
            coming[node] = np.minimum(wanted, left - self._expected.get(node, nothing))
            self._expected[node] = self._expected.get(node, nothing) + coming[node]
        holders = {node: leaving.on(node) for node in coming}
        placer, runs = self._world.placer(), [list(some) for some in attempt.runs]
        placer.undo(gang, attempt)
        room = _AwaitedRoom(key, gang, attempt, self._world.cluster, coming, holders)
        placer.redo(gang, attempt, runs)
        room.count_once(on=True)
        return room

    def keepers(self, gang: Gang) -> tuple[str, ...]:
        """Return the names of the groups in whose awaited room a gang would fit; none where it would not fit anyway."""
        if not self._awaited:
            return ()
        placer = self._world.placer()
        placed = [[list(runs) for runs in each.attempt.runs] for each in self._awaited]
        with self._counted_twice():
            for each in self._awaited:
                placer.undo(each.gang, each.attempt)
            fits = self._world.placer().fits(gang)
            for each, runs in zip(self._awaited, placed, strict=True):
                placer.redo(each.gang, each.attempt, runs)
        return tuple(self._world.snapshot.groups[each.key].name for each in self._awaited) if fits else ()

    @contextmanager
    def _counted_twice(self) -> Iterator[None]:
        """Charge all awaited room in full, beside the pods that are still there, for the length of the block."""
        for each in self._awaited:
            each.count_once(on=False)
        try:
            yield
        finally:
            for each in self._awaited:
                each.count_once(on=True)

    @contextmanager
    def _gone(self) -> Iterator[None]:
        """Treat all leaving pods as gone for the length of the block."""
        with self._reservations.counted_twice(), self._counted_twice(), self._all_leaving().gone():
            yield

    # Groups that need victims

    def make_room(self, groups: Iterable[Group], attempts: Mapping[str, Attempt]) -> None:
        """Find victims for those groups, in their order, whose minimum was placed nowhere."""
        actions = self._world.policy.actions
        self._starting = {key for key, each in attempts.items() if each.has_minimum() and each.placed()}
        sources = [
            (action, source)
            for action, source in ((Action.RECLAIM, self._reclaim), (Action.PREEMPT, self._preempt))
            if action in actions
        ]
        for group in groups if sources else ():
            attempt = attempts.get(group.key)
            if attempt is None or attempt.short is None or attempt.behind is not None:
                continue
            if group.key in self._waiting or group.key + ROOM in self._world.snapshot.groups.resting:
                continue
            gang = self._world.gangs[group.key]
            for action, source in sources:
                if action is Action.RECLAIM:
                    has_victims = bool(self._giving - {group.queue})
                else:
                    has_victims = self._lowest.get(group.queue, gang.level) < gang.level
                if has_victims and self._may_have_others_go(group) and self._try_aside(action, source, group, gang):
                    break

    @cached_property
    def _giving(self) -> set[str]:
        return giving_queues(self._world.snapshot, self._world.accounts)

    @cached_property
    def _lowest(self) -> dict[str, int]:
        """The lowest priority of pods on nodes, by queue."""
        lowest: dict[str, int] = {}
        for queue, name in self._world.snapshot.usage:
            level = self._world.snapshot.priority_of(name)
            lowest[queue] = min(lowest.get(queue, level), level)
        return lowest

    def _may_have_others_go(self, group: Group) -> bool:
        pods = group.pending.values()
        return self._world.snapshot.preempts(group.priority_class) and all(pod.preempts for pod in pods)

    def _preempt(self, group: Group, gang: Gang) -> Source:
        """Return the groups of lower priority in the same queue."""
        priority_of = self._world.snapshot.priority_of
        levels = ((priority_of(other.priority_class), other) for other in self._holding())
        lower = (((level,), other) for level, other in levels if level < gang.level and other.queue == group.queue)
        return Source(lower, lambda _account, _holds: True)

    def _reclaim(self, group: Group, gang: Gang) -> Source | None:
        """Return the groups of queues that have more than they deserve; None where the gang's queue may reclaim from none.

        Queues closest to its own in the tree come first, then those of lower priority, then those with the largest share of what
        they deserve; among equals, groups of lower priority.
        """
        reclaim = self._owed(gang)
        if not reclaim:
            return None
        queues = self._world.snapshot.queues
        ranks = {
            name: (-reclaim.nearness(account), queues[name].priority, -account.share())
            for name, account in self._world.accounts.items()
            if name in self._giving and reclaim.may_have_to_give(account)
        }
        if not ranks:
            return None
        others = (
            ((*ranks[other.queue], self._world.snapshot.priority_of(other.priority_class)), other)
            for other in self._holding()
            if other.queue in ranks
        )
        return Source(others, reclaim.yields)

    def _owed(self, gang: Gang) -> Reclaim | None:
        """Return what others owe to a gang's queue; None without an account."""
        if gang.account is None:
            return None
        free = self._world.cluster.free[self._open_nodes(gang)]
        idle = np.maximum(free, 0).sum(axis=0).tolist()
        return Reclaim(
            gang.account,
            self._world.cluster.minimum_requests(gang),
            self._world.pods,
            idle,
            self._reservations.charged(),
        )

    def _holding(self) -> Iterator[Group]:
        """Yield the groups that have pods on nodes, except those that get more nodes, or victims, in this cycle.

        Pods that get their nodes in this cycle cannot be evicted in it: their gang would go and they would stay.
        """
        for key in self._world.snapshot.groups.holding:
            group = self._world.snapshot.groups[key]
            if not group.exists or key in self._waiting or key in self._starting:
                continue
            if group.queue in self._world.accounts:
                yield group

    def _try_aside(self, action: Action, source: Find, group: Group, gang: Gang) -> bool:
        """Evict pods for a group while its own reservation is lifted; a group that gets victims needs no reservation."""
        with self._reservations.aside(group.key):
            found = self._try(action, source, group, gang)
            if group.key in self._waiting:
                self._reservations.drop(group.key)
        return found

    def _try(self, action: Action, source: Find, group: Group, gang: Gang) -> bool:
        """Evict pods for a group if that gives it room; a failure holds for all gangs alike."""
        likeness = action, gang.bins, gang.steps, gang.arranged, group.queue, gang.level
        protected = self._failed.get(likeness)
        if protected is None:
            protected = self._resting(likeness)
        if protected is None:
            going: list[Going] = []
            with self._gone():
                drawn = source(group, gang)
                if drawn is not None and self._world.placer().fits(gang):
                    return True  # once leaving pods are gone: no victims, nothing reserved
                nodes = partial(self._helping_nodes, gang)
                heeds_runtime = action is Action.RECLAIM
                protected_pods = ProtectedPods(
                    self._world.protection, nodes, heeds_budgets=True, heeds_runtime=heeds_runtime
                )
                victims = self._victims(action, drawn, gang, going, protected_pods)
                if victims is None and protected_pods.has_budgets() and not self._world.policy.budgets:
                    protected_pods = ProtectedPods(
                        self._world.protection, nodes, heeds_budgets=False, heeds_runtime=heeds_runtime
                    )
                    going = []
                    victims = self._victims(action, source(group, gang), gang, going, protected_pods)
                if victims is not None:
                    protected_pods.note_gone(victims)
                    self._evict(action, group, victims)
                    return True
            protected = self._failed[likeness] = protected_pods.counts()
            # Look again when the first pod that has just started, or started again, may be evicted.
            self._world.wake_at(protected_pods.until())
            if len(going) > COSTLY:
                fruitless.note(self._world.snapshot.memory.fruitless, likeness, self._world.now, protected)
                self._world.wake_at(self._world.now + fruitless.REST_MS)
        self._protected.setdefault(group.key, Counter()).update(dict(protected))
        return False

    def _helping_nodes(self, gang: Gang) -> frozenset[str] | None:
        """Return the nodes where evictions could help a gang; None for all, where a ceiling or a rule about other pods is in its way."""
        cluster = self._world.cluster
        line, requested = gang.account.line if gang.account else (), cluster.minimum_requests(gang)
        is_above = any(
            each.held[column] + amount > each.ceiling[column] for each in line for column, amount in requested
        )
        if is_above or cluster.has_rules(gang):
            return None
        names = self._world.snapshot.nodes.names()
        return frozenset(names[node] for node in np.flatnonzero(self._open_nodes(gang)).tolist())

    def _open_nodes(self, gang: Gang) -> NodeSet:
        """Return the nodes that some pods of a gang may use."""
        is_open = np.zeros(len(self._world.cluster.free), dtype=bool)
        for number in {some.pod_class for some in gang.bins}:
            is_open |= self._world.cluster.classes[number].verdicts == 0
        return is_open

    def _victims(
        self, action: Action, drawn: Source | None, gang: Gang, going: list[Going], protection: ProtectedPods
    ) -> list[Going] | None:
        """Return the pods to evict for a gang, None where nothing helps; `going` gets all that were looked at."""
        if drawn is None or not fits_on_empty_nodes(self._world.cluster, gang):
            return None
        policy = self._world.policy
        taking = policy.reclaim if action is Action.RECLAIM else policy.preempt
        units = self._candidates.units(drawn.groups, going, protection, gangs=taking.gangs)
        found = find_victims(
            self._world.cluster, gang, units, drawn.yields, pods=self._world.pods, domains=taking.domains
        )
        return None if found is None else [going[number] for number in found[0]]

    def _resting(self, likeness: tuple[object, ...]) -> Protected | None:
        """Return what a costly search in vain a short time ago found protected, so that it is not repeated yet; None without one."""
        search = fruitless.resting(self._world.snapshot.memory.fruitless, likeness, self._world.now)
        if search is None:
            return None
        self._world.wake_at(search.due)
        return search.protected

    def _evict(self, action: Action, group: Group, victims: list[Going]) -> None:
        """Note which pods are evicted for a group: from now on they count as leaving."""
        leaving = self._all_leaving()
        counts: Counter[str] = Counter()
        text = f"Pod is evicted, because of {action}: pod group {group.key} gets its room."
        for other, pods in victims:
            counts[other.name] += len(pods)
            noted_on = other.uid if other.first_evicted is None else ""
            self._candidates.note_going(other, pods)
            for pod in pods:
                self.found.append(Eviction(pod, action, group.key, text, other.queue, noted_on))
                leaving.add(
                    self._candidates.node(pod),
                    self._candidates.vector(pod.shape),
                    self._world.accounts[other.queue],
                    marks_of(pod),
                )
        most_first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        self._waiting[group.key] = Cause(Reason.WAITING_FOR_VICTIMS, victims=listed(most_first))

    def _all_leaving(self) -> Leaving:
        """Return all leaving pods, with those that this cycle evicts."""
        if self._leaving is None:
            self._leaving = Leaving(self._world.cluster)
            for pod in self._world.snapshot.releasing.values():
                account = (
                    self._world.accounts.get(self._world.snapshot.usage.queue_of(pod))
                    or self._world.accounts[ROOT_QUEUE]
                )
                self._leaving.add(
                    self._candidates.node(pod), self._candidates.vector(pod.shape), account, marks_of(pod)
                )
        return self._leaving
