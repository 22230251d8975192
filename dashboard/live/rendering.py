"""One topic in one scope of rights, as the hub renders it: its readers, and the text that they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from django.http import QueryDict

from cluster.access import Actor
from cluster.store import Change
from dashboard.live import messages
from dashboard.live.topics import Parts, Render, Watch
from kube import resources


class Subscriber(Protocol):
    """A socket, as the hub sees it; neither method waits."""

    def offer(self, text: str) -> None:
        """Send a message."""

    def rejoin(self, topic: str) -> None:
        """Subscribe to a topic again, with the present rights."""


@dataclass(eq=False)
class Rendering:
    """One topic as readers with the same rights see it.

    `since` is the first revision that was rendered, `revision` the newest, and
    `changed` the newest at which the text differed: a page that was rendered at a
    revision from `changed` on, and not before `since`, is up to date.
    Until `rests_until` (monotonic, s) it is rendered again only for a socket that joins.
    """

    topic: str
    scope: Hashable
    render: Render
    params: QueryDict
    actor: Actor
    since: int = -1
    revision: int = -1
    changed: int = -1
    hashes: dict[str, int] = field(default_factory=dict)
    order: list[str] | None = None
    watches: frozenset[Watch] = frozenset()
    readers: set[Subscriber] = field(default_factory=set)
    joining: dict[Subscriber, int] = field(default_factory=dict)
    again: int | None = None
    rests_until: float = 0.0
    failures: int = 0

    @property
    def deserted(self) -> bool:
        return not self.readers and not self.joining

    def up_to_date(self, revision: int) -> bool:
        """Whether a page that was rendered at a revision is up to date."""
        return revision == self.revision or (self.since <= revision <= self.revision and revision >= self.changed)

    def take(self, revision: int, parts: Parts) -> None:
        """Take a new rendering: send the readers what differs, and those who join what they lack."""
        hashes = {name: hash(html) for name, html in parts.parts.items()}
        changed = {name: html for name, html in parts.parts.items() if hashes[name] != self.hashes.get(name)}
        moved = parts.order != self.order
        if changed or moved or hashes.keys() != self.hashes.keys():
            self.changed = revision
            if self.readers:
                text = messages.parts(self.topic, revision, changed, parts.order if moved else None)
                self._offer(self.readers, text)
        if self.since < 0:
            self.since = revision
        self.hashes, self.order, self.revision, self.failures = hashes, parts.order, revision, 0
        self.again = parts.again
        self._welcome(parts)

    def _welcome(self, parts: Parts) -> None:
        current = [reader for reader, revision in self.joining.items() if self.up_to_date(revision)]
        behind = self.joining.keys() - set(current)
        if current:
            self._offer(current, messages.parts(self.topic, self.revision, {}, None))
        if behind:
            self._offer(behind, messages.parts(self.topic, self.revision, parts.parts, parts.order))
        self.readers.update(self.joining)
        self.joining.clear()

    def refuse(self, why: str) -> None:
        """End every subscription and say why."""
        self._offer([*self.readers, *self.joining], messages.denied(self.topic, why))
        self.readers.clear()
        self.joining.clear()

    @staticmethod
    def _offer(readers: Iterable[Subscriber], text: str) -> None:
        for reader in readers:
            reader.offer(text)


class WatchIndex:
    """Finds the renderings that a change makes stale, in a few dictionary lookups."""

    def __init__(self) -> None:
        self._watchers: dict[Watch, set[Rendering]] = defaultdict(set)
        self._owned: dict[str, int] = defaultdict(int)  # resource -> how many watches ask for an owner

    def put(self, rendering: Rendering, watches: Iterable[Watch]) -> None:
        """Let a rendering watch exactly these changes."""
        fresh = frozenset(watches)
        for watch in rendering.watches - fresh:
            self._watchers[watch].discard(rendering)
            self._owned[watch.resource] -= watch.owner is not None
            if not self._watchers[watch]:
                del self._watchers[watch]
        for watch in fresh - rendering.watches:
            self._watchers[watch].add(rendering)
            self._owned[watch.resource] += watch.owner is not None
        rendering.watches = fresh

    def kinds(self) -> list[resources.Resource]:
        """The resources that are watched."""
        return [resources.by_id(each) for each in {watch.resource for watch in self._watchers}]

    def owned(self) -> frozenset[str]:
        """The resources of which the objects of some owner are watched."""
        return frozenset(resource for resource, watches in self._owned.items() if watches)

    def all_of(self, kinds: Iterable[str]) -> set[Rendering]:
        """The renderings that watch anything of these resources."""
        watched = set(kinds)
        return {r for watch, renderings in self._watchers.items() if watch.resource in watched for r in renderings}

    def match(self, change: Change) -> Iterator[Rendering]:
        """The renderings that the change makes stale."""
        kind, namespace, name = change.resource, change.namespace, change.name
        watches = [Watch(kind), Watch(kind, namespace), Watch(kind, namespace, name), Watch(kind, None, name)]
        if self._owned.get(kind):
            owner = resources.by_id(kind).index(change.object).owner
            watches += [Watch(kind, None, None, owner), Watch(kind, namespace, None, owner)]
        for watch in watches:
            yield from self._watchers.get(watch, ())
