"""One watch: what there is at its beginning, what was missed since, then what comes.

A stream's queue holds references to bytes that all watchers of the same
share. A client that does not take them is cut off, by the queue's bound or by
a send that takes too long; everybody else goes on as before.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from apiserver import telemetry
from apiserver.http import forms, threads
from apiserver.http.forms import Form
from apiserver.http.request import Request
from apiserver.http.rights_keeper import keeper as rights
from apiserver.watch.channels import Board, Channel, ChannelEvent, Counts, Feed
from apiserver.watch.log_follower import WatchFollower
from apiserver.watch.selection import Selection, WatchedChange
from cluster import clock
from cluster.runtime.room import Room
from cluster.store import log as history
from kube.errors import ApiError
from kube.resources import Resource

QUEUE_BYTES = 4 << 20
QUEUE_COUNT = 2000  # passes; at the follower's fastest that is 20 s
PIECE = 64 << 10  # bytes in one send: what the server's buffer for a client grows by at most
STEP_BYTES = 256 << 10  # of JSON that is read in one step; the client takes it before there is another
OBJECTS = 100  # of the initial state in one step
SPAN = 5000  # revisions of the past in one step
REPLAYED = 200  # changes of the past in one step


class Plan(NamedTuple):
    """How a watch begins and ends. `objects` are the revisions of its initial state, None without one."""

    selection: Selection
    resource: Resource
    form: Form
    after: int
    objects: array[int] | None
    initial_end: bool  # whether a bookmark ends the initial state
    bookmarks: bool
    seconds: float


class Sink(Protocol):
    """The client's end."""

    async def open(self) -> None: ...
    async def send(self, lines: bytes) -> None: ...
    async def close(self) -> None: ...
    def attach(self, stream: Stream) -> None:
        """Tell the stream when the client goes (`lost`) or the server stops (`end`)."""

    def detach(self) -> None: ...
    def abort(self) -> bool:
        """Close the connection at once, with what is not sent yet; False when that is not possible here."""


class Keeper(Protocol):
    """Who knows all streams of the process (`stream_keeper`), as far as a stream knows it."""

    slow: int  # streams that were cut because their client took too little
    room: Room  # for what waits for all of them
    sending: dict[Stream, float]  # since when each waits for its client, in monotonic seconds

    def add(self, stream: Stream) -> None:
        """Take a stream in; TooManyRequests when there are too many."""

    def remove(self, stream: Stream) -> None:
        """Let a stream go."""


class Stream:
    """A watch while it runs. Everything but `run` returns at once."""

    __slots__ = (
        "_cut", "_ending", "_feed", "_queue", "_queued", "_shelf", "_sink", "_task", "_waiter",
        "board", "bookmark_due", "deadline", "follower", "fresh", "keeper", "plan", "request",
    )  # fmt: skip

    def __init__(self, plan: Plan, request: Request, follower: WatchFollower, board: Board, keeper: Keeper) -> None:
        self.plan = plan
        self.request = request
        self.follower = follower
        self.board = board
        self.keeper = keeper
        self.fresh = True
        self.deadline = self.bookmark_due = 0.0
        self._feed: Feed | None = None
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._ending = self._cut = False
        self._waiter: asyncio.Future[None] | None = None
        self._shelf = keeper.room.shelf(request.actor.name, self._too_slow)
        self._sink: Sink | None = None
        self._task: asyncio.Task[None] | None = None

    # What others do to it.

    def put(self, chunk: bytes) -> None:
        """Queue lines; a queue that would grow past its bound cuts the client off."""
        if self._ending or self._cut:
            return
        self.fresh = False
        self._queue.append(chunk)
        self._queued += len(chunk)
        # A chunk larger than the bound is no fault of the client's while it is the only one.
        if len(self._queue) > QUEUE_COUNT or (self._queued > QUEUE_BYTES and len(self._queue) > 1):
            self._too_slow()
        else:
            self._shelf.put(chunk)
        self._wake()

    def fail(self, error: ApiError) -> None:
        """Send an ERROR event and end (§4.3)."""
        self.put(error_line(error))
        self.end()

    def end(self) -> None:
        """End cleanly, after what is queued."""
        self._ending = True
        self._wake()

    def bookmark(self) -> None:
        """Send a bookmark, if the client wants any and has got all of the past."""
        if self._feed is not None and self.plan.bookmarks:
            self.put(self._feed.bookmark(self.follower.position, clock.milliseconds(), first=self.fresh))

    def cut(self) -> None:
        """End at once and close the connection, whatever is still queued."""
        if self._cut:
            return
        # First the connection, so that the server knows of it before this stream is seen to end.
        aborted = self._sink is not None and self._sink.abort()
        self.lost()
        if not aborted and self._task is not None:
            self._task.cancel()

    def _too_slow(self) -> None:
        self.keeper.slow += 1
        self.cut()

    def lost(self) -> None:
        """Note that the client has gone."""
        self._cut = True
        self._queue, self._queued = deque(), 0
        self._shelf.clear()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What it does itself.

    async def run(self, sink: Sink) -> None:
        """Send until the client goes, the time is over, or something ends it."""
        self._sink, self._task = sink, asyncio.current_task()
        self.keeper.add(self)
        sink.attach(self)
        try:
            with telemetry.watching(self.plan.resource.id), rights.holding(self.request, self.end):
                await sink.open()
                async with self.follower.following(self.plan.resource):
                    try:
                        await self._send_initial()
                        await self._catch_up()
                    except ApiError as error:
                        self.fail(error)
                    await self._flow()
                if not self._cut:
                    await sink.close()
        finally:
            self._cut = True
            sink.detach()
            self._shelf.close()
            self.keeper.remove(self)
            if self._feed is not None:
                self.board.leave(self, self.plan.selection, self._feed)
            self._sink = self._task = self._feed = None

    async def _flow(self) -> None:
        while not self._cut:
            if self._queue:
                # What goes into one send; a chunk that is larger by itself needs no copy, as the others' does.
                chunks = [self._queue.popleft()]
                size = len(chunks[0])
                while self._queue and size + len(self._queue[0]) <= PIECE:
                    chunks.append(self._queue.popleft())
                    size += len(chunks[-1])
                self._queued -= size
                await self._send(chunks[0] if len(chunks) == 1 else b"".join(chunks))
                for chunk in chunks:
                    self._shelf.remove(chunk)
            elif self._ending:
                return
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
                self._waiter = None

    async def _send(self, lines: bytes) -> None:
        for start in range(0, len(lines), PIECE):
            if self._cut:
                return
            self.keeper.sending[self] = clock.monotonic()
            assert self._sink is not None  # noqa: S101  set as long as it runs
            await self._sink.send(lines[start : start + PIECE] if len(lines) > PIECE else lines)
            self.keeper.sending.pop(self, None)

    async def _send_initial(self) -> None:
        objects = self.plan.objects
        if objects is None:
            return
        start = 0
        while start < len(objects):
            if self._cut or self._ending:
                return
            lines, count = await threads.read(self._initial, objects[start : start + OBJECTS])
            start += count
            await self._send_first(lines)
        if self.plan.initial_end:
            feed = self._new_channel().feed(self.plan.resource, self.plan.form)
            await self._send_first(feed.bookmark(self.plan.after, clock.milliseconds(), initial=True, first=self.fresh))

    async def _send_first(self, lines: bytes) -> None:
        if lines:
            self.fresh = False
            self._shelf.put(lines)
            await self._send(lines)
            self._shelf.remove(lines)

    async def _catch_up(self) -> None:
        """Send what came after the beginning, from the log as long as memory does not reach back so far; then join."""
        after = self.plan.after
        await self.follower.reach(after)
        while not (self._cut or self._ending or self._join(after)):
            lines, after = await threads.read(self._replay, after, self.follower.position)
            await self._send_first(lines)

    def _join(self, after: int) -> bool:
        """Take what memory holds after a revision and all that follows: no change lies between."""
        entries = self.follower.window.since(self.plan.resource.id, after)
        if entries is None:
            return False
        events = self._covered_events(entries)
        self._feed = self.board.join(self, self.plan.selection, self.plan.resource, self.plan.form)
        if events:
            self.put(self._feed.lines(events, clock.milliseconds(), first=self.fresh))
        for entry in entries:
            entry.release()
        return True

    # In a reader's thread.

    def _initial(self, revisions: Sequence[int]) -> tuple[bytes, int]:
        """Return the lines of the first of these revisions, and how many they are: of what is large there are few."""
        plan, now, first, lines = self.plan, clock.milliseconds(), self.fresh, []
        count = history.fitting(revisions, STEP_BYTES)
        for change in history.at(revisions[:count]):
            if plan.selection.matches(change):
                lines.append(forms.event(plan.form, plan.resource, "ADDED", change, now, first=first))
                first = False
        return b"".join(lines), count

    def _replay(self, after: int, position: int) -> tuple[bytes, int]:
        """Return the lines of the next piece of the past and the revision up to which it goes."""
        kinds, until = (self.plan.resource,), min(after + SPAN, position)
        until = history.reach(after, kinds, limit=REPLAYED, until=until, most_bytes=STEP_BYTES)
        changes = history.after(after, kinds, until=until, limit=REPLAYED, previous=True)
        events = self._covered_events([WatchedChange(change) for change in changes])
        reached = changes[-1].revision if len(changes) == REPLAYED else until
        if not events:
            return b"", reached
        feed = self._new_channel().feed(self.plan.resource, self.plan.form)
        return feed.lines(events, clock.milliseconds(), first=self.fresh), reached

    def _covered_events(self, entries: Sequence[WatchedChange]) -> list[ChannelEvent]:
        selection = self.plan.selection
        return self._new_channel().events_of(entry for entry in entries if selection.covers(entry.change))

    def _new_channel(self) -> Channel:
        """A channel of its own: what it writes of the past is nobody else's."""
        return Channel(self.plan.selection, Counts())


def error_line(error: ApiError) -> bytes:
    """Return the event that ends a watch: a Status, in every form."""
    return msgspec.json.encode({"type": "ERROR", "object": error.status()}) + b"\n"
