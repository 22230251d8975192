"""Following the logs of one pod or of many together over the page's socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any

from channels.db import database_sync_to_async

from cluster import clock
from cluster.access import Actor
from cluster.api import backend
from cluster.backend import Line, LogExtent, NoLog
from cluster.store import store
from dashboard import live
from dashboard.live import StreamRequest
from jobs.lifecycle.reading import Pod
from jobs.logs import merge
from jobs.logs.merge import Entry, Log
from jobs.logs.text import PrintedLine, Run, written
from jobs.pages.logs import pods, window
from jobs.pages.logs.pods import Absent, LogPod, LogQuery
from jobs.pages.logs.window import Limits, Mark, log_of
from kube.meta import now_text, parse_time
from kube.resources import PODS

MAX_PODS = 200  # followed together
START = "start"  # names the first line that is kept
TAIL = Limits(10_000, 4 * 1024 * 1024)
AROUND = Limits(2_000, 2 * 1024 * 1024)
LOOK_AGAIN_S = 0.25
WAIT_AGAIN_S = 1.0  # while there is no log
AT_REST_S = 3.0  # when all pods have ended, and others may come
PODS_AGAIN_S = 1.0  # how often the pods themselves are looked up
LOOK_BYTES = 2 * 1024 * 1024  # of all logs at one poll
LEAST_BYTES = 32 * 1024  # of one log
MAX_UNDER_WAY = 2 * MAX_PODS  # lines that a reader who reconnects may name
LATE_MS = 5000  # output reaches the disk within that time


class Followed:
    """The pods that one reader follows; those of a living run are looked up again meanwhile."""

    def __init__(self, actor: Actor, query: LogQuery) -> None:
        self._actor = actor
        self._query = query
        detail = pods.of_job(actor, query) if query.is_together else None
        chosen = pods.chosen(actor, query, detail)
        self.total = len(chosen)
        self.by_uid = {pod.uid: pod for pod in chosen[:MAX_PODS]}
        self._others = {pod.uid for pod in chosen[MAX_PODS:]}  # known, and not followed
        # The same in every window, so that sender and recipient of a link see the same colours.
        ordered = sorted(self.by_uid.values(), key=lambda each: (each.pod.task, each.pod.index, each.name))
        self.ranks = {pod.uid: rank for rank, pod in enumerate(ordered)}
        self.may_grow = detail is not None and detail.shows_living  # whether more pods may come
        self._owner = detail.stored.uid if detail is not None else ""
        self._looked = clock.monotonic()
        self._revision = store.revision()

    @property
    def are_over(self) -> bool:
        """Whether none of the known pods will write any more."""
        return all(pod.is_over for pod in self.by_uid.values())

    def refresh(self) -> None:
        """Look up which pods have come, ended and gone, if it is time to and the store has changed."""
        now = clock.monotonic()
        if now - self._looked < PODS_AGAIN_S or (self.are_over and not self.may_grow):
            return
        self._looked = now
        pods.require(self._actor, self._query.namespace, self._query.pod)
        revision = store.revision()
        if revision == self._revision:
            return
        self._revision = revision
        where: dict[str, Any] = {"owner": self._owner} if self.may_grow else {"uid": list(self.by_uid)}
        keys = store.names(PODS, namespace=self._query.namespace, **where)
        phases = store.phases(PODS, namespace=self._query.namespace, **where)
        stale = []
        for uid, key in keys.items():
            followed = self.by_uid.get(uid)
            if followed is None:
                is_stale = uid not in self._others
            else:
                phase = phases.get(key.partition("/")[2], "")
                is_stale = followed.pod.status.phase != phase or not followed.pod.spec.node_name
            if is_stale:
                stale.append(key)
        for stored in store.by_keys(PODS, stale).values():
            self._take(stored.uid, stored.read(Pod))
        for uid, pod in self.by_uid.items():
            if uid not in keys and not pod.is_gone:
                self.by_uid[uid] = LogPod(pod.pod, is_gone=True)

    def _take(self, uid: str, pod: Pod) -> None:
        if uid not in self.by_uid:
            is_ours = self._query.includes(pod)
            self.total += is_ours
            if not is_ours or len(self.by_uid) >= MAX_PODS:
                self._others.add(uid)
                return
        self.by_uid[uid] = LogPod(pod, is_gone=False)
        self.ranks.setdefault(uid, len(self.ranks))


class UnderWay:
    """A line that is not ended: its displayed runs, and those sent."""

    def __init__(self, number: int, first: Line) -> None:
        self._line = PrintedLine()
        self._head = number, first.time, first.stream
        self._sent: list[Run] = []
        self._offset = self._last = first.offset
        self._is_whole = False

    def feed(self, piece: Line) -> None:
        """Add a piece of the line."""
        self._line.feed(piece.data, whole=piece.whole)
        self._last, self._is_whole = piece.offset, piece.whole

    def unsent(self) -> list[Any]:
        """Return the line for a message: its new runs, and how many of the sent ones stay before them."""
        runs = self._line.runs()
        pairs = enumerate(zip(runs, self._sent, strict=False))
        keep = next((at for at, (one, other) in pairs if one != other), min(len(runs), len(self._sent)))
        self._sent = runs
        new_runs = runs[keep:] if keep else written(runs)
        return [*self._head, new_runs, self._is_whole, self._offset, self._last, keep, self._line.states]


class Reader:
    """One reader's position in the logs they follow."""

    def __init__(self, actor: Actor, params: Mapping[str, str]) -> None:
        self.actor = actor
        self._nodes = backend.nodes_for(actor)
        self.query = LogQuery.read(params.get("namespace", ""), params.get("job", ""), params)
        self.line = params.get("line") or ""
        self.mark = Mark.read("" if self.line == START else self.line)
        self.since = ""  # the time from which a reader who reconnects gets lines again, as logs write it
        if since := params.get("since"):
            with suppress(ValueError):
                self.since = now_text(parse_time(since) - LATE_MS)
        open_ = (params.get("open") or "").split(",")[:MAX_UNDER_WAY] if self.since else []
        self.open = [mark for text in open_ if (mark := Mark.read(text))]
        self.followed = Followed(actor, self.query)
        self.offsets: dict[Log, int] = {}
        self.has_begun = False
        self.is_done = False
        self.is_behind = False  # whether a poll left lines for the next
        self._numbers: dict[Log, int] = {}
        self._under_way: dict[tuple[Log, str], UnderWay] = {}
        self._state: object = None  # what `_absent` was made from
        self._absent: list[Absent] = []
        self._total = -1

    @property
    def rests(self) -> bool:
        """Whether nothing more will come from the known pods."""
        return self.followed.are_over

    def poll(self) -> dict[str, Any] | None:
        """Return what is new, None if nothing is."""
        self.followed.refresh()
        self._nodes = backend.nodes_for(self.actor)
        stored = self._nodes.log_extents({uid: pod.node for uid, pod in self.followed.by_uid.items()})
        extents = [one for one in stored if self.query.wants(one)]
        message = self._more(extents) if self.has_begun else self._first(extents)
        message |= self._about(extents)
        if self.rests and not self.followed.may_grow and not message.get("lines"):
            # There may be more to read once a node that is away is back.
            present = {each.uid for each in extents}
            lacking = {pod.node for uid, pod in self.followed.by_uid.items() if uid not in present}
            self.is_done = not any(self._nodes.away(node) for node in lacking)
        return message or None

    def _first(self, extents: list[LogExtent]) -> dict[str, Any]:
        note = ""
        if self.line == START:
            start = window.head(self._nodes, extents, AROUND)
        elif self.mark is None:
            start = window.tail(self._nodes, extents, TAIL, self.since)
        elif (around := window.around(self._nodes, extents, self.mark, AROUND)) is not None:
            start = around
        else:
            start = window.tail(self._nodes, extents, TAIL)
            note = "The line of the link is not kept any more. These are the last lines."
        self.has_begun, self.offsets = True, start.offsets
        # Lines that had not ended when the reader lost the connection, from their beginning.
        theirs = {log_of(each) for each in extents}
        again = [entry for mark in self.open if mark.log in theirs for entry in self._pieces(mark)]
        resent = {(log, line.offset) for log, line in again}
        self.is_done = start.has_more
        return {
            "first": True,
            "before": start.before,
            "lost": start.lost,
            "cut": start.is_cut,
            "more": start.has_more,
            "note": note,
            **self._lines([*again, *(each for each in start.entries if (each.log, each.line.offset) not in resent)]),
        }

    def _pieces(self, mark: Mark) -> Iterator[Entry[Line]]:
        try:
            chunk = self._nodes.read_log(*mark.log, since_offset=mark.offset, most=LOOK_BYTES)
        except NoLog:  # removed meanwhile
            return
        if not chunk.lines or chunk.lines[0].offset != mark.offset:
            return
        for piece in chunk.lines:
            if piece.stream == chunk.lines[0].stream and piece.offset < self.offsets.get(mark.log, 0):
                yield Entry(mark.log, piece)
                if piece.whole:
                    return

    def _more(self, extents: list[LogExtent]) -> dict[str, Any]:
        grown = [each for each in extents if each.end > self.offsets.get(log_of(each), 0)]
        share = max(LEAST_BYTES, LOOK_BYTES // max(1, len(grown)))
        lost, sequences = 0, []
        self.is_behind = False
        for extent in grown:
            log = log_of(extent)
            try:
                chunk = self._nodes.read_log(*log, since_offset=self.offsets.get(log, 0), most=share)
            except NoLog:  # removed meanwhile
                continue
            # An incomplete entry at the end of an ended attempt is never completed.
            self.offsets[log] = chunk.next if chunk.lines or not extent.ended else extent.end
            self.is_behind |= bool(chunk.lines) and chunk.next < extent.end
            sequences.append([Entry(log, line) for line in chunk.lines])
            lost += chunk.skipped
        if not any(sequences) and not lost:
            return {}
        return {"lost": lost, **self._lines(list(merge.oldest_first(sequences)))}

    def _lines(self, entries: list[Entry[Line]]) -> dict[str, Any]:
        logs: dict[int, list[Any]] = {}
        lines: list[UnderWay] = []
        listed: set[tuple[Log, str]] = set()
        for log, line in entries:
            number = self._numbers.get(log)
            if number is None:
                number = self._numbers[log] = len(self._numbers)
                pod = self.followed.by_uid[log.uid]
                logs[number] = [pod.name, *log, len(pod.containers) == 1, self.followed.ranks[log.uid]]
            key = log, line.stream
            if key not in self._under_way:
                self._under_way[key] = UnderWay(number, line)
            if key not in listed:  # pieces of one line in a poll are sent as one
                listed.add(key)
                lines.append(self._under_way[key])
            self._under_way[key].feed(line)
            if line.whole:
                listed.discard(key)
                del self._under_way[key]
        until = {"until": max(entry.line.time for entry in entries)} if entries else {}
        return {"lines": [each.unsent() for each in lines], **until, **({"logs": logs} if logs else {})}

    def _about(self, extents: list[LogExtent]) -> dict[str, Any]:
        """Return how many pods there are and which have no log, if that changed."""
        changes: dict[str, Any] = {}
        followed = self.followed
        state = {each.uid for each in extents}, [*followed.by_uid.values()]
        if state != self._state:
            self._state = state
            absent = pods.absent(self.actor, self.query, state[1], state[0])
            if absent != self._absent:
                changes["absent"] = self._absent = absent
        if followed.total != self._total:
            self._total = followed.total
            changes["pods"] = [len(followed.by_uid), followed.total]
        return changes


def may(request: StreamRequest) -> None:
    """Raise Forbidden unless the reader may read these logs."""
    query = LogQuery.read(request.params.get("namespace", ""), request.params.get("job", ""), request.params)
    pods.require(request.actor, query.namespace, query.pod)


@live.stream("logs", may=may)
async def logs(request: StreamRequest) -> AsyncIterator[Mapping[str, Any]]:
    """Follow logs: yield their lines in order of time as they come, or why there are none.

    Parameters: namespace, job, of (the job's uid), run, pod (a name, `task/NAME` for all pods of a task, `*` for all),
    uid (of a single pod), container (none: all), attempt (none: all that are kept), line (`UID.CONTAINER.ATTEMPT.OFFSET`:
    begin around it, or `start`), since (the time of the last line that a reconnecting reader has; some lines are sent twice)
    and open (the lines that had not ended then, named as by `line`, separated by commas; they are sent from their beginning).

    Each message: lines [[log, time, stream, shown, whole, offset, last, keep, states]], until (their last time), logs {log: [pod, uid, container,
    attempt, whether it is the only container, rank of the pod among them]} that are new.
    shown is a line's text, or a list of runs [text, classes, link], of which trailing items may be left out; a line that goes on is
    sent again under the same log and stream, with what follows the first `keep` of its runs. offset is where the line begins, last
    where its last piece begins, states how often it was overwritten.
    The first message also has: before (bytes that are not shown, null if not counted), lost (bytes that were dropped by
    rotation), cut (not all lines since `since` are sent), more (later lines are not sent). When they change: pods
    [followed, all], absent [[reason, [pod]]].
    """
    reader = await database_sync_to_async(Reader)(request.actor, request.params)
    # Files answer at once. Another cluster may not, and must not block the one thread for others.
    poll = database_sync_to_async(reader.poll, thread_sensitive=backend.nodes.answer_at_once)
    while not reader.is_done:
        message = await poll()
        if message:
            yield message
        if not reader.is_done and not reader.is_behind:
            await asyncio.sleep(_pause(reader, message or {}))


def _pause(reader: Reader, message: Mapping[str, Any]) -> float:
    if message.get("lines"):
        return LOOK_AGAIN_S
    if reader.rests:
        return AT_REST_S
    return LOOK_AGAIN_S if reader.offsets else WAIT_AGAIN_S
