"""One `up` at a time on a database whose cluster runs here: two would run every pod twice.

SQLite's database is in a state directory, which one `up` at a time uses anyway. In PostgreSQL the claim is an advisory lock,
which ends with the session of its holder, however that ends. A row names the holder for people, and its renewals show that
the holder lives: the server notices only after a while that a machine has gone, and holds its session until then. With
another cluster behind the pages several `up`s may share a database (`cluster.remote.leader_election.standby`, whose row it is).
"""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from cluster.models import ProgramsLease
from node import leftovers
from node.paths import Layout
from volcano_ui import env

LOCK = 0x766F6375  # "vocu": the first of two numbers, of which the second is the schema's
RENEWED_EVERY_S = 2.0
GONE_WITHIN_S = 30.0  # after which PostgreSQL has ended the session of a machine that is gone (env.POSTGRESQL)
LOOK_EVERY_S = 0.5
log = logging.getLogger(__name__)


class DatabaseInUse(Exception):
    """Another `up` uses the database; the message names it and the remedy."""


class UpLocation(NamedTuple):
    """The host and the state directory where an `up` runs, or ran last."""

    host: str
    directory: str

    def __str__(self) -> str:
        return f"{self.host}:{self.directory}"

    @classmethod
    def read(cls, text: str) -> UpLocation:
        """Parse `host:directory`."""
        host, _, directory = text.partition(":")
        return cls(host, directory)


def here() -> UpLocation:
    """Return the location of this process, cut to the length of the database column."""
    longest = ProgramsLease._meta.get_field("holder").max_length or 0
    return UpLocation.read(str(UpLocation(socket.gethostname(), str(settings.DATA)))[:longest])


class Claim:
    """The lock of this `up`, on a connection of its own, which threads use one after another."""

    def __init__(self) -> None:
        self._session: BaseDatabaseWrapper | None = None

    def take(self, within_s: float = GONE_WITHIN_S) -> None:
        """Lock the database, or raise DatabaseInUse: at once if its holder lives, else if its session does not end in time."""
        if connection.vendor != "postgresql":
            return
        deadline = time.monotonic() + within_s
        first = _holder()
        while not self._lock():
            holder = _holder()
            lives = holder and first and holder.renewals != first.renewals
            if lives or time.monotonic() > deadline:
                raise DatabaseInUse(_in_use(holder))
            first = first or holder
            time.sleep(LOOK_EVERY_S)

    def write(self) -> None:
        """Name this `up` as the holder, in a migrated database.

        Raise DatabaseInUse if pods of the previous holder still run on this host, in another state directory.
        """
        with transaction.atomic():
            row, _ = ProgramsLease.objects.get_or_create(id=1)
            before, now = UpLocation.read(row.holder), here()
            if before != now and before.host == now.host and (pods := leftovers.pods(Layout(Path(before.directory)))):
                raise DatabaseInUse(_running_elsewhere(before, pods))
            ProgramsLease.objects.filter(id=1).update(holder=str(now), renewals=F("renewals") + 1)

    def renew(self) -> None:
        """Count up the renewals; raise DatabaseInUse if the session was lost and another `up` has the lock by now."""
        if connection.vendor != "postgresql":
            return
        try:
            if self._session is None and not self._lock():
                raise DatabaseInUse(_in_use(_holder()))
            assert self._session is not None  # noqa: S101  it has just been begun
            with self._session.cursor() as cursor:
                text = "UPDATE cluster_programslease SET holder = %s, renewals = renewals + 1 WHERE id = 1"
                cursor.execute(text, [str(here())])
        except DatabaseError as error:
            log.warning("the lock of the database cannot be renewed: %s", error)
            self.release()
        finally:
            connection.close()

    def release(self) -> None:
        """Unlock the database."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _lock(self) -> bool:
        session = connections.create_connection("default")
        session.inc_thread_sharing()
        with session.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))", [LOCK])
            (is_ours,) = cursor.fetchone()
        if is_ours:
            self._session = session
        else:
            session.close()
        return bool(is_ours)


class Holder(NamedTuple):
    """The `up` that holds the database, and how often it has renewed that."""

    location: UpLocation
    renewals: int


def _holder() -> Holder | None:
    """Return the holder that the row names; None before the first one, and in a database that is not migrated yet."""
    table = ProgramsLease._meta.db_table
    if table not in connection.introspection.table_names():
        return None
    row = ProgramsLease.objects.filter(id=1).values_list("holder", "renewals").first()
    return Holder(UpLocation.read(row[0]), row[1]) if row and row[0] else None


def _in_use(holder: Holder | None) -> str:
    who = ", which is starting"
    if holder:
        who = f" on {holder.location.host} with the state directory {holder.location.directory}"
    return (
        f"The database {env.database_label(settings.DATABASES['default'])} is in use by another `up`{who}."
        " Stop that one, or give this one a database of its own: another DATABASE_URL, or none for SQLite in its"
        " state directory."
    )


def _running_elsewhere(before: UpLocation, pods: list[str]) -> str:
    names = ", ".join(pods[:3]) + (", …" if len(pods) > 3 else "")
    return (
        f"{'A pod' if len(pods) == 1 else f'{len(pods)} pods'} of the database"
        f" {env.database_label(settings.DATABASES['default'])} would run a second time: {names}, going on in the state"
        f" directory {before.directory}, which had it last. Start on that one: {env.up_command(DATA=before.directory)};"
        f" or end what runs there: {env.up_command(DATA=before.directory, RUNNING='end')}, and Ctrl-C."
    )
