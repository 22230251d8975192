"""Telling listeners that there is something to read. A lost nudge costs at most a second.

After each commit the new revision is published on `channel`, for the web process's live hub and for node agents, and
every consumer that reads one of the touched kinds gets a Celery task, unless one is queued already. Nothing here may
fail a write: without Redis the nudge is dropped, and readers poll.

Installations may share a Redis: every name there begins with `REDIS_PREFIX`,
Celery's too, so none wakes another or runs what is meant for it.

A `Carrier` takes nudges from process to process; it is Redis with Celery, unless another one is handed in.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import redis
import redis.asyncio
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from cluster.runtime import registry
from cluster.runtime.outage import Outage
from cluster.runtime.registry import Registration

# Between two nudges of a server under load. Each costs every interested consumer a transaction, which the
# server's own writes would wait for.
PAUSE_S = 0.03
NEWEST = 1 << 63  # stands for "something may have been missed"
QUEUED_MS = 2000  # how long a queued task keeps others from being queued, should it get lost
log = logging.getLogger(__name__)
outage = Outage("announcing commits through Redis", log)
_running: ContextVar[frozenset[str]] = ContextVar("running", default=frozenset())


UNREACHABLE = (redis.RedisError, OperationalError, OSError)  # what a carrier raises that cannot be reached


class Carrier(Protocol):
    """What takes nudges from process to process; it raises one of UNREACHABLE when it cannot."""

    def publish(self, revision: int) -> None:
        """Tell all who follow the log of a revision."""

    def claim(self, cursor: str) -> bool:
        """Mark a consumer's shard as queued, for QUEUED_MS at most; False when it is marked already."""

    def release(self, cursor: str) -> None:
        """Take the mark off."""

    def queue(self, registration: Registration, shard: int, delay_s: float) -> None:
        """Have a consumer's shard run, after a delay."""

    async def subscribe(self, callback: Callable[[int], None]) -> None:
        """Call `callback` with each revision that is published, and with NEWEST at the start."""


def channel() -> str:
    """Return the name of this installation's channel of revisions."""
    return f"{settings.REDIS_PREFIX}revisions"


@functools.cache
def client() -> redis.Redis:
    """Return this process's Redis client; it answers or fails within a second."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)


class RedisCarrier:
    """Redis for revisions and marks, Celery's queues for runs."""

    def publish(self, revision: int) -> None:
        """Publish a revision on the installation's channel."""
        client().publish(channel(), revision)

    def claim(self, cursor: str) -> bool:
        """Set the mark of a shard, which goes by itself should the queued task get lost."""
        return bool(client().set(_mark(cursor), 1, nx=True, px=QUEUED_MS))

    def release(self, cursor: str) -> None:
        """Delete the mark of a shard."""
        client().delete(_mark(cursor))

    def queue(self, registration: Registration, shard: int, delay_s: float) -> None:
        """Send the task that runs a shard."""
        current_app.send_task(
            "cluster.tasks.consume",
            (registration.name, shard),
            queue=registration.queue_of(shard),
            countdown=delay_s or None,
            ignore_result=True,
            retry=False,
        )

    async def subscribe(self, callback: Callable[[int], None]) -> None:
        """Subscribe to the installation's channel and listen until Redis goes away."""
        async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as listener, listener.pubsub() as subscription:
            await subscription.subscribe(channel())
            async for message in subscription.listen():
                # The first confirms the subscription: what was announced before it was missed.
                if message["type"] != "message":
                    outage.over()
                    callback(NEWEST)
                    continue
                try:
                    revision = int(message["data"])
                except (TypeError, ValueError):
                    revision = NEWEST  # which cannot be read
                callback(revision)


def _mark(cursor: str) -> str:
    return f"{settings.REDIS_PREFIX}queued:{cursor}"


_carrier: Carrier = RedisCarrier()


def use(carrier: Carrier) -> Carrier:
    """Send and receive nudges by this carrier from now on; return the one before."""
    global _carrier
    before, _carrier = _carrier, carrier
    return before


class Announcer:
    """Sends nudges from a thread of its own, so that no writer waits for Redis.

    The first goes out at once; what is committed while it is sent, and within `PAUSE_S` after it, makes up the next.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._touched: frozenset[str] = frozenset()
        self._revision = 0
        threading.Thread(target=self._run, name="nudge", daemon=True).start()

    def note(self, touched: frozenset[str], revision: int) -> None:
        """Have a revision announced soon."""
        with self._lock:
            self._touched |= touched
            self._revision = max(self._revision, revision)
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                touched, self._touched = self._touched, frozenset()
                revision = self._revision
            try:
                _announce(touched, revision)
            except Exception:
                log.exception("nudge failed")
            time.sleep(PAUSE_S)


_announcer: Announcer | None = None


def from_a_thread() -> None:
    """Send this process's nudges from a thread of their own; for servers, whose clients wait for each write."""
    global _announcer
    _announcer = _announcer or Announcer()


def send(touched: frozenset[str], revision: int) -> None:
    """Announce a revision that touched these resource ids."""
    if _announcer is not None:
        _announcer.note(touched, revision)
    else:
        _announce(touched, revision)


def _announce(touched: frozenset[str], revision: int) -> None:
    try:
        _carrier.publish(revision)
        for registration in registry.interested(touched):
            for shard, cursor in enumerate(registration.cursors):
                if cursor not in _running.get() and _carrier.claim(cursor):
                    _carrier.queue(registration, shard, 0)
    except UNREACHABLE as error:
        outage.lasts(error)
    else:
        outage.over()


async def listen(callback: Callable[[int], None]) -> None:
    """Call `callback` with each revision that is announced, and with NEWEST at the start; return when Redis is away."""
    try:
        await _carrier.subscribe(callback)
    except UNREACHABLE as error:
        outage.lasts(error)


def wake(registration: Registration, shard: int, *, delay_s: float = 0) -> None:
    """Ask for one run of a consumer's shard; where that cannot be asked, a tick will find it."""
    try:
        _carrier.queue(registration, shard, delay_s)
    except UNREACHABLE as error:
        outage.lasts(error)


def started(cursor: str) -> None:
    """Note that a queued run begins: what is committed from here on needs another."""
    try:
        _carrier.release(cursor)
    except UNREACHABLE as error:
        log.debug("queued mark kept: %s", error)


@contextmanager
def running(cursor: str) -> Iterator[None]:
    """While a consumer loops until nothing is new, its own writes need not wake it."""
    token = _running.set(_running.get() | {cursor})
    try:
        yield
    finally:
        _running.reset(token)
