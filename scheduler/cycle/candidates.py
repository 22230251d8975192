"""What may be evicted in one cycle, as units in the order of eviction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from scheduler.cycle.protection import ProtectedPods, Uses
from scheduler.cycle.world import World
from scheduler.engine.relations import Mark
from scheduler.gangs.evictable import Evictable, evictable
from scheduler.records.records import Group, Pod
from scheduler.records.shapes import PodShape
from scheduler.victims.units import Unit

Going = tuple[Group, tuple[Pod, ...]]
"""A group, and pods of it that are evicted together."""

Ranked = Iterable[tuple[tuple[float, ...], Group]]
"""Groups, each with its rank: pods of the least rank are evicted first."""


class Candidates:
    """The pods of groups as units, with what they hold of the nodes and columns of a cycle."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._vectors: dict[PodShape, list[int]] = {}
        self._going: dict[str, set[str]] = {}
        """The keys of pods evicted in this cycle, by group."""

    def note_going(self, group: Group, pods: Iterable[Pod]) -> None:
        """Note that pods of a group are evicted: it may lose so many fewer."""
        self._going.setdefault(group.key, set()).update(pod.key for pod in pods)

    def units(self, ranked: Ranked, going: list[Going], protection: ProtectedPods, *, gangs: bool) -> Iterator[Unit]:
        """Yield what may be evicted, in order; note the pods of each unit in `going`, and protected ones in `protection`. gangs: these may go whole.

        Groups of the least rank go first; of these all loose pods before whole gangs, those with a budget after the others, and
        newer groups before older ones.
        """
        newest_first = sorted(ranked, key=lambda pair: (pair[1].created, pair[1].key), reverse=True)
        by_rank = sorted(newest_first, key=lambda pair: pair[0])
        for tier, (_, some) in enumerate(groupby(by_rank, key=lambda pair: pair[0])):
            groups = [group for _, group in some]
            before: dict[str, list[int]] = {}
            limited: list[tuple[Group, Pod, Uses]] = []
            for group in (each for each in groups if self._has_loose(each)):
                first, is_limited = len(going), self._world.protection.concerns(group)
                for pod in self._evictable(group, protection).loose:
                    if is_limited and (uses := self._world.protection.uses(group, (pod,))):
                        limited.append((group, pod, uses))
                        continue
                    going.append((group, (pod,)))
                    yield self._unit(group, (pod,), tier)
                before[group.key] = list(range(first, len(going)))
            for group, pod, uses in limited:
                before[group.key].append(len(going))
                going.append((group, (pod,)))
                yield self._unit(group, (pod,), tier, uses=protection.heeded(uses))
            for group in groups if gangs else ():
                whole = self._evictable(group, protection, whole=True)
                if pods := whole.core:
                    if protection.concerns(group):  # some loose pods may go only with all others
                        alone = {pod.key for number in before.get(group.key, ()) for pod in going[number][1]}
                        pods = tuple(pod for pod in (*whole.loose, *whole.core) if pod.key not in alone)
                    uses = protection.heeded(self._world.protection.uses(group, pods))
                    going.append((group, pods))
                    yield self._unit(group, pods, tier, before.get(group.key, ()), uses)

    def _has_loose(self, group: Group) -> bool:
        """Tell, without looking at its pods, whether a group need not go as a whole."""
        return group.ready() - len(self._going.get(group.key, ())) != group.min_member

    def _evictable(self, group: Group, protection: ProtectedPods, *, whole: bool = False) -> Evictable:
        """Return what of a group may be evicted. whole: all of it is to go."""
        going = self._going.get(group.key, ())
        if protection.concerns(group):
            pods = (pod for pod in group.holders.values() if pod.key not in going)
            protected = protection.protected(group, pods, together=not self._has_loose(group), whole=whole)
            return evictable(group, self._world.snapshot.priority_of, going, protected)
        if going:
            return evictable(group, self._world.snapshot.priority_of, going)
        return self._world.snapshot.evictable_of(group)

    def _unit(
        self, group: Group, pods: tuple[Pod, ...], tier: int, before: Sequence[int] = (), uses: Uses = ()
    ) -> Unit:
        account = self._world.accounts[group.queue]
        if len(pods) == 1:
            node, holds = self.node(pods[0]), self.vector(pods[0].shape)
            if node is None:
                return Unit({}, holds, 1, account, tier, tuple(before), uses)
            marks = tuple([(mark, node, 1) for mark in marks_of(pods[0])])
            return Unit({node: holds}, holds, 1, account, tier, tuple(before), uses, marks)
        by_node: dict[int, list[int]] = {}
        marked: Counter[tuple[Mark, int]] = Counter()
        total = [0] * len(self.vector(pods[0].shape))
        for pod in pods:
            node, holds = self.node(pod), self.vector(pod.shape)
            _add(total, holds)
            if node is not None:
                _add(by_node.setdefault(node, [0] * len(holds)), holds)
                marked.update((mark, node) for mark in marks_of(pod))
        marks = tuple((mark, node, count) for (mark, node), count in marked.items())
        return Unit(by_node, total, len(pods), account, tier, tuple(before), uses, marks)

    def vector(self, shape: PodShape) -> list[int]:
        """Return what pods of a shape hold, by column."""
        amounts = self._vectors.get(shape)
        if amounts is None:
            amounts = self._vectors[shape] = self._world.snapshot.nodes.vector(shape).tolist()
        return amounts

    def node(self, pod: Pod) -> int | None:
        """Return the number of the node of a pod, None when it is not there."""
        return self._world.snapshot.nodes.numbers().get(pod.node)


def marks_of(pod: Pod) -> tuple[Mark, ...]:
    """Return the marks of a pod that rules about other pods count."""
    return pod.shape.profile.marks if pod.shape.profile is not None else ()


def _add(total: list[int], amounts: Sequence[int]) -> None:
    for column, amount in enumerate(amounts):
        total[column] += amount
