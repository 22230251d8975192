"""The documents that are served: one of OpenAPI 3.0 for each group and version, and one of 2.0 for all.

A document is made when first asked for, or by `warm` in a thread beforehand,
and kept compressed until the resources that it describes change.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterable
from operator import is_
from typing import NamedTuple

import msgspec

from apiserver.health import VERSION
from apiserver.openapi import gnostic, operations, swagger
from apiserver.openapi.definitions import definitions, referred
from kube import resources
from kube.meta import Object
from kube.resource import Resource

INFO = {"title": "volcano-ui", "version": VERSION}
LEVEL = 6  # of compression: documents of megabytes become tens of kilobytes

_lock = threading.RLock()
_version3: dict[str, tuple[tuple[Resource, ...], Document]] = {}
_version2: tuple[tuple[Resource, ...], dict[str, Document]] | None = None


class Document(NamedTuple):
    """A document as it is sent; hash is that of its text."""

    compressed: bytes
    hash: str

    @property
    def body(self) -> bytes:
        """The text itself."""
        return gzip.decompress(self.compressed)


def version3(path: str) -> Document | None:
    """Return the document of a group's version: path is `api/v1` or `apis/batch/v1`."""
    with _lock:
        served = group_versions().get(path)
        if served is None:
            return None
        cached = _version3.get(path)
        if cached is None or not _same(cached[0], served):
            _version3[path] = cached = (served, _compressed(msgspec.json.encode(content(served))))
        return cached[1]


def version2() -> dict[str, Document]:
    """Return the document of everything as JSON (`json`) and in gnostic's form (`protobuf`)."""
    global _version2
    with _lock:
        served = resources.served()
        if _version2 is None or not _same(_version2[0], served):
            whole = swagger.document(*_parts(served), INFO)
            documents = {
                "json": _compressed(msgspec.json.encode(whole)),
                "protobuf": _compressed(gnostic.document(whole)),
            }
            _version2 = (served, documents)
        return _version2[1]


def group_versions() -> dict[str, tuple[Resource, ...]]:
    """Return what is served of each group and version, by path."""
    served: dict[str, list[Resource]] = {}
    for resource in resources.served():
        served.setdefault(operations.root(resource).removeprefix("/"), []).append(resource)
    return {path: tuple(served[path]) for path in sorted(served)}


def warm() -> threading.Thread:
    """Begin to make all documents of version 3 in a thread, so that no client waits for them."""
    thread = threading.Thread(target=_make_all, name="openapi", daemon=True)
    thread.start()
    return thread


def content(served: tuple[Resource, ...]) -> Object:
    """Return the OpenAPI 3.0 document of these resources."""
    paths, schemas = _parts(served)
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}}},
        "security": [{"BearerToken": []}],
    }


def _parts(served: Iterable[Resource]) -> tuple[Object, Object]:
    paths: Object = {}
    names = set()
    for resource in served:
        paths |= operations.paths(resource)
        names.add(definitions.of(resource))
    names.update(referred(paths))
    return dict(sorted(paths.items())), definitions.reachable(names)


def _compressed(body: bytes) -> Document:
    digest = hashlib.sha512(body).hexdigest().upper()
    return Document(gzip.compress(body, LEVEL, mtime=0), digest)


def _make_all() -> None:
    for path in group_versions():
        version3(path)


def _same(one: tuple[Resource, ...], other: tuple[Resource, ...]) -> bool:
    # Resources are equal by their id, so that only identity shows a change of one of them.
    return len(one) == len(other) and all(map(is_, one, other))
