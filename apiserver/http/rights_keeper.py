"""Whatever lasts ends with the right that opened it: one keeper for watches, followed logs, exec, attach and port-forward.

Every `LOOK_S` seconds it asks once for all that was opened with the same
credentials for the same: are they still good, and do they still carry the
right? Roles are read anew for it, and tokens are at most
`authentication.CACHED_S` old, so a right that is taken away, by whichever
process, ends what it allowed within two seconds. Tens of thousands of watches
of a few clients cost a few queries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from apiserver.http import authentication, authorize, threads
from apiserver.http.request import Request
from cluster import access
from cluster.access import Actor
from cluster.api import rights
from cluster.runtime.outage import AWAY, Outage
from kube import resources
from kube.errors import Forbidden
from kube.resources import Resource

LOOK_S = 1.0
log = logging.getLogger(__name__)


class Right(NamedTuple):
    """What something that lasts needs to go on: arguments of `authorize.require`."""

    actor: Actor
    verb: str
    target: str
    resource: Resource
    namespace: str
    name: str
    fields: str


class Claim(NamedTuple):
    """By what it was opened; what has the same claim ends together."""

    credentials: tuple[tuple[str, str], ...]
    right: Right


class Held:
    """One thing that lasts, and how it is ended."""

    __slots__ = ("end", "request")

    def __init__(self, request: Request, end: Callable[[], None]) -> None:
        self.request = request
        self.end = end


class RightsKeeper:
    """What lasts in this process, by its claims. Used from one event loop at a time."""

    def __init__(self) -> None:
        self._held: dict[Claim, dict[Held, None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._outage = Outage("looking whether watches, logs and commands may go on", log)

    @contextmanager
    def holding(self, request: Request, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` once, in the event loop, if the right to the request is gone before the block is over."""
        info = request.info
        assert info.resource is not None  # noqa: S101  nothing else lasts
        namespace = rights.right_namespace(info.resource, info.namespace, info.name)
        fields = request.query.get("fieldSelector", "")
        right = Right(request.actor, info.verb, info.target, info.resource, namespace, info.name, fields)
        claim, held = Claim(authentication.credentials(request.headers), right), Held(request, end)
        self._held.setdefault(claim, {})[held] = None
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self._task = asyncio.create_task(self._look_forever())
        try:
            yield
        finally:
            holders = self._held.get(claim, {})
            holders.pop(held, None)
            if not holders:
                self._held.pop(claim, None)

    async def _look_forever(self) -> None:
        """Look until nothing is held."""
        while self._held:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
                self._outage.over()
            except AWAY as error:
                self._outage.lasts(error)
            except Exception:
                log.exception("rights could not be looked at")

    async def _look(self) -> None:
        valid = []
        for claim in list(self._held):
            resource = claim.right.resource
            current = resources.by_path(resource.group, resource.version, resource.plural)
            first = next(iter(self._held.get(claim, ())), None)
            if resource.schema is not None and current is not resource:
                self._end(claim)  # a custom resource was defined anew or removed: its clients must ask again
            # Who came without credentials was let in by other means, which do not expire.
            elif first is not None and claim.credentials and not await authentication.still_valid(first.request):
                self._end(claim)
            else:
                valid.append(claim)
        for claim in await threads.read(_lost, valid):
            self._end(claim)

    def _end(self, claim: Claim) -> None:
        for held in self._held.pop(claim, {}):
            held.end()


def _lost(claims: Sequence[Claim]) -> list[Claim]:
    same: dict[Actor, Actor] = {}  # equal actors share what is read of their roles
    lost = []
    for claim in claims:
        right = claim.right
        if right.actor not in same:
            access.renew(right.actor)
        actor = same.setdefault(right.actor, right.actor)
        try:
            if not access.is_system(actor):
                authorize.require(actor, *right[1:])
        except Forbidden:
            lost.append(claim)
    return lost


keeper = RightsKeeper()
