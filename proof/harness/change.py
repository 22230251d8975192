"""What a snapshot hears of, without a store."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A change of an object, as `scheduler.snapshot.snapshot.Changed` describes it."""

    resource: str
    namespace: str
    name: str
    verb: str
    at: int
    body: bytes
