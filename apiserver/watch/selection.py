"""What a watch is about, and what a change looks like from there (reference: kubernetes-api §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from apiserver.http import listing
from apiserver.http.query import ListOptions
from cluster.store import Change
from kube.errors import Expired
from kube.resources import Resource

Verb = Literal["ADDED", "MODIFIED", "DELETED"]
_encode = msgspec.json.Encoder().encode


class WatchedChange:
    """A change on its way to those who watch, with all that is worked out once for them: JSON, lines."""

    __slots__ = ("_departed", "_replaced", "change", "lines")

    def __init__(self, change: Change) -> None:
        self.change = change
        self.release()

    def release(self) -> None:
        """Forget what was worked out; the change stays, with what it replaced."""
        self.lines: dict[tuple[object, ...], bytes] = {}
        self._replaced: Change | None = None
        self._departed: Change | None = None
        vars(self.change).pop("object", None)

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        return len(self.change.body) + len(self.change.previous or b"") + 500

    @property
    def replaced(self) -> Change:
        """The state that the change replaced; Expired when history has forgotten it."""
        if self._replaced is None:
            if self.change.previous is None:
                raise Expired(f"too old resource version: what {self.change.revision} replaced is gone")
            self._replaced = msgspec.structs.replace(self.change, body=self.change.previous)
        return self._replaced

    @property
    def departed(self) -> Change:
        """The state before the change with the change's revision: what watchers get whose selection the object left."""
        if self._departed is None:
            obj = self.replaced.object
            metadata = {**obj["metadata"], "resourceVersion": str(self.change.revision)}
            self._departed = msgspec.structs.replace(self.change, body=_encode({**obj, "metadata": metadata}))
        return self._departed


@dataclass(frozen=True)
class Selection:
    """Objects of one kind: in a namespace or in all (""), of one name or of any (""), and by selectors."""

    resource: str
    namespace: str = ""
    name: str = ""
    options: ListOptions = field(default_factory=ListOptions)

    @property
    def whole(self) -> bool:
        """Whether namespace and name say it all."""
        return self.options.labels is None and self.options.fields is None

    def matches(self, subject: Change) -> bool:
        """Say whether an object in its namespace and of its name is selected; as a list would have it."""
        return self.whole or listing.matches(subject, self.options)

    def covers(self, change: Change) -> bool:
        """Say whether a change is of its kind, in its namespace and of its name."""
        return (
            change.resource == self.resource
            and self.namespace in ("", change.namespace)
            and self.name in ("", change.name)
        )

    def event_of(self, entry: WatchedChange) -> tuple[Verb, Change] | None:
        """Return a covered change as an event of the selection; None when it is none.

        An object that begins to match is ADDED; one that no longer does is
        DELETED, in the state in which it last matched.
        """
        change = entry.change
        if self.whole:
            return change.verb, change
        before = change.verb != "ADDED" and self.matches(entry.replaced)
        if change.verb == "DELETED":
            return ("DELETED", change) if before else None
        if self.matches(change):
            return ("MODIFIED" if before else "ADDED"), change
        return ("DELETED", entry.departed) if before else None


def of(resource: Resource, namespace: str, name: str, options: ListOptions) -> Selection:
    """Return what a request selects; a field selector that asks for one name becomes that name."""
    labels, fields = options.labels, options.fields
    for term in fields.terms if fields is not None else ():
        path, equal, value = term
        if path == "metadata.name" and equal and value and not name:
            name = value
            rest = tuple(each for each in fields.terms if each is not term) if fields is not None else ()
            fields = replace(fields, terms=rest) if fields is not None and rest else None
    watched_namespace = namespace if resource.namespaced else ""
    return Selection(resource.id, watched_namespace, name, ListOptions(labels=labels, fields=fields))
