"""Those who only look: clients that watch the API as informers do, and live pages. Each keeps a picture.

When all is quiet, each picture has to be what the store says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from cluster import clock
from cluster.access import Actor
from cluster.store import store
from dashboard.live import topics
from dashboard.live.hub import Hub
from kube.meta import Object
from kube.resources import JOBS, PODS, QUEUES, Resource
from proof.invariants import Broken
from proof.simulation.parts.faults import Killed
from proof.simulation.parts.processes import Process
from proof.simulation.parts.server import Connection, Server
from proof.simulation.parts.virtual import VirtualClock, VirtualLoop
from proof.simulation.people.picture import LogPicture
from proof.simulation.people.request import Request, path

NAME = "every reader ends with the same picture"
AGAIN_S = 1.0  # until a client asks again whom nobody answered
EXPIRED = 410


class Selected(NamedTuple):
    """What one watch is of: all objects of a kind, or the pods of one phase."""

    resource: Resource
    phase: str = ""

    def has(self, obj: Object) -> bool:
        """Whether an object is one of them."""
        return not self.phase or (obj.get("status") or {}).get("phase") == self.phase

    def request(self, **query: str) -> Request:
        """Return the request that lists them, or watches them."""
        if self.phase:
            query["fieldSelector"] = f"status.phase={self.phase}"
        return Request(actor="admin", method="GET", path=path(self.resource, **query))


WATCHED = (Selected(JOBS), Selected(PODS), Selected(PODS, "Running"), Selected(QUEUES))


class Informer:
    """Lists, then watches from there; begins anew when its past is forgotten (client-go's reflector)."""

    def __init__(self, selected: Selected) -> None:
        self.selected = selected
        self.versions: dict[tuple[str, str], int] = {}
        self.seen = -1  # the newest version; before the first list -1
        self.connection: Connection | None = None
        self.ask_at = 0.0
        self._rest = b""

    @property
    def has_events(self) -> bool:
        return self.connection is not None and (bool(self.connection.chunks) or self.connection.has_ended)

    def work(self, server: Server | None) -> None:
        """Take what has come; ask the server again, if nothing will come."""
        if self.connection is not None:
            for chunk in self.connection.take():
                self._take(chunk)
            if not self.connection.has_ended:
                return
            if self._rest:
                self._take(b"\n")  # an answer that is no stream has no end of line
            self.connection, self._rest = None, b""
        if self.ask_at <= clock.monotonic():
            self.ask_at = clock.monotonic() + AGAIN_S
            if server is not None and (self.seen >= 0 or self._list(server)):
                self._watch(server)

    def _list(self, server: Server) -> bool:
        answer = server.ask(self.selected.request())
        if answer.status != 200:
            return False
        found = answer.object
        self.versions = {_key(each): _version(each) for each in found["items"]}
        self.seen = _version(found)
        return True

    def _watch(self, server: Server) -> None:
        version = str(self.seen)
        request = self.selected.request(watch="1", resourceVersion=version, allowWatchBookmarks="true")
        self.connection = server.connect(request)

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            event = msgspec.json.decode(line)
            kind, obj = event.get("type"), event.get("object", event)
            if kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                self._learn(kind, obj)
            else:  # an ERROR event, or the answer that there is no watch
                self.seen = -1

    def _learn(self, kind: str, obj: Object) -> None:
        version = _version(obj)
        if version < self.seen or (version == self.seen and kind != "BOOKMARK"):
            self._wrong(version, kind, f"it comes after version {self.seen}")
        self.seen = version
        if kind == "BOOKMARK":
            return
        key = _key(obj)
        if (kind == "ADDED") == (key in self.versions):
            self._wrong(version, f"{kind} {key}", f"it is {'not ' * (key not in self.versions)}known")
        if kind == "DELETED":
            del self.versions[key]
        else:
            self.versions[key] = version
            if not self.selected.has(obj):
                self._wrong(version, f"{kind} {key}", f"it is not one of {self.selected}")

    def compare(self, picture: LogPicture) -> None:
        """Raise Broken unless what was watched is what the log says."""
        expected = picture.versions(self.selected.resource.id, self.selected.has)
        if self.versions != expected:
            differ = sorted(key for key in {*expected, *self.versions} if expected.get(key) != self.versions.get(key))
            differences = {key: (self.versions.get(key), expected.get(key)) for key in differ[:5]}
            self._wrong(self.seen, str(self.selected), f"versions that it knows, and the log: {differences}")

    def _wrong(self, version: int, subject: str, text: str) -> None:
        raise Broken(NAME, version, f"{self.selected.resource.id}: {subject}", text)


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


class Watchers(Process):
    """A client of the API with an informer for each selection."""

    def __init__(
        self, name: str, server: Callable[[], Server | None], kill_server: Callable[[], None], picture: LogPicture
    ) -> None:
        super().__init__(name)
        self._server = server
        self._kill_server = kill_server
        self._picture = picture
        self.informers = [Informer(each) for each in WATCHED]

    @property
    def is_ready(self) -> bool:
        now = clock.monotonic()
        return any(i.has_events or (i.connection is None and i.ask_at <= now) for i in self.informers)

    @property
    def due(self) -> float | None:
        return min((i.ask_at for i in self.informers if i.connection is None), default=None)

    def step(self) -> None:
        server = self._server()
        try:
            for informer in self.informers:
                informer.work(server)
        except Killed:
            self._kill_server()  # it was asking the database, not its client

    def compare(self) -> None:
        """Raise Broken when an informer knows something else than the log."""
        for informer in self.informers:
            informer.compare(self._picture)

    def die(self) -> None:
        for informer in self.informers:
            if informer.connection is not None:
                informer.connection.leave()


PAGES = (("admin", "jobs:list"), ("vera", "queues:detail?name=default"), ("olga", "queues:list"))


class Page:
    """A tab with one live topic; what is in it is what the messages of its socket made of it."""

    def __init__(self, actor: Actor, topic: str) -> None:
        self.actor = actor
        self.topic = topic
        self.waiting: deque[Any] = deque()
        revision, parts = self.render()
        self.revision, self.parts, self.order = revision, dict(parts.parts), parts.order

    def render(self) -> tuple[int, topics.Parts]:
        """Return what the server would send now as the whole page."""
        name, params = topics.parse(self.topic)
        with store.reading() as revision:
            render = topics.find(name)
            assert render is not None, name
            return revision, render(topics.TopicRequest(self.actor, params))

    def offer(self, text: str) -> None:
        """Take a message that the browser has not read yet."""
        self.waiting.append(msgspec.json.decode(text))

    def rejoin(self, topic: str) -> None:
        """Nobody who has a page open is given other rights, so that none is asked to join again."""
        raise Broken(NAME, self.revision, topic, "the page was to join again, as if rights had changed")

    def read(self) -> None:
        """Do what the messages say."""
        while self.waiting:
            message = self.waiting.popleft()
            if message["op"] == "parts":
                self.revision = message["revision"]
                self.parts |= message["set"]
                self.order = message.get("order", self.order)
            elif message["op"] == "denied":
                raise Broken(NAME, self.revision, self.topic, f"the page was denied: {message['message']}")

    def compare(self) -> None:
        """Raise Broken unless it shows what the server would send."""
        _, parts = self.render()
        if self.order != parts.order:
            raise Broken(NAME, self.revision, self.topic, f"shows {self.order}, and there is {parts.order}")
        for name, html in parts.parts.items():
            if self.parts.get(name) != html:
                text = f"{name} is shown as {self.parts.get(name)!r}, and it is {html!r}"
                raise Broken(NAME, self.revision, self.topic, text)


class Web(Process):
    """The web server's process with its hub, and the tabs that people have open there."""

    def __init__(self, name: str, virtual: VirtualClock, actors: Mapping[str, Actor]) -> None:
        super().__init__(name)
        self.loop = VirtualLoop(virtual)
        self.hub: Hub | None = None
        self.actors = actors
        self.pages: list[Page] = []

    @property
    def is_ready(self) -> bool:
        has_begun = len(self.pages) == len(PAGES)
        return not has_begun or (self.loop.due is not None and self.loop.due <= clock.monotonic())

    @property
    def due(self) -> float | None:
        return self.loop.due

    def step(self) -> None:
        if self.hub is None:
            self.hub = self.loop.do(self._begin())
        elif len(self.pages) < len(PAGES):
            who, topic = PAGES[len(self.pages)]
            self.pages.append(Page(self.actors[who], topic))
            self.loop.do(self._enter(self.hub, self.pages[-1]))
        else:
            self.loop.turn()
        for page in self.pages:
            page.read()

    async def _begin(self) -> Hub:
        return Hub()

    async def _enter(self, hub: Hub, page: Page) -> None:
        await hub.enter(page)
        await hub.join(page, page.topic, page.revision, page.actor)

    def compare(self) -> None:
        """Raise Broken when a page shows something else than the server would send."""
        for page in self.pages:
            page.compare()

    def die(self) -> None:
        self.loop.end()
