"""Live pages end with the session and the rights that opened them: one keeper for all sockets of a process.

Every `LOOK_S` seconds it asks in one step for all of them: does the session
stand, in which scope of rights are topics read now, may the streams go on?
Roles are read anew for it, and a session is at most `sessions.FRESH_S` old, so
whatever is taken away is out within two seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from cluster import access
from cluster.access import Actor
from cluster.runtime.outage import AWAY, Outage
from dashboard.live import sessions
from dashboard.live.streams import Stream, StreamRequest
from kube.errors import ApiError

LOOK_S = 1.0
log = logging.getLogger(__name__)


class SocketRights(NamedTuple):
    """What a socket may do now; `scope` is None and the session ended where that cannot be found out."""

    is_known: bool
    has_session: bool = False
    scope: Hashable = None
    denied: Mapping[str, str] = {}  # why, by the names of streams that must not go on


class Socket(Protocol):
    """A socket, as the keeper sees it."""

    scope: Mapping[str, Any]
    actor: Actor

    def flowing(self) -> Mapping[str, tuple[Stream, StreamRequest]]:
        """Return its streams by name."""

    async def heed(self, standing: SocketRights) -> None:
        """End what it may not go on with."""


class RightsKeeper:
    """Looks after the sockets that entered, in one event loop."""

    def __init__(self, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self._in_thread = in_thread
        self._sockets: set[Socket] = set()
        self._actors: WeakValueDictionary[tuple[object, str], Actor] = WeakValueDictionary()
        self._task: asyncio.Task[None] | None = None
        self._soon = asyncio.Event()
        self._outage = Outage("looking whether live pages may go on", log)

    def actor(self, user: Any) -> Actor:
        """Return the actor of a user, the same for all his sockets: his roles are read once for all of them."""
        return self._actors.setdefault((user.pk, user.get_username()), access.for_user(user))

    def enter(self, socket: Socket) -> None:
        """Look after a socket from now on."""
        self._sockets.add(socket)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_forever())

    def leave(self, socket: Socket) -> None:
        """Let a socket go; with the last one the looking ends."""
        self._sockets.discard(socket)
        if not self._sockets and self._task is not None:
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        """Look at once."""
        self._soon.set()

    async def _look_forever(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), LOOK_S)
            self._soon.clear()
            try:
                await self._look()
                self._outage.over()
            except AWAY as error:
                self._outage.lasts(error)
            except Exception:
                log.exception("live pages could not be looked after")

    async def _look(self) -> None:
        flowing = [(each, each.flowing()) for each in self._sockets]
        found = await self._in_thread(_standings, flowing)
        await asyncio.gather(*(socket.heed(standing) for (socket, _), standing in zip(flowing, found, strict=True)))


def _standings(sockets: Sequence[tuple[Socket, Mapping[str, tuple[Stream, StreamRequest]]]]) -> list[SocketRights]:
    for actor in {socket.actor for socket, _ in sockets}:
        access.renew(actor)
    return [_standing(socket, flowing) for socket, flowing in sockets]


def _standing(socket: Socket, flowing: Mapping[str, tuple[Stream, StreamRequest]]) -> SocketRights:
    try:
        if not sessions.still_valid(socket.scope):
            return SocketRights(is_known=True)
        scope = access.scope(socket.actor)
        return SocketRights(True, True, scope, _denied(flowing))
    except AWAY:
        raise
    except Exception:
        # Whose rights cannot be checked is not served on; the page opens another socket.
        log.exception("live check failed")
        return SocketRights(is_known=False)


def _denied(flowing: Mapping[str, tuple[Stream, StreamRequest]]) -> dict[str, str]:
    denied = {}
    for name, (stream, request) in flowing.items():
        try:
            stream.may(request)
        except ApiError as error:
            denied[name] = error.message
    return denied
