"""Following one kind: the requests, between the rules of `reflection` and the recorder that stores the updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from types import MappingProxyType
from typing import Any

import msgspec

from cluster import clock
from cluster.remote.http import paths
from cluster.remote.http.request import RestClient, Unreachable, decode
from cluster.remote.mirroring import reflection
from cluster.remote.mirroring.reflection import KindStatus, Step, Update
from kube.errors import ApiError
from kube.meta import is_older
from kube.resources import Resource

REFUSED_WAIT_S = 30.0  # rights are given by people
SHORT_S = 1.0  # a watch that ends sooner was none
LINGER_S = 30  # beyond its time, in which a watch may still end by itself


class Reflector:
    """Lists and watches one kind and passes on the updates."""

    def __init__(
        self,
        connection: RestClient,
        kind: Resource,
        status: KindStatus,
        tell: Callable[[Update], None],
        *,
        wait: Callable[[float], None] = clock.sleep,
        selectors: Mapping[str, str] = MappingProxyType({}),
        random: Random | None = None,
    ) -> None:
        self.kind = kind
        self._selectors = selectors
        self._connection = connection
        self._tell = tell
        self._wait = wait
        self._random = random or SystemRandom()
        self._version = "" if status.anew else status.version
        self._is_anew = status.anew
        self._last = status.version  # the newest version ever read, also while a list is read
        self._failures = 0
        self._is_live = False
        self._trouble = ("", "")  # step and reason, as last reported

    def run(self) -> None:
        """Follow the kind for as long as the server has it."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """List the kind if that is needed, and watch it once; return whether the server has it."""
        try:
            if not self._version:
                self._list()
            self._watch()
        except Unreachable as error:
            self._fail(error.cause)
        except msgspec.DecodeError as error:
            self._fail(f"an answer cannot be read: {error}")
        except ApiError as error:
            return self._answered(error)
        return True

    def _answered(self, error: ApiError) -> bool:
        match reflection.after_error(error):
            case "list":
                self._version = ""
                self._slow_down()
            case "list anew":
                self._version, self._is_anew = "", True
                self._say(Step.BEGUN, anew=True)  # at once: the server's versions may catch up
                self._slow_down()
            case "absent":
                self._say(Step.ABSENT)
                return False
            case "refused":
                self._complain(Step.REFUSED, error.message)
                self._wait(REFUSED_WAIT_S)
            case "again":
                self._fail(error.message)
        return True

    def _list(self) -> None:
        """Read all objects, page by page; what a page's list has left out at its end is gone."""
        self._say(Step.BEGUN, anew=self._is_anew)
        uids: set[str] = set()
        query = {**self._selection(), "limit": str(reflection.PAGE)}
        while True:
            answer = decode(self._connection.request("GET", paths.collection(self.kind), query=query))
            metadata = answer.get("metadata") or {}
            version = str(metadata.get("resourceVersion") or "")
            if not uids and is_older(version, self._last):
                self._is_anew = True
            page = reflection.page(self.kind, answer, anew=self._is_anew)
            uids.update(write.object["metadata"]["uid"] for write in page.writes)
            self._tell(page)
            self._trouble = ("", "")
            if not metadata.get("continue"):
                break
            query["continue"] = str(metadata["continue"])
        self._say(Step.LISTED, version=version, uids=frozenset(uids), anew=self._is_anew)
        self._version = self._last = version
        self._is_anew, self._is_live = False, True

    def _watch(self) -> None:
        """Watch the kind until the server ends the watch."""
        duration_s = self._random.randint(*reflection.WATCH_S)
        query = {
            **self._selection(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(duration_s),
        }
        begun = clock.monotonic()
        path = paths.collection(self.kind)
        try:
            with self._connection.stream(path, query=query, silence_s=duration_s + LINGER_S) as lines:
                if not self._is_live:
                    self._is_live, self._trouble = True, ("", "")
                    self._say(Step.WATCHED)
                for line in lines:
                    event = reflection.read_event(self.kind, decode(line), after=self._version)
                    if event.error is not None:
                        raise event.error
                    writes = () if event.write is None else (event.write,)
                    self._say(Step.CHANGED, version=event.version, writes=writes)
                    self._version = self._last = event.version or self._version
                    self._failures = 0
        finally:
            is_short = clock.monotonic() - begun < SHORT_S
            self._failures = self._failures if is_short else 0
        if is_short:
            self._slow_down()

    def _selection(self) -> dict[str, str]:
        selector = self._selectors.get(self.kind.id)
        return {"labelSelector": selector} if selector else {}

    def _say(self, step: Step, **more: Any) -> None:
        self._tell(Update(self.kind, step, **more))

    def _fail(self, reason: str) -> None:
        """Note that the server does not answer. One cut of a connection says nothing yet: most are mended at once."""
        if self._failures:
            self._complain(Step.AWAY, reason)
        self._failures += 1
        self._pause()

    def _slow_down(self) -> None:
        """Wait longer and longer for a server that answers, but ends everything at once."""
        self._failures += 1
        if self._failures > 1:
            self._pause()

    def _pause(self) -> None:
        self._wait(reflection.wait_s(self._failures, self._random.random()))

    def _complain(self, step: Step, reason: str) -> None:
        self._is_live = False
        if self._trouble != (step, reason):
            self._trouble = (step, reason)
            self._say(step, reason=reason)
