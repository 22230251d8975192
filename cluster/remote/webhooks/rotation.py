"""When the webhooks' certificate, and the authority that issues it, are made anew; pure, the moment is handed in.

Both are renewed when a third of their life is left. An API server trusts a new authority some time after that, so
the old and the new one are trusted together for a while: first the new one is made known, then it issues the certificate
that is served, and when nobody shows the old certificate any more the old authority is forgotten.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple


class Lives(NamedTuple):
    """How long things last, and for how long two authorities are trusted before and after the certificate changes."""

    authority: timedelta = timedelta(days=365)
    server: timedelta = timedelta(days=90)
    overlap: timedelta = timedelta(hours=1)


class Span(NamedTuple):
    """From when to when a certificate is valid."""

    begins: datetime
    ends: datetime

    def is_due(self, now: datetime) -> bool:
        """Whether no more than a third is left."""
        return (self.ends - now) * 3 <= self.ends - self.begins


class Held(NamedTuple):
    """The authorities that are trusted, the newest last; and of what is served its span, issuer (a place among them) and names."""

    authorities: tuple[Span, ...]
    server: Span
    issuer: int
    names: frozenset[str]


class Step(StrEnum):
    """What is to be done next."""

    NONE = "nothing"
    BEGIN = "make everything"
    AUTHORITY = "make a new authority"
    SERVER = "have the newest authority issue a certificate"
    RETIRE = "forget the older authorities"


def next_step(held: Held | None, names: frozenset[str], now: datetime, lives: Lives, *, is_trusted: bool) -> Step:
    """Say what is to be done about what is held (None: nothing that is of use).

    `names` are those by which the server is reached; `is_trusted` says whether all authorities have been published.
    """
    if held is None or held.authorities[-1].ends <= now:
        return Step.BEGIN
    newest, last = held.authorities[-1], len(held.authorities) - 1
    if held.names != names or held.server.ends <= now:
        return Step.SERVER  # what is served is of no use, so there is nothing to wait for
    if newest.is_due(now):
        return Step.AUTHORITY
    is_published = not last or (is_trusted and now - newest.begins >= lives.overlap)
    if is_published and (held.issuer != last or held.server.is_due(now)):
        return Step.SERVER
    if last and held.issuer == last and now - held.server.begins >= lives.overlap:
        return Step.RETIRE
    return Step.NONE
