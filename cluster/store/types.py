"""What goes into the store and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import msgspec

from kube.meta import Object
from kube.resources import Resource

T = TypeVar("T")
Verb = Literal["ADDED", "MODIFIED", "DELETED"]


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


class _Versioned(msgspec.Struct):
    """The one field of an object that says which version of it this is."""

    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Body(msgspec.Struct):
    metadata: _Versioned


def _version(body: bytes) -> str:
    return read(body, _Body).metadata.resource_version


def key_of(resource: str, namespace: str, name: str) -> str:
    """Return the primary key of an object; namespace is empty for cluster-scoped kinds."""
    return f"{resource}/{namespace}/{name}"


class Stored(msgspec.Struct, frozen=True, dict=True):
    """An object as the store holds it.

    `revision` is the place of its newest change in this store's log, `version` the resourceVersion that clients see:
    one number on a cluster that is stored here, two on one that is mirrored. `created` is in epoch milliseconds.
    """

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

    @cached_property
    def version(self) -> str:
        """The object's resourceVersion."""
        return _version(self.body)

    @property
    def key(self) -> str:
        """namespace/name, as people and consumers name it."""
        return f"{self.namespace}/{self.name}"

    def read(self, kind: type[T]) -> T:
        """Decode the body into a struct of kube.kinds."""
        return read(self.body, kind)


class Change(msgspec.Struct, frozen=True, dict=True):
    """One row of the log; `revision` is its place there, `version` the object's resourceVersion.

    `at` is in epoch milliseconds.

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

    @cached_property
    def version(self) -> str:
        """The resourceVersion that the object got with the change."""
        return _version(self.body)

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    def read(self, kind: type[T]) -> T:
        """Decode the body into a struct of kube.kinds."""
        return read(self.body, kind)


@dataclass(frozen=True, slots=True)
class Single:
    """One object by its name, where nothing else of its kind is wanted."""

    resource: Resource
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class AllBut:
    """All kinds of objects except these, those included that users will add."""

    kinds: tuple[Resource, ...]

    def __contains__(self, id: object) -> bool:  # noqa: A002  it is the attribute's name
        return all(kind.id != id for kind in self.kinds)
