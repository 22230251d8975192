"""A connection to the API server on which requests, lists and watches fail now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from cluster.remote.http.request import RestClient, Unreachable
from kube.errors import Expired
from proof.harness.answers import Answer, met

FAILING = tuple(each for each in Answer if each is not Answer.DONE)


class BadLuck:
    """Stands where a connection does. Of all that is asked `share` fails, at first nothing, as `choices` draws it."""

    def __init__(self, server: RestClient) -> None:
        self._server = server
        self.share, self.choices = 0.0, Random(0)

    def request(self, method: str, path: str, **more: Any) -> bytes:
        """Ask, unless that fails."""
        answer = self.choices.choice(FAILING) if self._fails() else Answer.DONE
        return met(answer, lambda: self._server.request(method, path, **more))

    @contextmanager
    def stream(self, path: str, **more: Any) -> Iterator[Iterator[bytes]]:
        """Watch, unless the server has forgotten the version, or cuts the answer off."""
        if self._fails():
            raise Expired("too old resource version")
        with self._server.stream(path, **more) as lines:
            yield self._cut(lines) if self._fails() else lines

    def _cut(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        yield from list(lines)[: self.choices.randrange(3)]
        raise Unreachable("https://model", "it closed the connection", sent=True)

    def _fails(self) -> bool:
        return self.choices.random() < self.share
