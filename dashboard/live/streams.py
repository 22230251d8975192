"""Streams: text that flows to one subscription, such as the log of a pod."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import QueryDict

from cluster.access import Actor


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """The actor who subscribes to a stream, and the parameters."""

    actor: Actor
    params: QueryDict


class Stream(NamedTuple):
    """A registered stream: `may` raises ApiError if the actor may not read it, `items` yields its messages."""

    may: Callable[[StreamRequest], None]
    items: Callable[[StreamRequest], AsyncIterator[Mapping[str, Any]]]


_streams: dict[str, Stream] = {}


def stream(
    name: str, *, may: Callable[[StreamRequest], None]
) -> Callable[[Callable[[StreamRequest], AsyncIterator[Mapping[str, Any]]]], Stream]:
    """Register an asynchronous generator; each mapping that it yields is sent as `{op: "log", id, …}`.

    may runs in a thread before the first item and again while the stream lives.
    The generator waits while the socket is slow, and is closed when the
    subscription ends; its own end is sent as `{op: "log", id, end: true}`.
    """

    def register(items_of: Callable[[StreamRequest], AsyncIterator[Mapping[str, Any]]]) -> Stream:
        _streams[name] = Stream(may, items_of)
        return _streams[name]

    return register


def find(name: str) -> Stream | None:
    """The stream of that name, or None."""
    return _streams.get(name)
