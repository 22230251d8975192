"""Logs of a job's pods: which there are, following one over the socket, and downloading it whole.

A log is found by the pod's uid. The uid comes from the browser, so it counts only where the store, the
change log or the record of a job knows a pod with that uid and name in a namespace whose logs the reader may see.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from channels.db import database_sync_to_async
from django.http import HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access
from cluster.api import backend
from cluster.backend import LogChunk, NoLog
from cluster.store import store
from dashboard import live
from jobs.pages import past
from jobs.pages.detail import Detail
from kube.errors import NotFound
from kube.kinds.pod import ENDED
from kube.resources import JOBS, PODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from cluster.access import Actor
    from dashboard.live import StreamRequest
    from kube.meta import Object

MOST_PODS = 1000  # names that the box of pods offers
TAIL_LINES = 10_000
PAGE_LINES = 300  # what a page without JavaScript shows, of at most
PAGE_BYTES = 256 * 1024
LOOK_AGAIN_S = 0.25
WAIT_AGAIN_S = 1.0
_UID = re.compile(r"[0-9A-Za-z-]{1,64}\Z")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# What a terminal would act upon is shown as a picture of it.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}


@dataclass(frozen=True)
class Source:
    """One container of one pod, living or gone."""

    namespace: str
    name: str
    uid: str
    pod: Object
    container: str
    is_gone: bool

    @classmethod
    def of(cls, actor: Actor, params: Mapping[str, str]) -> Source:
        """Find the pod that params name by namespace, pod, uid and its job's uid (`of`); Forbidden or NotFound says why not."""
        namespace, name, uid = params.get("namespace", ""), params.get("pod", ""), params.get("uid", "")
        access.require(actor, "get", f"{PODS.id}/log", namespace, name)
        pod, is_gone = _pod(namespace, name, uid, params.get("of", ""))
        containers = [each.get("name", "") for each in pod["spec"].get("containers") or ()]
        container = params.get("container") or (containers[0] if containers else "")
        starting = [each.get("name", "") for each in pod["spec"].get("initContainers") or ()]
        if container not in (*containers, *starting):
            raise NotFound(f"The pod {name} has no container of that name; it has {', '.join(containers)}.")
        return cls(namespace, name, pod["metadata"]["uid"], pod, container, is_gone)

    @cached_property
    def containers(self) -> list[str]:
        return [each.get("name", "") for each in self.pod["spec"].get("containers") or ()]

    @property
    def attempts(self) -> list[int]:
        """The attempts of the container that have a log."""
        return backend.nodes.log_attempts(self.uid, self.container)

    @property
    def is_over(self) -> bool:
        """Whether nothing will be written any more."""
        return self.is_gone or (self.pod.get("status") or {}).get("phase") in ENDED

    def why_absent(self) -> str:
        """Say why there is no log."""
        if self.is_gone:
            return "The pod is gone, and its log has been removed."
        said = backend.nodes.why_no_log(self.pod)
        if (self.pod.get("spec") or {}).get("nodeName"):
            return said
        why = _why_job_waits(self.pod)
        return f"This pod waits for a node, so there is no output yet. {why}" if why else said


def _pod(namespace: str, name: str, uid: str, job_uid: str) -> tuple[Object, bool]:
    found = store.find(PODS, namespace=namespace, name=name, limit=1)
    if found and uid in ("", found[0].uid):
        return found[0].object, False
    if uid and _UID.match(uid):
        for change in store.history(PODS, namespace, name, limit=500):
            if change.uid == uid:
                return change.object, True
        if (told := past.pod(namespace, name, uid, job_uid)) is not None:
            return told, True
    raise NotFound(f"There is no pod {name} in the namespace {namespace}, and no record of one.")


def _why_job_waits(pod: Object) -> str:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == JOBS.kind:
            jobs = store.find(JOBS, namespace=pod["metadata"]["namespace"], name=owner["name"], limit=1)
            return Detail(jobs[0]).reasons[0] if jobs else ""
    return ""


@dataclass(frozen=True)
class Choice:
    """What the log tab shows: which pods there are, which is chosen, and the end of its log."""

    pods: list[str]
    source: Source | None
    runs: list[tuple[str, int]]
    attempt: int | None
    text: str
    why: str
    download: str


def choose(shown: Detail, params: Mapping[str, str]) -> Choice:
    """Return what the log tab shows; without a choice the first pod that failed, or runs, or is."""
    names = list(_uids(shown))[:MOST_PODS]
    wanted = params.get("pod") or _interesting(shown)
    if not wanted:
        return Choice(
            names,
            None,
            [],
            None,
            "",
            shown.reasons[0] or "The job has no pods yet, so there is no output.",
            "",
        )
    if wanted not in names:
        names = [wanted, *names]
    try:
        source = _source(shown, params, wanted)
    except NotFound as error:
        return Choice(names, None, [], None, "", error.message, "")
    attempt = _number(params.get("attempt", ""))
    text, why = _end_of(source, attempt)
    runs = _runs(source) if shown.shows_living else []
    return Choice(names, source, runs, attempt, text, why, _download_url(shown, source, attempt))


def pods_html(shown: Detail) -> str:
    """Return the job's pods by name and uid as a part of the page, and the one to begin with."""
    pods = dict(list(_uids(shown).items())[:MOST_PODS])
    context = {"pods": json.dumps(pods, separators=(",", ":")), "first": _interesting(shown)}
    return render_to_string("jobs/_log_pods.html", context)


def _source(shown: Detail, params: Mapping[str, str], name: str) -> Source:
    namespace = shown.stored.namespace
    uid = params.get("uid", "") or ("" if shown.shows_living else _uids(shown).get(name, ""))
    pod, is_gone = _pod(namespace, name, uid, shown.stored.uid)
    containers = [each.get("name", "") for each in pod["spec"].get("containers") or ()]
    asked = params.get("container", "")
    container = asked if asked in containers else (containers[0] if containers else "")
    return Source(namespace, name, pod["metadata"]["uid"], pod, container, is_gone)


def _interesting(shown: Detail) -> str:
    pods = [bar.pod for bar in shown.bars]
    for phase in ("Failed", "Running"):
        for pod in pods:
            if pod.status.phase == phase:
                return pod.metadata.name
    return pods[0].metadata.name if pods else ""


def _uids(shown: Detail) -> dict[str, str]:
    """Return the uids of the run's pods by their names; of several pods of a name the last."""
    return {bar.pod.metadata.name: bar.pod.metadata.uid for bar in shown.bars}


def _runs(source: Source) -> list[tuple[str, int]]:
    """Return (uid, creation) of the pods that have had this name, newest first."""
    found: dict[str, int] = {}
    for change in store.history(PODS, source.namespace, source.name, limit=500):
        found[change.uid] = change.at
    return list(found.items())


def _end_of(source: Source, attempt: int | None) -> tuple[str, str]:
    try:
        chunk = backend.nodes.tail_log(
            source.uid, source.container, attempt, lines=PAGE_LINES, most=PAGE_BYTES
        )
    except NoLog:
        return "", source.why_absent()
    text = "".join(f"{safe(line.data)}\n" if line.whole else safe(line.data) for line in chunk.lines)
    return text, "" if text else "The container has printed nothing so far."


def _download_url(shown: Detail, source: Source, attempt: int | None) -> str:
    query = f"pod={source.name}&uid={source.uid}&container={source.container}&of={shown.stored.uid}"
    query += f"&attempt={attempt}" if attempt is not None else ""
    return f"{reverse('jobs:log', args=[shown.stored.namespace, shown.stored.name])}?{query}"


def safe(data: bytes) -> str:
    """Return output as text that does nothing: no colours, no control characters, no broken encodings."""
    return _COLOURS.sub("", data.decode(errors="replace")).translate(_PICTURES)


def download(actor: Actor, namespace: str, params: Mapping[str, str]) -> HttpResponseBase:
    """Return a whole log as a file, with the time before each line when times=1."""
    source = Source.of(actor, {**_plain(params), "namespace": namespace})
    attempt = _number(params.get("attempt", ""))
    try:
        first = backend.nodes.read_log(source.uid, source.container, attempt)
    except NoLog:
        raise NotFound(source.why_absent()) from None
    body = _whole(source, first, times=params.get("times") == "1")
    response = StreamingHttpResponse(body, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = (
        f'attachment; filename="{source.name}-{source.container}-{first.attempt}.log"'
    )
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _whole(source: Source, chunk: LogChunk, *, times: bool) -> Iterator[bytes]:
    fresh = True
    while chunk.lines:
        out = []
        for line in chunk.lines:
            if times and fresh:
                out.append(line.time.encode() + b" ")
            out.append(line.data + b"\n" * line.whole)
            fresh = line.whole
        yield b"".join(out)
        try:
            chunk = backend.nodes.read_log(
                source.uid, source.container, chunk.attempt, since_offset=chunk.next
            )
        except NoLog:  # removed while it is read
            return


def may(request: StreamRequest) -> None:
    """Let a reader follow a log only where he may see it."""
    Source.of(request.actor, _plain(request.params))


@live.stream("pod-log", may=may)
async def pod_log(request: StreamRequest) -> AsyncIterator[Mapping[str, Any]]:
    """Follow a log: its lines as they come, or the reason why there are none.

    Parameters: namespace, pod, uid, of (the job's uid), container, attempt (none: the latest, and those that follow), since (an offset;
    none: the last lines). Each message: lines [[time, stream, text, whole]], attempt, start, next, skipped, reason.
    """
    params = _plain(request.params)
    follower = LogReader(request.actor, params)
    while not follower.is_done:
        message = await database_sync_to_async(follower.look)()
        if message:
            yield message
        if not follower.is_done and not (message or {}).get("lines"):
            await asyncio.sleep(WAIT_AGAIN_S if follower.reason else LOOK_AGAIN_S)


class LogReader:
    """Where one reader is in one log."""

    def __init__(self, actor: Actor, params: Mapping[str, str]) -> None:
        self.actor = actor
        self.params = params
        self.attempt = _number(params.get("attempt", ""))
        self.is_latest = self.attempt is None
        self.offset = _number(params.get("since", ""))
        if self.offset is not None and self.is_latest:
            self.attempt = _number(params.get("at", ""))
        self.reason = ""
        self.is_done = False

    def look(self) -> dict[str, Any] | None:
        """Return what is new, None when nothing is."""
        source = Source.of(self.actor, self.params)
        try:
            chunk = self._read(source)
        except NoLog:
            return self._absent(source)
        is_first = self.offset is None
        self.attempt, self.offset, self.reason = chunk.attempt, chunk.next, ""
        if chunk.ended and not chunk.lines:
            self._go_on(source)
        if not chunk.lines and not is_first and not chunk.skipped:
            return {"end": True} if self.is_done else None
        return {
            "lines": [[line.time, line.stream, safe(line.data), line.whole] for line in chunk.lines],
            "attempt": chunk.attempt,
            "start": chunk.start,
            "next": chunk.next,
            "skipped": chunk.skipped,
            "reason": "" if chunk.lines or not is_first else "The container has printed nothing so far.",
        }

    def _read(self, source: Source) -> LogChunk:
        if self.offset is None:
            return backend.nodes.tail_log(source.uid, source.container, self.attempt, lines=TAIL_LINES)
        return backend.nodes.read_log(source.uid, source.container, self.attempt, since_offset=self.offset)

    def _absent(self, source: Source) -> dict[str, Any] | None:
        reason = source.why_absent()
        self.is_done = source.is_over
        if reason == self.reason:
            return None
        self.reason = reason
        return {"lines": [], "reason": reason, "end": self.is_done}

    def _go_on(self, source: Source) -> None:
        """At the end of an attempt: go to the next one, wait for it, or be done."""
        later = [number for number in source.attempts if self.attempt is not None and number > self.attempt]
        if self.is_latest and later:
            self.attempt, self.offset = later[0], 0
        elif source.is_over or not self.is_latest:
            self.is_done = True


def _plain(params: Mapping[str, str]) -> dict[str, str]:
    names = ("namespace", "pod", "uid", "of", "container", "attempt", "since", "at")
    return {name: str(params.get(name) or "") for name in names}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
