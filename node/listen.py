"""Following the log in a process that waits on descriptors.

It hears at once that the store has something new; without Redis it asks often enough.
"""

from __future__ import annotations

import select
import selectors
from typing import TYPE_CHECKING, Any

import redis

from cluster import clock
from cluster.runtime import nudge
from cluster.store import store
from kube.errors import Expired

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from cluster.store import Change
    from kube.resources import Resource

POLL_S = 0.5  # how often the store is asked while Redis is away
SAFETY_S = 5.0  # and while it is there: a nudge may be lost
RETRY_S = 1.0
BATCH = 4000  # changes in one query


class Listener:
    """Where a process is in the log, and a subscription to nudges that comes back by itself when Redis does."""

    def __init__(self, selector: selectors.BaseSelector, kinds: Sequence[Resource]) -> None:
        self.position = 0
        self._kinds = kinds
        self._selector = selector
        self._selected: socket.socket | None = None
        self._connection: Any = None  # redis-py leaves its connections untyped
        self._retry_at = 0.0
        self._asked_at = 0.0

    @property
    def socket(self) -> socket.socket | None:
        """The socket to wait on; None while Redis is away."""
        if self._connection is None and clock.monotonic() >= self._retry_at:
            self._connect()
        return None if self._connection is None else self._connection._sock

    def _connect(self) -> None:
        self._retry_at = clock.monotonic() + RETRY_S
        connection: Any = nudge.client().connection_pool.make_connection()
        try:
            connection.connect()
            connection.send_command("SUBSCRIBE", nudge.CHANNEL)
        except (redis.RedisError, OSError) as error:
            nudge.outage.lasts(error)
            connection.disconnect()
            return
        nudge.outage.over()
        self._connection = connection
        self._asked_at = 0.0  # what was committed before the subscription was not heard

    def drain(self) -> None:
        """Take what has come in; that anything came is the message."""
        if self._connection is None:
            return
        sock = self._connection._sock
        try:
            while select.select([sock], [], [], 0)[0]:
                if not sock.recv(65536):
                    raise ConnectionError
        except OSError:
            self.close()
        self._asked_at = 0.0
        # A connection that broke is closed by now, and the next file that is opened gets its number.
        self.subscribe()

    def subscribe(self) -> None:
        """Keep the selector on the socket, which changes when Redis goes and comes."""
        socket = self.socket
        if socket is not self._selected:
            if self._selected is not None:
                self._selector.unregister(self._selected)
            if socket is not None:
                self._selector.register(socket, selectors.EVENT_READ, self)
            self._selected = socket

    def due(self) -> float:
        """Return the monotonic time at which the store must be asked although nothing was heard."""
        return self._asked_at + (POLL_S if self._connection is None else SAFETY_S)

    def hurry(self) -> None:
        """Have the store asked at once."""
        self._asked_at = 0.0

    def read(self, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        """When it is time to ask, hand on every change after the position, in order.

        Where history does not reach back to the position, `reload` must read
        the state anew and set the position to that of the state.
        """
        if clock.monotonic() < self.due():
            return
        self._asked_at = clock.monotonic()
        try:
            while changes := store.changes(self.position, self._kinds, limit=BATCH):
                for change in changes:
                    apply(change)
                self.position = changes[-1].revision
        except Expired:
            reload()

    def close(self) -> None:
        """End the subscription."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
