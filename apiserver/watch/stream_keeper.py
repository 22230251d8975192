"""The keeper of a process's streams: how many there may be, and what ends them.

Looks at all of them a few times a second: whose time is over, who is due a
bookmark, and whose client takes nothing any more. Rights are another keeper's (`http.rights_keeper`).
"""

from __future__ import annotations

import asyncio
import logging
import random
import resource as limits
from collections import Counter

from django.conf import settings

from apiserver.watch.stream import Stream
from cluster import clock
from cluster.access import Actor
from cluster.runtime.room import Room
from kube.errors import TooManyRequests

MAX_STREAMS = 20_000
MAX_OF_ONE = 500  # streams of one name: who leaks watches must not keep others out
SPARE_FILES = 200  # descriptors left for everything that is no watch
LOOK_EVERY_S = 0.25
MANY = 2000  # from as many streams on a look comes once a second
BOOKMARK_EVERY_S = (50.0, 60.0)
SEND_S = 10.0  # a client that takes no piece in this time is stuck
log = logging.getLogger(__name__)
_random = random.SystemRandom()


class Keeper:
    """The streams that run in this process."""

    def __init__(self) -> None:
        self.streams: dict[Stream, None] = {}
        self.sending: dict[Stream, float] = {}
        self.slow = 0  # clients cut off so far
        self.room = Room(settings.QUEUE_MEGABYTES << 20)
        self._names: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None

    def admit(self, actor: Actor) -> None:
        """Raise TooManyRequests when there is no room for one more watch."""
        files = limits.getrlimit(limits.RLIMIT_NOFILE)[0]  # each watch takes one
        most = MAX_STREAMS if files == limits.RLIM_INFINITY else max(1, min(MAX_STREAMS, files - SPARE_FILES))
        if len(self.streams) >= most:
            raise TooManyRequests("The server runs as many watches as it can; try again later.", retry_after_s=5)
        if self._names[actor.name] >= MAX_OF_ONE:
            raise TooManyRequests(
                f'User "{actor.name}" runs {MAX_OF_ONE} watches already; end some of them.', retry_after_s=5
            )

    def add(self, stream: Stream) -> None:
        """Look after a stream from now on."""
        now = clock.monotonic()
        stream.deadline = now + stream.plan.seconds
        stream.bookmark_due = now + _random.uniform(*BOOKMARK_EVERY_S)
        self.streams[stream] = None
        self._names[stream.request.actor.name] += 1
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self._task = asyncio.create_task(self._look_forever())

    def remove(self, stream: Stream) -> None:
        """Let a stream go."""
        self.streams.pop(stream, None)
        self.sending.pop(stream, None)
        name = stream.request.actor.name
        self._names[name] -= 1
        if self._names[name] <= 0:
            del self._names[name]

    def end_all(self) -> None:
        """End every watch cleanly, because the server stops."""
        for stream in list(self.streams):
            stream.end()

    async def _look_forever(self) -> None:
        """Look until no stream is left."""
        while self.streams:
            await asyncio.sleep(LOOK_EVERY_S if len(self.streams) < MANY else 1.0)
            try:
                self._look(clock.monotonic())
            except Exception:
                log.exception("watches could not be looked after")
                await asyncio.sleep(1.0)

    def _look(self, now: float) -> None:
        for stream, since in list(self.sending.items()):
            if now - since > SEND_S:
                self.slow += 1
                stream.cut()
        for stream in list(self.streams):
            if now >= stream.deadline:
                stream.bookmark()
                stream.end()
            elif now >= stream.bookmark_due:
                stream.bookmark_due = now + _random.uniform(*BOOKMARK_EVERY_S)
                stream.bookmark()
