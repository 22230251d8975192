"""Which of several `up`s on one database runs what there may be one of: the mirror, the workers and beat.

A lease in that database says it, by the rules of `lease`: who has it renews it, who stands by watches it, and takes it
when it was not renewed for as long as it lasts. Each holding is a term with a number of its own. What the mirror writes
it writes in its term, so one that was cut off, or stopped for a while, writes nothing over the next one's work. Workers need
no term: each cursor has a lease and a generation (`cluster.runtime.division`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import F

from cluster import clock
from cluster.models import ProgramsLease
from cluster.remote.leader_election import lease
from cluster.remote.leader_election.lease import ObservedLease
from cluster.store import sql

DURATION_S = 10
RETRY_S = 2.0  # between two renewals, and between two looks of who stands by


class Superseded(Exception):
    """The term is over: another `up` runs the programs, or the same one has begun anew."""


class Candidate:
    """One `up` that runs the programs when it is its turn. Its name stays the same when it starts again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._observed: ObservedLease | None = None
        self._term = 0

    def turn(self) -> str:
        """Renew the lease, or take it if that is our turn; return the name of who has it, "" when that is open."""
        row, _ = ProgramsLease.objects.get_or_create(id=1)
        now = clock.monotonic()
        current = ObservedLease(f"{row.term}/{row.renewals}", row.holder, DURATION_S, now)
        self._observed = lease.observed_again(self._observed, current)
        if lease.turn(self._observed, self.name, now) == "wait":
            return row.holder
        if row.holder not in ("", self.name):
            # It may sleep amid a transaction, in which it has locked what this one needs, the lease itself too.
            sql.end_sessions(connection.alias, row.holder)
        is_renewal = (row.holder, row.term) == (self.name, self._term)
        term = row.term if is_renewal else row.term + 1
        unchanged = ProgramsLease.objects.filter(id=1, term=row.term, renewals=row.renewals)
        if not unchanged.update(holder=self.name, term=term, renewals=F("renewals") + 1):
            return ""
        self._term = term
        return self.name

    def leave(self) -> None:
        """Give the lease back, so that nobody waits for its end."""
        mine = ProgramsLease.objects.filter(id=1, holder=self.name, term=self._term)
        mine.update(holder="", renewals=F("renewals") + 1)


def term_of(name: str) -> int | None:
    """Return the term of an `up` by its name, None while it has none."""
    return ProgramsLease.objects.filter(id=1, holder=name).values_list("term", flat=True).first()


@contextmanager
def in_term(term: int) -> Iterator[None]:
    """Write what the block writes in one transaction, during which nobody else can take the lease; Superseded when the term is over."""
    with transaction.atomic():
        # On SQLite the transaction is IMMEDIATE, and nobody else writes.
        lock = " FOR SHARE" if connection.vendor == "postgresql" else ""
        text = "SELECT term FROM cluster_programslease WHERE id = 1 AND holder <> ''"
        rows = sql.rows(connection.alias, text + lock)
        if rows != [(term,)]:
            raise Superseded(f"Another `up` runs the programs; the term {term} of this one is over.")
        yield
