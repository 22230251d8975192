"""Bodies that client-go 0.34 wrote, each beside the JSON that it writes of the same object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kube import protobuf

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.pb"))


def without_nulls(value):
    """A null in Go's JSON is an absent value; protobuf has no nulls."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_body_reads_as_the_json_of_the_same_client(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert protobuf.decode(path.read_bytes()) == without_nulls(expected)


def test_there_are_bodies():
    assert len(GOLDEN) > 20
