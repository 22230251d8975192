"""Which of our kinds a server serves, asked group by group; a kind that is not installed is no error."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.remote.http import paths
from cluster.remote.http.request import RestClient, decode
from kube.errors import NotFound
from kube.resources import Resource


def served(connection: RestClient, kinds: Iterable[Resource]) -> frozenset[str]:
    """Return the ids of those kinds that the server serves in our version, so that they can be watched.

    Errors are those of `RestClient.request`: a group that cannot be asked is not one that is not there.
    """
    ids: set[str] = set()
    by_path: dict[str, list[Resource]] = {}
    for kind in kinds:
        by_path.setdefault(paths.version(kind), []).append(kind)
    for path, wanted in by_path.items():
        try:
            answer = decode(connection.request("GET", path))
        except NotFound:
            continue
        verbs = {each.get("name"): each.get("verbs") or () for each in answer.get("resources") or ()}
        ids |= {kind.id for kind in wanted if {"list", "watch"} <= set(verbs.get(kind.plural, ()))}
    return frozenset(ids)
