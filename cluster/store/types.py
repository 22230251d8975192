"""What goes into the store and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kube.meta import Object
    from kube.resources import Resource

T = TypeVar("T")
Verb = Literal["ADDED", "MODIFIED", "DELETED"]
Propagation = Literal["Background", "Foreground", "Orphan"]


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def read(body: bytes, kind: type[T]) -> T:
    """Decode body into a struct; unknown fields are ignored."""
    decoder: msgspec.json.Decoder[T] | None = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(body)


_objects: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def decode(body: bytes) -> Object:
    """Return the JSON object in body."""
    return _objects.decode(body)


def key_of(resource: str, namespace: str, name: str) -> str:
    """Return the primary key of an object; namespace is empty for cluster-scoped kinds."""
    return f"{resource}/{namespace}/{name}"


@dataclass(frozen=True)
class Stored:
    """An object as the store holds it. `created` is in epoch milliseconds."""

    resource: str
    namespace: str
    name: str
    uid: str
    revision: int
    created: int
    body: bytes

    @cached_property
    def object(self) -> Object:
        """The decoded JSON, resourceVersion included; treat it as read-only."""
        return decode(self.body)

    @property
    def key(self) -> str:
        """namespace/name, as people and consumers name it."""
        return f"{self.namespace}/{self.name}"

    def read(self, kind: type[T]) -> T:
        """Decode the body into a struct of kube.kinds."""
        return read(self.body, kind)


@dataclass(frozen=True)
class Change:
    """One row of the log. `at` is in epoch milliseconds.

    `previous` is the JSON that the change replaced, for readers that ask for
    it: None for a creation, and where history has forgotten it.
    """

    revision: int
    resource: str
    namespace: str
    name: str
    uid: str
    verb: Verb
    at: int
    body: bytes
    previous: bytes | None = None

    @cached_property
    def object(self) -> Object:
        """The decoded JSON after the change (before it, for DELETED); treat it as read-only."""
        return decode(self.body)

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    def read(self, kind: type[T]) -> T:
        """Decode the body into a struct of kube.kinds."""
        return read(self.body, kind)


@dataclass(frozen=True, slots=True)
class Create:
    """Make a new object. `generateName` is honoured; uid, timestamps and versions are the store's.

    `uid` is for admission alone, which has to write it into the object.
    """

    resource: Resource
    object: Object
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Replace an object. A resourceVersion or uid in it is a precondition.

    With subresource "status" only `status` is taken, and `managed` as the
    managedFields if given, with "finalize" only a namespace's
    `spec.finalizers`; otherwise, for kinds with a status subresource, the
    stored status stays.
    """

    resource: Resource
    object: Object
    subresource: Literal["", "status", "finalize"] = ""
    managed: list[Object] | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """Apply a JSON merge patch (RFC 7396).

    "status" touches only `status`. "binding" places a pod: it may set
    `spec.nodeName` and `status.conditions`, and is a Conflict when the pod
    is bound already or being deleted. `uid` and `revision` are preconditions
    when given.
    """

    resource: Resource
    namespace: str
    name: str
    patch: Object
    subresource: Literal["", "status", "binding"] = ""
    uid: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, gracefully where its kind and finalizers ask for it.

    `grace` in seconds overrides the pod's own; 0 removes it at once.
    `uid` and `revision` are preconditions when given.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    revision: int = 0
    grace: int | None = None
    propagation: Propagation = "Background"


Write = Create | Update | Patch | Delete


@dataclass(frozen=True, slots=True)
class AllBut:
    """All kinds of objects except these, those included that users will add."""

    kinds: tuple[Resource, ...]

    def __contains__(self, id: object) -> bool:  # noqa: A002  it is the attribute's name
        return all(kind.id != id for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class Group:
    """Writes that are done all or not at all; `key` names the group to whoever planned it.

    `check` is called just before the writes, inside the transaction that
    holds the log's lock; with the ApiError that it raises the group fails.
    """

    writes: Sequence[Write]
    key: str = ""
    check: Callable[[], None] | None = None
