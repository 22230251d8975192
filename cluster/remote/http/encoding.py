"""Groups of writes as bytes, for the time between planning and doing them: pure functions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from cluster.writes import Create, Decision, Delete, Group, Minimum, Patch, Timer, Update, Write
from kube import resources

_KINDS = {kind.__name__: kind for kind in (Create, Update, Patch, Delete)}


class _Group(msgspec.Struct):
    """A group whose writes are mappings."""

    writes: list[dict[str, Any]]
    key: str
    timers: list[Timer]
    cancel: list[tuple[str, str]]
    minima: list[Minimum]
    decisions: list[Decision] = []


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Group).decode


def encode(group: Group) -> bytes:
    """Return a group as bytes, one of which `announced` is among the writes (`in_place`).

    Of `within_quota` nothing is kept: an API server asks its quotas itself.
    """
    writes = [
        {**structs.asdict(write), "resource": write.resource.id, "write": type(write).__name__}
        for write in group.writes
    ]
    timers, minima, decisions = list(group.timers), list(group.minima), list(group.decisions)
    return _encode(_Group(writes, group.key, timers, list(group.cancel), minima, decisions))


def decode(body: bytes) -> Group:
    """Return the group that `encode` wrote down."""
    group = _decode(body)
    writes: list[Write] = []
    for fields in group.writes:
        kind = _KINDS[fields.pop("write")]
        writes.append(kind(**{**fields, "resource": resources.by_id(fields["resource"])}))
    return Group(
        writes, group.key, timers=group.timers, cancel=group.cancel, minima=group.minima, decisions=group.decisions
    )
