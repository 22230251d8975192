"""Live pages end with the session and the rights that opened them: one keeper for all sockets of a process.

Every `LOOK_S` seconds it checks in one step for all of them whether the session
is valid, in which scope of rights topics are read now, and whether the streams may go on.
Roles are read again for that, and a session's state is cached for at most `sessions.FRESH_S`, so
a right that is taken away ends within two seconds.
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
    """What a socket may do now; if that could not be checked, `has_session` is False and `scope` None."""

    was_checked: bool
    has_session: bool = False
    scope: Hashable = None
    denied: Mapping[str, str] = {}  # the reason by the name of each stream that must not go on


class Socket(Protocol):
    """A socket, as the keeper sees it."""

    scope: Mapping[str, Any]
    actor: Actor

    def open_streams(self) -> Mapping[str, tuple[Stream, StreamRequest]]:
        """Return its streams by name."""

    async def apply_rights(self, rights: SocketRights) -> None:
        """Follow the rights: end what they do not allow any more."""


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
        """Stop looking after a socket; with the last one the task ends."""
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
        sockets = [(each, each.open_streams()) for each in self._sockets]
        checked = await self._in_thread(_check_all, sockets)
        await asyncio.gather(*(socket.apply_rights(each) for (socket, _), each in zip(sockets, checked, strict=True)))


def _check_all(sockets: Sequence[tuple[Socket, Mapping[str, tuple[Stream, StreamRequest]]]]) -> list[SocketRights]:
    for actor in {socket.actor for socket, _ in sockets}:
        access.renew(actor)
    return [_check(socket, open_streams) for socket, open_streams in sockets]


def _check(socket: Socket, open_streams: Mapping[str, tuple[Stream, StreamRequest]]) -> SocketRights:
    try:
        if not sessions.still_valid(socket.scope):
            return SocketRights(was_checked=True)
        scope = access.scope(socket.actor)
        return SocketRights(True, True, scope, _denied(open_streams))
    except AWAY:
        raise
    except Exception:
        # A socket whose rights cannot be checked is closed; its page opens another one.
        log.exception("live check failed")
        return SocketRights(was_checked=False)


def _denied(open_streams: Mapping[str, tuple[Stream, StreamRequest]]) -> dict[str, str]:
    denied = {}
    for name, (stream, request) in open_streams.items():
        try:
            stream.may(request)
        except ApiError as error:
            denied[name] = error.message
    return denied
