"""Which of our kinds a server serves, asked group by group; a kind that is not installed is no error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cluster.remote.http import paths
from cluster.remote.http.request import RestClient
from kube.errors import NotFound
from kube.resources import Resource

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def served(connection: RestClient, kinds: Iterable[Resource]) -> frozenset[str]:
    """Return the ids of those kinds that the server serves in our version, so that they can be watched.

    Errors are those of `RestClient.request`: a group that cannot be asked is not one that is not there.
    """
    found: set[str] = set()
    by_path: dict[str, list[Resource]] = {}
    for kind in kinds:
        by_path.setdefault(paths.version(kind), []).append(kind)
    for path, wanted in by_path.items():
        try:
            answer = _decode(connection.request("GET", path))
        except NotFound:
            continue
        found |= _among(answer, wanted)
    return frozenset(found)


def _among(answer: dict[str, Any], wanted: Iterable[Resource]) -> set[str]:
    """Return the ids of the kinds that an APIResourceList has with list and watch."""
    offered = {
        each.get("name") for each in answer.get("resources") or () if {"list", "watch"} <= set(each.get("verbs") or ())
    }
    return {kind.id for kind in wanted if kind.plural in offered}
