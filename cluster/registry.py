"""Who consumes the log: a table that every process may hold without importing the consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from django.utils.module_loading import import_string

from cluster.store.types import AllBut

if TYPE_CHECKING:
    from kube.resources import Resource


@dataclass(frozen=True)
class Registration:
    """One consumer: where its class is, what it reads, which worker processes run it.

    `path` is the dotted path of a `cluster.consumer.Consumer` class; it is
    imported only where the consumer runs. `hears` says what plan() is told
    beside the state:

    state    no change that was made before the state was loaded
    changes  each change once, in order, also those that were made while no process ran the consumer
    edges    the same, each with the JSON that it replaced in `Change.previous`

    Shard 0 runs on the Celery queue
    `queue`, shard n on `<queue>-<n>`, so that a shard's state stays in one
    worker process.
    """

    name: str
    path: str
    resources: tuple[Resource, ...] | AllBut
    hears: Literal["state", "changes", "edges"] = "state"
    queue: str = "controllers"
    shards: int = 1

    def reads(self, id: str) -> bool:  # noqa: A002  it is the attribute's name
        """Tell whether the consumer reads the changes of a kind."""
        if isinstance(self.resources, AllBut):
            return id in self.resources
        return any(kind.id == id for kind in self.resources)

    def cursor_of(self, shard: int) -> str:
        """Return the name of the shard's cursor."""
        return f"{self.name}/{shard}"

    def queue_of(self, shard: int) -> str:
        """Return the Celery queue of the shard."""
        return self.queue if shard == 0 else f"{self.queue}-{shard}"

    def make(self) -> Any:
        """Return a new instance of the consumer."""
        return import_string(self.path)()


_registrations: dict[str, Registration] = {}


def register(registration: Registration) -> None:
    """Add a consumer; call it from the ready() of its application."""
    _registrations[registration.name] = registration


def get(name: str) -> Registration:
    """Return the registration of a consumer; KeyError when there is none."""
    return _registrations[name]


def every() -> list[Registration]:
    """Return all registrations."""
    return list(_registrations.values())


def interested(touched: frozenset[str]) -> list[Registration]:
    """Return those who read one of these resource ids."""
    return [r for r in _registrations.values() if any(map(r.reads, touched))]
