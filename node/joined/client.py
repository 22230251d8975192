"""Requests of a joined machine to its cluster's API, with the node's token."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Mapping
from typing import Any

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from cluster import clock, fingerprint
from cluster.remote.http.exchange import CONNECT_S, KEEPALIVE, Call, Exchange, cause_of, send
from cluster.remote.http.request import JSON, Unreachable
from kube.errors import InternalError, ServiceUnavailable, Timeout, TooManyRequests, Unauthorized
from node.membership import Server
from node.pods.cluster import Dismissed

ANSWER_S = 10.0  # the agent waits for it, with all of its pods
LONG_S = 1.0  # after a wait of so long in vain there are no requests for a while:
REST_S = 5.0  # an agent makes one for each of its pods, and would wait for each of them in turn
AGAIN_S = 1.0  # a refused token is sent once more, so that one odd answer of a server does not end a node
POOL = 10  # connections: the agent's writes at once, its watch, and its look at ConfigMaps
TROUBLE = (InternalError, ServiceUnavailable, Timeout, TooManyRequests)  # the server cannot answer now
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Client(Exchange):
    """A node's client of an API server. Thread-safe. It raises Dismissed where the server refuses the token."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.url)
        self.server = server
        self._pause = ("", 0.0)  # why the server did not answer, and until when it gets no request; monotonic
        self._pool = urllib3.PoolManager(
            maxsize=POOL, ssl_context=ssl.create_default_context(cadata=server.ca or None), socket_options=KEEPALIVE
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        media_type: str = JSON,
    ) -> dict[str, Any]:
        """Return an answer's object; ApiError is a refusal, Unreachable says that the server cannot answer now."""
        begun, (cause, until) = clock.monotonic(), self._pause
        if begun < until:
            raise Unreachable(self.server.url, cause)
        try:
            answer = self.request(method, path, query=query, body=body, media_type=media_type, answer_s=ANSWER_S)
            return _decode(answer)
        except Unreachable as error:
            if (now := clock.monotonic()) - begun >= LONG_S:
                self._pause = error.cause, now + REST_S
            raise
        except TROUBLE as error:
            raise Unreachable(self.server.url, error.message, sent=True) from None
        except msgspec.DecodeError as error:
            raise Unreachable(self.server.url, f"its answer cannot be read: {error}", sent=True) from None

    def _send(self, call: Call) -> Any:
        call.headers["Authorization"] = f"Bearer {self.server.token}"
        for is_last in (False, True):
            answer = send(self._pool, self.server.url, call)
            if answer.status != Unauthorized.code:
                return answer
            if not _is_status(answer.read()):
                # A proxy before the server, which asks people for a password, refuses every node.
                raise Unreachable(self.server.url, "somebody else answers there, and asks who this is")
            answer.release_conn()
            if not is_last:
                clock.sleep(AGAIN_S)
        raise Dismissed(
            f"{self.server.url} does not know its token, which was revoked or has expired. "
            "An administrator makes another one on the page “Nodes”."
        )


def _is_status(body: bytes) -> bool:
    """Whether an answer is a Status, which API servers return for an error."""
    try:
        return _decode(body).get("kind") == "Status"
    except msgspec.DecodeError:
        return False


def authority(url: str, wanted: str) -> str:
    """Return the certificates of a server's authority, in PEM, that have a fingerprint.

    They are fetched from the server before it is known who that is: the fingerprint alone says so. Unreachable when
    there is no answer, ValueError when somebody else answers.
    """
    pool = urllib3.PoolManager(cert_reqs="CERT_NONE", assert_hostname=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRequestWarning)
            answer = pool.request(
                "GET",
                f"{url}/node/authority",
                timeout=urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S),
                retries=False,
                redirect=False,
            )
    except HTTPError as error:
        raise Unreachable(url, cause_of(error)) from None
    finally:
        pool.clear()
    text = answer.data.decode(errors="replace") if answer.status == 200 else ""
    actual = fingerprint.of(text)
    if actual != wanted:
        raise ValueError(
            f"{url} has another authority than --ca says ({actual or 'none that it tells'}): it is another server, or "
            "somebody is in between. Copy the command anew from the page “Nodes” of the cluster that is meant."
        )
    return text
