"""Following the pods of one node over an API: a thread that watches, and a descriptor that wakes the agent.

What is heard is handed to the agent in order, with the revision that it reaches. A watch that breaks goes on from there;
where history does not reach so far the agent reads its pods anew. The rules are those of every mirror (`cluster.remote.mirroring.reflection`).
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
        self._heard: deque[Change | Gap | Dismissed] = deque()
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
        """Take note that something was heard."""
        try:
            while self._ours.recv(4096):
                pass
        except BlockingIOError:
            pass

    def due(self) -> float:
        """Return the time at which what was heard is due: at once, after a pause, or never."""
        return self._again_at if self._heard else float("inf")

    def hurry(self) -> None:
        """Nothing: whatever there is, is heard."""

    def tell(self, heard: Change | Gap | Dismissed) -> None:
        """Hand something to the agent, from any thread."""
        self._heard.append(heard)
        try:
            self._theirs.send(b"!")
        except (BlockingIOError, OSError):
            pass  # it will be read as it is, or nobody reads any more

    def read(self, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        """Hand on what was heard, in order; after a gap `reload` reads the pods anew and sets the position."""
        while self._heard and clock.monotonic() >= self._again_at:
            heard = self._heard.popleft()
            if isinstance(heard, Dismissed):
                raise heard
            try:
                if isinstance(heard, Gap):
                    reload()
                else:
                    apply(heard)
            except AWAY:
                self._heard.appendleft(heard)
                self._again_at = clock.monotonic() + PAUSE_S
                raise
            if isinstance(heard, Change) and heard.revision:
                self._position = heard.revision

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
                self.tell(error)
                return
            except Unreachable as error:
                self._outage.lasts(error)
            except msgspec.DecodeError as error:
                self._outage.lasts(f"an answer cannot be read: {error}")
            except ApiError as error:
                # The server's history may ask for everything to be read anew; what else is refused is asked again later.
                if reflection.after_error(error) in ("list", "list anew"):
                    self._begun.clear()
                    self.tell(Gap.GAP)
                else:
                    self._outage.lasts(error.message)
            except Exception as error:
                # Whatever it is: without this thread the node would look well, and hear of no pod any more.
                self._faults.note(error)
            failures = failures + 1 if clock.monotonic() - begun < SHORT_S else 0
            if failures:
                self._stop.wait(reflection.wait_s(failures, self._random.random()))

    def _watch(self) -> None:
        """Hear what changes, until the server ends the watch."""
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
                self._take(_decode(line))

    def _take(self, line: Mapping[str, Any]) -> None:
        event = reflection.read_event(PODS, line, after=self._version)
        if event.error is not None:
            raise event.error
        if event.write is not None:
            # As a row of the log; a pod that leaves the selection is DELETED, and so is gone for its node.
            verb: Verb = line["type"]
            meta, body = line["object"]["metadata"], _encode(line["object"])
            place = meta.get("namespace") or "", meta["name"], meta["uid"]
            self.tell(Change(int(event.version), PODS.id, *place, verb, 0, body))
        self._version = event.version or self._version
