"""Following the log in a process that waits on descriptors.

A nudge wakes it at once when the store has something new; without Redis it polls.
"""

from __future__ import annotations

import select
import selectors
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import redis

from cluster import clock
from cluster.runtime import nudge
from cluster.store import Change, store
from kube.errors import Expired
from kube.resources import Resource

POLL_S = 0.5  # between queries while Redis is away
SAFETY_S = 5.0  # and while it is there: a nudge may be lost
RETRY_S = 1.0
BATCH = 4000  # changes in one query


class Subscription(Protocol):
    """What tells a process that the log has something new."""

    @property
    def is_alive(self) -> bool:
        """Whether a nudge would arrive."""

    def renew(self) -> bool:
        """Subscribe where that is due; return whether the subscription is new."""

    def drain(self) -> None:
        """Take what has come in; that anything came is the message."""

    def close(self) -> None:
        """End the subscription."""


class RedisSubscription:
    """Nudges on a socket that a selector waits on; comes back by itself when Redis does."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._selected: socket.socket | None = None
        self._connection: Any = None  # redis-py leaves its connections untyped
        self._retry_at = 0.0

    @property
    def is_alive(self) -> bool:
        return self._connection is not None

    def renew(self) -> bool:
        """Subscribe where that is due, and register the socket at the selector; return whether the subscription is new."""
        is_new = not self.is_alive and clock.monotonic() >= self._retry_at and self._connect()
        socket = self._connection._sock if self._connection is not None else None
        if socket is not self._selected:
            if self._selected is not None:
                self._selector.unregister(self._selected)
            if socket is not None:
                self._selector.register(socket, selectors.EVENT_READ, self)
            self._selected = socket
        return is_new

    def _connect(self) -> bool:
        self._retry_at = clock.monotonic() + RETRY_S
        connection: Any = nudge.client().connection_pool.make_connection()
        try:
            connection.connect()
            connection.send_command("SUBSCRIBE", nudge.channel())
        except (redis.RedisError, OSError) as error:
            nudge.outage.lasts(error)
            connection.disconnect()
            return False
        nudge.outage.over()
        self._connection = connection
        return True

    def drain(self) -> None:
        if self._connection is None:
            return
        sock = self._connection._sock
        try:
            while select.select([sock], [], [], 0)[0]:
                if not sock.recv(65536):
                    raise ConnectionError
        except OSError:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None


class Listener:
    """Where a process is in the log, and when it must query for more."""

    def __init__(self, kinds: Sequence[Resource], subscription: Subscription) -> None:
        self.position = 0
        self.subscription = subscription
        self._kinds = kinds
        self._read_at = 0.0

    def subscribe(self) -> None:
        """Have nudges wake the process; what was committed before the subscription is queried at once."""
        if self.subscription.renew():
            self.hurry()

    def hear(self) -> None:
        """Take in the nudges; the next `read` queries the store at once."""
        self.subscription.drain()
        self.hurry()
        # A connection that broke is closed by now, and the next file that is opened gets its number.
        self.subscribe()

    def due(self) -> float:
        """Return the monotonic time at which the store must be queried although no nudge came."""
        return self._read_at + (SAFETY_S if self.subscription.is_alive else POLL_S)

    def hurry(self) -> None:
        """Have the next `read` query the store at once."""
        self._read_at = float("-inf")

    def read(self, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        """When a query is due, hand on every change after the position, in order.

        Where history does not reach back to the position, `reload` must read
        the state anew and set the position to that of the state.
        """
        if clock.monotonic() < self.due():
            return
        self._read_at = clock.monotonic()
        try:
            while changes := store.changes(self.position, self._kinds, limit=BATCH):
                for change in changes:
                    apply(change)
                self.position = changes[-1].revision
        except Expired:
            reload()

    def close(self) -> None:
        """End the subscription."""
        self.subscription.close()
