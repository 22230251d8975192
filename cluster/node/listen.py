"""Hearing at once that the store has something new; without Redis, asking it often enough."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any

import redis

from cluster import nudge

if TYPE_CHECKING:
    import socket

POLL_S = 0.5  # how often the store is asked while Redis is away
SAFETY_S = 5.0  # and while it is there: a nudge may be lost
RETRY_S = 1.0


class Listener:
    """A subscription to the store's nudges that comes back by itself when Redis does."""

    def __init__(self) -> None:
        self._connection: Any = None  # redis-py leaves its connections untyped
        self._retry_at = 0.0
        self._asked_at = 0.0

    @property
    def socket(self) -> socket.socket | None:
        """The socket to wait on; None while Redis is away."""
        if self._connection is None and time.monotonic() >= self._retry_at:
            self._connect()
        return None if self._connection is None else self._connection._sock

    def _connect(self) -> None:
        self._retry_at = time.monotonic() + RETRY_S
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

    def due(self) -> float:
        """Return the monotonic time at which the store must be asked although nothing was heard."""
        return self._asked_at + (POLL_S if self._connection is None else SAFETY_S)

    def hurry(self) -> None:
        """Have the store asked at once."""
        self._asked_at = 0.0

    def asked(self) -> None:
        """Note that the store is being asked now."""
        self._asked_at = time.monotonic()

    def close(self) -> None:
        """End the subscription."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
