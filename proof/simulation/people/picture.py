"""What a client knows of the cluster, and how a story names what a world gave its names to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from cluster import clock
from cluster.store import Change
from kube.meta import Object

Key = tuple[str, str]
UID = re.compile(r"00000000-0000-4000-8000-\d{12}")
NAMED = re.compile(r"uid of ([\w./-]+)")


def uid(number: int) -> str:
    """Return the uid of the object that is made as the n-th."""
    return f"00000000-0000-4000-8000-{number:012d}"


class Objects(Mapping[Key, "Object"]):
    """Objects of one kind by namespace and name; their JSON is decoded when somebody looks."""

    def __init__(self) -> None:
        self.changes: dict[Key, Change] = {}

    def __getitem__(self, key: Key) -> Object:
        return self.changes[key].object

    def __iter__(self) -> Iterator[Key]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def take(self, change: Change) -> None:
        """Take over one change."""
        key = (change.namespace, change.name)
        if change.verb == "DELETED":
            self.changes.pop(key, None)
        else:
            self.changes[key] = change


class LogPicture:
    """The cluster as the log shows it."""

    def __init__(self) -> None:
        self._objects: defaultdict[str, Objects] = defaultdict(Objects)
        self._uids: dict[str, str] = {}  # of the newest object of each name, also of those that are gone
        self._keys: dict[str, str] = {}

    def objects(self, resource: str) -> Mapping[Key, Object]:
        """Return the objects of a kind."""
        return self._objects[resource]

    def versions(self, resource: str, test: Callable[[Object], bool]) -> dict[Key, int]:
        """Return the newest revisions of the objects of a kind that pass a test."""
        changes = self._objects[resource].changes
        return {key: change.revision for key, change in changes.items() if test(change.object)}

    @property
    def now(self) -> int:
        """The wall clock in epoch milliseconds."""
        return clock.milliseconds()

    def take(self, change: Change) -> None:
        """Take over one change."""
        self._objects[change.resource].take(change)
        if change.verb == "ADDED":
            key = f"{change.resource}/{change.key}"
            self._uids[key], self._keys[change.uid] = change.uid, key

    def symbolic(self, text: str) -> str:
        """Return a text with each uid as the name of its object, which it has in every telling of a story."""
        return UID.sub(lambda found: f"uid of {self._keys.get(found[0], 'nothing')}", text)

    def meant(self, text: str) -> str:
        """Return a text with the uids that objects have here in the place of their names."""
        return NAMED.sub(lambda found: self._uids.get(found[1], uid(0)), text)
