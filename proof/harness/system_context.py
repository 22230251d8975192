"""What of this process belongs to one of two systems in it: the default database, the backend, and what stands beside the store."""

from __future__ import annotations

import functools
from typing import Any, Self

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from cluster import api
from cluster.consumers import backlog, consumer
from cluster.runtime import nudge, registry
from cluster.store import store
from kube import resources

ALIAS = "default"
SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
# Where a process of the product keeps what it has one of, by the name of what that is here.
ATTRIBUTES: dict[str, list[tuple[Any, str]]] = {
    # The scheduler and who counts for queues ask that of the cluster: it has no other scheduler, and nobody who makes volumes.
    "backend": [(each, "backend") for each in (consumer, backlog, api)],
    "listeners": [(store, "listeners")],
    "random": [(store, "random")],
    "uids": [(store, "uids")],
    "carrier": [(nudge, "_carrier")],
    "runs": [(registry, "_runs")],
    "refresh": [(resources, "_refresh")],
    "target": [(settings, "TARGET")],
}


class SystemContext:
    """A system's part of the process, for the length of a block; blocks of both may be nested."""

    def __init__(self, database: BaseDatabaseWrapper, **values: Any) -> None:
        self.database, self.values = database, values
        self._before: list[SystemContext] = []

    @classmethod
    def here(cls) -> SystemContext:
        """The one that is in force."""
        return cls(connections[ALIAS], **{name: getattr(*where[0]) for name, where in ATTRIBUTES.items()})

    def but(self, database: BaseDatabaseWrapper | None = None, **values: Any) -> SystemContext:
        """Return the same with something else in it; KEPT has the names."""
        return SystemContext(database or self.database, **{**self.values, **values})

    def __enter__(self) -> Self:
        self._before.append(SystemContext.here())
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._before.pop()._take()

    def _take(self) -> None:
        connections[ALIAS] = self.database
        for name, value in self.values.items():
            for where, attribute in ATTRIBUTES[name]:
                setattr(where, attribute, value)


def new_database() -> BaseDatabaseWrapper:
    """A database in memory with the tables of the default one and nothing in them; who asks for it closes it."""
    database = connections.create_connection(ALIAS)
    database.settings_dict = {**database.settings_dict, "NAME": ":memory:"}
    database.ensure_connection()
    database.connection.executescript(_tables())
    return database


@functools.cache
def _tables() -> str:
    with connections[ALIAS].cursor() as cursor:
        return ";\n".join(sql for (sql,) in cursor.execute(SCHEMA).fetchall())
