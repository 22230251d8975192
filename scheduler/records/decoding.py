"""Decoding objects of the log into the views of `scheduler.records.reading`."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kube.meta import parse_time

T = TypeVar("T")

_decoders: dict[type, msgspec.json.Decoder[object]] = {}


def decode(body: bytes, kind: type[T]) -> T:
    """Return an object as a view; raise msgspec.ValidationError where it does not fit."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(body)  # type: ignore[return-value]
    except msgspec.ValidationError:
        # Kubernetes treats null as absent; that is rare enough to decode twice.
        return decoder.decode(msgspec.json.encode(_without_nulls(msgspec.json.decode(body))))  # type: ignore[return-value]


def time_of(text: str) -> int:
    """Return a time of an object in epoch ms, 0 where it cannot be read."""
    try:
        return parse_time(text)
    except ValueError:
        return 0


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(some) for key, some in value.items() if some is not None}
    return [_without_nulls(some) for some in value] if isinstance(value, list) else value
