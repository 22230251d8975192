"""Who may have a connection that lasts: bounds on their number, for all and for one actor, and the right to go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from apiserver.http.request import Request
from apiserver.http.rights_keeper import keeper as rights
from apiserver.streams.channels import Gone
from apiserver.watch import connection
from cluster.access import audit
from kube.errors import TooManyRequests
from kube.meta import Object

LAST_WORD_S = 0.2  # for a client that may not go on to take the reason


class Talk(Protocol):
    """An upgraded connection, of which the end can be said."""

    is_finished: bool

    async def finish(self, status: Object) -> None:
        """Say how it ended, and close."""


def note(request: Request, pod: Object, message: str) -> None:
    """Record in the audit that somebody opened a connection to a pod."""
    metadata = pod["metadata"]
    key = metadata["namespace"], metadata["name"], metadata["uid"]
    audit.record(audit.Deed(request.actor.name, "create", request.info.target, *key, message=message))


@contextlib.contextmanager
def counted(open_counts: Counter[str], who: str, most: int, most_of_one: int, what: str) -> Iterator[None]:
    """Be one of those that are open at a time; TooManyRequests when there are too many, of all or of one actor."""
    if open_counts.total() >= most or open_counts[who] >= most_of_one:
        raise TooManyRequests(f"Too many {what}. Please end some of them and try again.", retry_after_s=1)
    open_counts[who] += 1
    try:
        yield
    finally:
        open_counts[who] -= 1


@contextlib.asynccontextmanager
async def permitted(request: Request, talk: Talk) -> AsyncIterator[asyncio.Event]:
    """Yield what is set when the right to it is gone; the block is to be left then, and the client is told why."""
    lost = asyncio.Event()
    with rights.holding(request, lost.set):
        yield lost
    if lost.is_set() and not talk.is_finished:
        try:
            async with asyncio.timeout(LAST_WORD_S):
                info = request.info
                await talk.finish(
                    {
                        "metadata": {},
                        "status": "Failure",
                        "message": f"{info.subresource} of pod {info.name} was ended: the right to it was taken away, or the token"
                        " has ended. Ask an administrator for the right, or log in with another token.",
                        "reason": "Forbidden",
                        "code": 403,
                    }
                )
        except (Gone, TimeoutError):
            connection.abort(request.scope)
