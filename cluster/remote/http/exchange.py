"""Requests to an API server and their answers, as bytes: what every way of coming in has in common.

How somebody comes in (a kubeconfig, a node's token) is the part of a subclass: it sends.
"""

from __future__ import annotations

import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3 import exceptions
from urllib3.exceptions import ConnectTimeoutError, HTTPError, ReadTimeoutError

from cluster.remote.http.request import JSON, Impersonation, Unreachable
from kube import errors
from kube.errors import ApiError

CONNECT_S = 5.0
ANSWER_S = 30.0
AGENT = "volcano-ui"
CHUNK = 64 * 1024
# A connection whose other end is gone without a word is found out within some 30 s.
KEEPALIVE = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
_NOT_SENT = (exceptions.NewConnectionError, ConnectTimeoutError, exceptions.SSLError, exceptions.ProxyError)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Call(NamedTuple):
    """One request as it is sent; answer_s is how long the server may be silent, in seconds."""

    method: str
    path: str
    query: Mapping[str, str] | None
    headers: Any
    content: bytes | None
    answer_s: float


def send(pool: Any, server: str, call: Call) -> Any:
    """Send one request by a pool of urllib3's and return the answer, its body unread: nothing is sent twice, no redirect followed."""
    return pool.request(
        call.method,
        f"{server}{call.path}{f'?{urlencode(call.query)}' if call.query else ''}",
        body=call.content,
        headers=call.headers,
        preload_content=False,
        timeout=urllib3.Timeout(connect=CONNECT_S, read=call.answer_s),
        retries=False,
        redirect=False,
    )


class Exchange(ABC):
    """An API server, called `name` in what is said of it. Thread-safe if its subclass is."""

    def __init__(self, name: str) -> None:
        self._name = name

    @abstractmethod
    def _send(self, call: Call) -> Any:
        """Return the answer of the server, its body unread; HTTPError when there is none."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        media_type: str = JSON,
        impersonation: Impersonation | None = None,
        answer_s: float = ANSWER_S,
    ) -> bytes:
        """Return the body of the answer; ApiError is the server's refusal, Unreachable says that there was none.

        body is what is to be sent as JSON, None for nothing.
        """
        headers = self._headers(impersonation)
        if body is not None:
            headers["Content-Type"] = media_type
        content = None if body is None else _encode(body)
        try:
            answer = self._send(Call(method, path, query, headers, content, answer_s))
            data: bytes = answer.read()
            answer.release_conn()
        except HTTPError as error:
            raise self._unreachable(error) from None
        if answer.status >= 300:
            raise _refusal(data, answer.status, answer.headers.get("Retry-After"))
        return data

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        impersonation: Impersonation | None = None,
        silence_s: float = ANSWER_S,
    ) -> Iterator[Iterator[bytes]]:
        """Hold an answer open and hand out its lines, without their ends, as they come.

        Entering it means that the server has agreed. When the connection is cut, Unreachable is raised
        and what followed the last line break is dropped; so it is after a silence of silence_s.
        """
        try:
            answer = self._send(Call("GET", path, query, self._headers(impersonation), None, silence_s))
        except HTTPError as error:
            raise self._unreachable(error) from None
        try:
            if answer.status >= 300:
                raise _refusal(answer.read(), answer.status)
            yield self._lines(answer)
        finally:
            answer.close()

    def _lines(self, answer: Any) -> Iterator[bytes]:
        rest = b""
        try:
            # What has arrived counts, also when the chunk that it is part of is never finished.
            while chunk := answer.read1(CHUNK, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
        except HTTPError as error:
            raise self._unreachable(error) from None
        if rest:
            yield rest

    def _headers(self, impersonation: Impersonation | None) -> Any:
        headers = urllib3.HTTPHeaderDict({"Accept": JSON, "User-Agent": AGENT})
        if impersonation is not None:
            headers["Impersonate-User"] = _in_header(impersonation.user)
            for group in impersonation.groups:
                headers.add("Impersonate-Group", _in_header(group))
        return headers

    def _unreachable(self, error: HTTPError) -> Unreachable:
        return Unreachable(self._name, cause_of(error), sent=not isinstance(error, _NOT_SENT))


def _in_header(name: str) -> str:
    """Return a name so that its UTF-8 is sent: HTTP's clients send headers as Latin-1, API servers read UTF-8."""
    return name.encode().decode("latin-1")


def _refusal(data: bytes, code: int, retry_after: str | None = None) -> ApiError:
    try:
        status = _decode(data)
    except msgspec.DecodeError:
        status = None
    error = errors.of_status(status if isinstance(status, dict) else {}, code)
    if retry_after and retry_after.isdecimal():  # an overloaded server says it in no Status
        error.retry_after_s = max(error.retry_after_s, int(retry_after))
    return error


def cause_of(error: BaseException) -> str:
    """Say in few words why a connection failed: the innermost reason that has words for people."""
    words = "it closed the connection"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, TimeoutError | ReadTimeoutError | ConnectTimeoutError):
            words = "it takes too long"
        elif isinstance(cause, OSError) and cause.strerror:
            words = cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return words
