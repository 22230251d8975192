"""Worlds in which everything is small: what is met once in a million times elsewhere is met each minute there.

Batches of a few rows, transactions that hold a few objects, a history of less
than a minute, and generated names that are mostly the same. None of these
numbers is part of what is promised, so all promises hold with others, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from django.conf import settings

from apiserver.watch import answer, stream, stream_keeper, window
from apiserver.watch.log_follower import WatchFollower
from cluster.consumers import consumer
from cluster.controllers import definitions, garbage, namespaces
from cluster.runtime import retention
from cluster.store import sql
from dashboard.live import hub
from jobs.consumers import job_controller, state
from jobs.controller import plan
from node import listen
from node.simulator import simulator

SECOND = 0.1  # how often a letter of a generated name is not the first one

SMALL: tuple[tuple[Any, str, Any], ...] = (
    (consumer, "BATCH", 4),
    (consumer, "ROUNDS", 3),
    (consumer, "LAG", 20),
    (sql, "CHUNK", 3),
    (retention, "BATCH", 7),
    (garbage, "ROOM", 3),
    (garbage, "MAX_ALIVE", 5),
    (namespaces, "ROOM", 3),
    (definitions, "ROOM", 3),
    (job_controller, "ROOM", 6),
    (state, "CHUNK", 2),
    (plan.reconcile, "__kwdefaults__", {**(plan.reconcile.__kwdefaults__ or {}), "room": 3}),
    (listen, "BATCH", 3),
    (WatchFollower, "batch", 4),
    (stream, "OBJECTS", 3),
    (stream, "SPAN", 20),
    (stream, "REPLAYED", 3),
    (window, "MAX_ENTRIES", 8),
    (hub.Hub, "batch", 6),
    (hub.Hub, "most", 12),
    (simulator, "BATCH", 4),
    (settings, "HISTORY_HOURS", 0.01),
)


# Numbers by which the machine's speed would have a say, and how often somebody looks who nearly always finds nothing.
PACE: tuple[tuple[Any, str, Any], ...] = ((hub, "REST", 0.0), (stream_keeper, "LOOK_EVERY_S", 5.0))


def pace(seed: int) -> AbstractContextManager[None]:
    """Have nothing hang on the machine inside the block: neither its speed nor its chance."""
    chance = Random(seed + 2)
    return _with((*PACE, (stream_keeper, "_random", chance), (answer, "_random", chance)))


def rooms() -> AbstractContextManager[None]:
    """Have everything be small inside the block."""
    return _with(SMALL)


@contextmanager
def _with(numbers: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    with ExitStack() as stack:
        for where, name, value in numbers:
            stack.enter_context(patch.object(where, name, value))
        yield


class FewNames(Random):
    """Chance by which generated names are mostly the same; for all else it is like any other."""

    def choice(self, seq: Any) -> Any:
        """Return a letter that is nearly always the first of the alphabet."""
        return seq[self.random() < SECOND] if isinstance(seq, str) else super().choice(seq)
