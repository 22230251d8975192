"""Following the pods of one node over an API: a thread that watches, and a descriptor that wakes the agent.

Changes are handed to the agent in order, with the revision that they reach. A watch that breaks goes on from there;
where history does not reach so far the agent lists its pods again. The rules are those of every mirror (`cluster.remote.mirroring.reflection`).
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum, auto
from random import SystemRandom
from typing import Any

import msgspec

from cluster import clock
from cluster.remote.http import paths
from cluster.remote.http.request import Unreachable
from cluster.remote.mirroring import reflection
from cluster.runtime.outage import Outage
from cluster.store import Change
from cluster.store.types import Verb
from kube.errors import ApiError
from kube.resources import PODS
from node.faults import Faults
from node.joined.client import Client
from node.pods.cluster import AWAY, Dismissed

LINGER_S = 30  # beyond its time, in which a watch may still end by itself
PAUSE_S = 1.0
SHORT_S = 1.0  # a watch that ends sooner was none
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode
log = logging.getLogger(__name__)


class Gap(Enum):
    """History does not reach back to where the watch stood."""

    GAP = auto()


class PodWatch:
    """The pods of a node as they change: what an agent follows (`node.pods.cluster.Following`), and a companion of it."""

    def __init__(self, client: Client, node: str, selector: selectors.BaseSelector) -> None:
        self._client = client
        self._fields = f"spec.nodeName={node}"
        self._queue: deque[Change | Gap | Dismissed] = deque()
        self._version = ""
        self._again_at = float("-inf")  # what the cluster did not answer is not asked at once again
        self._begun = threading.Event()
        self._stop = threading.Event()
        self._random = SystemRandom()
        self._outage = Outage("hearing of the node's pods", log)
        self._faults = Faults("hearing of the node's pods", log)
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        selector.register(self._ours, selectors.EVENT_READ, self)
        self._selector = selector
        self._thread = threading.Thread(target=self._follow, name="pods", daemon=True)

    @property
    def subscription(self) -> Any:
        """What is registered at the selector."""
        return self

    @property
    def position(self) -> int:
        """The revision up to which everything was handed on."""
        return self._position

    @position.setter
    def position(self, revision: int) -> None:
        self._position = revision
        self._version = str(revision)
        self._begun.set()

    def start(self) -> None:
        """Begin to watch, once there is a position."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()
        self._begun.set()

    def subscribe(self) -> None:
        """Nothing: the descriptor is there as long as the watch."""

    def hear(self) -> None:
        """Empty the socket that wakes the agent."""
        try:
            while self._ours.recv(4096):
                pass
        except BlockingIOError:
            pass

    def due(self) -> float:
        """Return the monotonic time at which the queue is due: at once, after a pause, or never."""
        return self._again_at if self._queue else float("inf")

    def hurry(self) -> None:
        """Nothing: the watch brings every change by itself."""

    def put(self, item: Change | Gap | Dismissed) -> None:
        """Queue something for the agent, from any thread."""
        self._queue.append(item)
        try:
            self._theirs.send(b"!")
        except (BlockingIOError, OSError):
            pass  # it will be read as it is, or nobody reads any more

    def read(self, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        """Hand on the queue in order; after a gap `reload` lists the pods again and sets the position."""
        while self._queue and clock.monotonic() >= self._again_at:
            item = self._queue.popleft()
            if isinstance(item, Dismissed):
                raise item
            try:
                if isinstance(item, Gap):
                    reload()
                else:
                    apply(item)
            except AWAY:
                self._queue.appendleft(item)
                self._again_at = clock.monotonic() + PAUSE_S
                raise
            if isinstance(item, Change) and item.revision:
                self._position = item.revision

    def close(self) -> None:
        self.stop()
        self._selector.unregister(self._ours)
        self._ours.close()
        self._theirs.close()

    def _follow(self) -> None:
        """Watch again and again, until the node is dismissed or the process ends."""
        failures = 0
        while self._begun.wait() and not self._stop.is_set():
            begun = clock.monotonic()
            try:
                self._watch()
            except Dismissed as error:
                self.put(error)
                return
            except Unreachable as error:
                self._outage.lasts(error)
            except msgspec.DecodeError as error:
                self._outage.lasts(f"an answer cannot be read: {error}")
            except ApiError as error:
                # An expired version needs a new list; whatever else is refused is tried again later.
                if reflection.after_error(error) in ("list", "list anew"):
                    self._begun.clear()
                    self.put(Gap.GAP)
                else:
                    self._outage.lasts(error.message)
            except Exception as error:
                # Whatever it is: without this thread the node would look ready, and see no pod any more.
                self._faults.note(error)
            failures = failures + 1 if clock.monotonic() - begun < SHORT_S else 0
            if failures:
                self._stop.wait(reflection.wait_s(failures, self._random.random()))

    def _watch(self) -> None:
        """Watch the node's pods, until the server ends the watch."""
        lasts = self._random.randint(*reflection.WATCH_S)
        query = {
            "fieldSelector": self._fields,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(lasts),
        }
        path = paths.collection(PODS)
        with self._client.stream(path, query=query, silence_s=lasts + LINGER_S) as lines:
            self._outage.over()
            for line in lines:
                if self._stop.is_set():
                    return
                self._on_line(_decode(line))

    def _on_line(self, line: Mapping[str, Any]) -> None:
        event = reflection.read_event(PODS, line, after=self._version)
        if event.error is not None:
            raise event.error
        if event.write is not None:
            # As a row of the log; a pod that leaves the selection is DELETED, and so is gone for its node.
            verb: Verb = line["type"]
            meta, body = line["object"]["metadata"], _encode(line["object"])
            key = meta.get("namespace") or "", meta["name"], meta["uid"]
            self.put(Change(int(event.version), PODS.id, *key, verb, 0, body))
        self._version = event.version or self._version
