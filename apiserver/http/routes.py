"""Who answers what the verbs of stored objects do not: other paths, subresources, computed resources, upgrades.

`apiserver.handlers` imports every module that registers here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.responses import Response

from apiserver.http.request import Request
from kube.resources import Resource

Handler = Callable[["Request"], Awaitable[Response]]
Upgrade = Callable[["Request"], Awaitable[None]]


class Path(NamedTuple):
    """A path that names no object, for everybody (`anonymous`), for authenticated users, or for who may get `right`."""

    handler: Handler
    methods: tuple[str, ...]
    anonymous: bool
    right: str = ""


_exact: dict[str, Path] = {}
_prefixes: dict[str, Path] = {}
_subresources: dict[tuple[str, str], Handler] = {}  # by the resource's id, "" for all
_virtual: dict[str, Handler] = {}
_everybody: set[str] = set()
_upgrades: dict[tuple[str, str], Upgrade] = {}


def path(
    where: str,
    *,
    methods: tuple[str, ...] = ("GET", "HEAD"),
    prefix: bool = False,
    anonymous: bool = False,
    right: str = "",
) -> Callable[[Handler], Handler]:
    """Answer a path, with `prefix` also all paths below it."""

    def register(handler: Handler) -> Handler:
        (_prefixes if prefix else _exact)[where] = Path(handler, methods, anonymous, right)
        return handler

    return register


def subresource(resource: Resource | None, name: str) -> Callable[[Handler], Handler]:
    """Answer a subresource of one kind, or with None of every kind that has it. The right was checked before."""

    def register(handler: Handler) -> Handler:
        _subresources[resource.id if resource else "", name] = handler
        return handler

    return register


def virtual(resource: Resource, *, everybody: bool = False) -> Callable[[Handler], Handler]:
    """Answer for a resource that is not stored; `info.verb` says what is asked.

    The right was checked before, unless `everybody` who is authenticated may ask.
    """

    def register(handler: Handler) -> Handler:
        _virtual[resource.id] = handler
        if everybody:
            _everybody.add(resource.id)
        return handler

    return register


def websocket(resource: Resource | None, name: str) -> Callable[[Upgrade], Upgrade]:
    """Take over the upgraded connections of a subresource or verb, of one kind or of all (None); the handler accepts them."""

    def register(handler: Upgrade) -> Upgrade:
        _upgrades[resource.id if resource else "", name] = handler
        return handler

    return register


def listed() -> list[tuple[str, Path]]:
    """Return all paths that name no object, those with everything below them written with `/…`."""
    below = [(f"{where}/…", path) for where, path in _prefixes.items()]
    return sorted((*_exact.items(), *below))


def find_path(where: str) -> Path | None:
    """Return who answers a path that names no object."""
    path = _exact.get(where)
    while path is None and where:
        path = _prefixes.get(where)
        where = where.rpartition("/")[0]
    return path


def find_subresource(resource: Resource, name: str) -> Handler | None:
    """Return who answers a subresource."""
    return _subresources.get((resource.id, name)) or _subresources.get(("", name))


def find_virtual(resource: Resource) -> Handler | None:
    """Return who answers for a resource that is not stored."""
    return _virtual.get(resource.id)


def everybody(resource: Resource) -> bool:
    """Whether every authenticated user may ask for a resource that is not stored."""
    return resource.id in _everybody


def find_websocket(resource: Resource, name: str) -> Upgrade | None:
    """Return who takes over the upgraded connections of a subresource or verb."""
    return _upgrades.get((resource.id, name)) or _upgrades.get(("", name))
