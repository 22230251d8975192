"""Who consumes the log: a table that every process may hold without importing the consumers.

Applications register which consumers there are. Which of them run is another question, with one answer for all who ask:
`running()`. All run unless `use` says otherwise, as for a cluster that has controllers of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

from django.utils.module_loading import import_string

from cluster.store.types import AllBut, Single
from kube.resources import Resource

QUEUE = "controllers"  # the Celery queue of whoever names no other


def shard_of(key: str, shards: int) -> int:
    """Return which of so many shards a key belongs to."""
    return crc32(key.encode()) % shards


@dataclass(frozen=True)
class Registration:
    """One consumer: where its class is, what it reads, which worker processes run it.

    `path` is the dotted path of a `cluster.consumers.consumer.Consumer` class; it is imported only where the consumer
    runs. `hears` says which changes plan() gets beside the state:

    state    no change that was made before the state was loaded
    changes  each change once, in order, also those that were made while no process ran the consumer
    edges    the same, each with the JSON that it replaced in `Change.previous`

    A `Single` among the resources is one object of a kind. What is written to others of the kind wakes nobody and
    is not read, so its own changes are found by beat's next tick.

    Shard 0 runs on the Celery queue `queue`, shard n on `<queue>-<n>`, so that a shard's state stays in one worker
    process.
    """

    name: str
    path: str
    resources: tuple[Resource | Single, ...] | AllBut
    hears: Literal["state", "changes", "edges"] = "state"
    queue: str = QUEUE
    shards: int = 1

    @property
    def kinds(self) -> tuple[Resource, ...]:
        """The kinds of which it reads something; none are named where it reads all but some."""
        if isinstance(self.resources, AllBut):
            return ()
        return tuple(each.resource if isinstance(each, Single) else each for each in self.resources)

    def reads(self, id: str) -> bool:  # noqa: A002  it is the attribute's name
        """Tell whether the consumer reads the changes of a kind as a whole."""
        if isinstance(self.resources, AllBut):
            return id in self.resources
        return any(kind.id == id for kind in self.resources if not isinstance(kind, Single))

    def cursor_of(self, shard: int) -> str:
        """Return the name of the shard's cursor."""
        return f"{self.name}/{shard}"

    def queue_of(self, shard: int) -> str:
        """Return the Celery queue of the shard."""
        return self.queue if shard == 0 else f"{self.queue}-{shard}"

    @property
    def cursors(self) -> list[str]:
        """The names of all shards' cursors."""
        return [self.cursor_of(shard) for shard in range(self.shards)]

    @property
    def queues(self) -> list[str]:
        """The Celery queues of all shards."""
        return [self.queue_of(shard) for shard in range(self.shards)]

    def make(self) -> Any:
        """Return a new instance of the consumer."""
        return import_string(self.path)()


_registrations: dict[str, Registration] = {}
_runs: Callable[[Registration], bool] = lambda registration: True  # noqa: E731


def register(registration: Registration) -> None:
    """Add a consumer; call it from the ready() of its application."""
    _registrations[registration.name] = registration


def get(name: str) -> Registration:
    """Return the registration of a consumer; KeyError when there is none."""
    return _registrations[name]


def every() -> list[Registration]:
    """Return all registrations."""
    return list(_registrations.values())


def use(runs: Callable[[Registration], bool]) -> None:
    """Let only those consumers run for which this is true; call it before any process asks who runs."""
    global _runs
    _runs = runs


def has_reader(cursor: str) -> bool:
    """Tell whether a cursor, by its name, is one of a consumer that runs.

    Also one of a shard that is no more: until other shards have taken its
    place, it says which changes and timers they still need.
    """
    return any(each.name == cursor.partition("/")[0] for each in running())


def running() -> list[Registration]:
    """Return the registrations of the consumers that run."""
    return [registration for registration in every() if _runs(registration)]


def interested(touched: frozenset[str]) -> list[Registration]:
    """Return those who run and read one of these resource ids."""
    return [r for r in running() if any(map(r.reads, touched))]


def queues() -> list[str]:
    """Return the Celery queues of all who run, each once, and first the one for work that is nobody's."""
    return list(dict.fromkeys([QUEUE, *(queue for each in running() for queue in each.queues)]))
