"""Asks another server what was asked when a recording was made, in the same order, and compares the answers."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import msgspec

from proof.traffic import protobuf
from proof.traffic.comparing import Difference, differences
from proof.traffic.exchange import STAGE, Exchange, is_watch
from proof.traffic.recorder import PROTOBUF
from proof.traffic.symbols import Bindings

QUIET_S = 10.0  # without an event that is to come


class Found(NamedTuple):
    """A difference, with the request whose answer it is in."""

    exchange: Exchange
    difference: Difference

    def __str__(self) -> str:
        exchange = self.exchange
        return f"[{exchange.command}] {exchange.method} {exchange.path} {exchange.content_type}\n    {self.difference}"


class Replay:
    """Replays one recording against a server, whose client may do everything."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._bindings = Bindings()
        self._watches: list[tuple[Exchange, httpx.Response]] = []

    def differences(self, exchanges: list[Exchange]) -> Iterator[Found]:
        """Yield how its answers differ from the recorded ones."""
        with contextlib.ExitStack() as stack:
            for exchange in exchanges:
                yield from self._ended_before(exchange)
                try:
                    answer = stack.enter_context(self._response(exchange))
                except KeyError as symbol:
                    yield Found(exchange, Difference("path or body", "", f"no answer has had {symbol}"))
                    continue
                if is_watch(exchange.path) and answer.status_code == exchange.status == http.client.OK:
                    self._watches.append((exchange, answer))
                else:
                    answer.read()
                    found = None if exchange.is_left_out else _body(answer)
                    yield from (Found(exchange, each) for each in self._compared(exchange, answer, found))
            yield from self._ended_before(None)

    @contextlib.contextmanager
    def _response(self, exchange: Exchange) -> Iterator[httpx.Response]:
        headers = [("User-Agent", exchange.agent)]
        headers += [("Accept", exchange.accept)] if exchange.accept else []
        headers += [("Content-Type", exchange.content_type)] if exchange.content_type else []
        headers += [("Impersonate-User", exchange.user)] if exchange.user else []
        headers += [("Impersonate-Group", each) for each in exchange.groups]
        content = self._content(exchange)
        path = self._bindings.fill(exchange.path)
        with self._client.stream(exchange.method, path, headers=headers, content=content) as answer:
            yield answer

    def _content(self, exchange: Exchange) -> bytes | None:
        if exchange.body is None:
            return None
        if exchange.content_type.startswith(PROTOBUF):
            body = base64.b64decode(exchange.body)
            return body if exchange.method != "PUT" else self._replacement(exchange, body)
        body = self._bindings.fill(exchange.body)
        return (body if isinstance(body, str) else json.dumps(body)).encode()

    def _replacement(self, exchange: Exchange, body: bytes) -> bytes:
        """Name the object that there is; where a conflict was answered, its version stays the recorded one."""
        there = self._client.get(exchange.path).json()["metadata"]
        is_newest = exchange.status != http.client.CONFLICT
        return protobuf.naming(body, there["uid"], there["resourceVersion"] if is_newest else "")

    def _compared(self, exchange: Exchange, answer: httpx.Response, found: Any) -> Iterator[Difference]:
        if answer.status_code != exchange.status:
            yield Difference("code", exchange.status, f"{answer.status_code} {_short(answer, found)}")
            return
        kind = answer.headers.get("content-type", "")
        if kind != exchange.answer_type:
            yield Difference("type", exchange.answer_type, kind)
        warnings = answer.headers.get_list("warning")
        if warnings != exchange.warnings:
            yield Difference("warnings", exchange.warnings, warnings)
        if not exchange.is_left_out:
            yield from differences(exchange.answer, found, self._bindings)

    def _ended_before(self, exchange: Exchange | None) -> Iterator[Found]:
        """Compare the events of watches that were over before a request was sent."""
        if exchange is not None and exchange.client == STAGE:
            return
        over = [each for each in self._watches if exchange is None or each[0].command != exchange.command]
        self._watches = [each for each in self._watches if each not in over]
        for watched, answer in over:
            recorded = [each for each in watched.answer or [] if _tells(each)]
            found = _events(answer, len(recorded))
            wanted = msgspec.structs.replace(watched, answer=recorded)
            yield from (Found(watched, each) for each in self._compared(wanted, answer, found))


def _tells(event: dict[str, Any]) -> bool:
    """Whether an event comes with a change; a bookmark comes when it pleases, but for the one after what there is."""
    annotations = event["object"].get("metadata", {}).get("annotations", {})
    return event["type"] != "BOOKMARK" or "k8s.io/initial-events-end" in annotations


def _events(answer: httpx.Response, count: int) -> list[Any]:
    """Return so many events of a watch, or those that come."""
    found: list[Any] = []
    with contextlib.suppress(httpx.TimeoutException):
        lines = answer.iter_lines()
        while len(found) < count:
            event = json.loads(next(lines, "null"))
            if event is None:
                break
            if _tells(event):
                found.append(event)
    answer.close()
    return found


def _body(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        return answer.text


def _short(answer: httpx.Response, found: Any) -> str:
    return str(found.get("message") if isinstance(found, dict) else answer.text[:200])
