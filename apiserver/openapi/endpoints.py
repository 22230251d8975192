"""`/openapi/v3` and `/openapi/v2` over HTTP (reference: kubernetes-api §3.2)."""

from __future__ import annotations

import msgspec
from starlette.responses import RedirectResponse, Response

from apiserver.http import forms, routes, threads
from apiserver.http.request import Request
from apiserver.openapi import documents
from apiserver.openapi.documents import Document
from kube.errors import NotAcceptable, NotFound

JSON = "application/json"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
# What the answer says instead: an @ may not stand in a Content-Type.
PROTOBUF_ANSWER = PROTOBUF.replace("@", ".")
FOREVER = "public, immutable, max-age=31536000"
ROOT = "/openapi/v3"


@routes.path("/openapi/v3")
async def index(request: Request) -> Response:
    """Answer with the addresses of all documents, each with the hash of what is there."""
    _chosen(request, (JSON,))
    addresses = await threads.read(_addresses)
    return Response(msgspec.json.encode({"paths": addresses}), media_type=JSON)


@routes.path(f"{ROOT}/api", prefix=True)
async def core(request: Request) -> Response:
    """Answer with the document of the core group."""
    return await _group_version(request)


@routes.path(f"{ROOT}/apis", prefix=True)
async def groups(request: Request) -> Response:
    """Answer with the document of a group's version."""
    return await _group_version(request)


@routes.path("/openapi/v2")
async def version2(request: Request) -> Response:
    """Answer with the document of everything, as JSON or as protobuf."""
    chosen = _chosen(request, (JSON, PROTOBUF, PROTOBUF_ANSWER))
    found = await threads.read(documents.version2)
    if chosen == JSON:
        return _answer(request, found["json"], JSON)
    return _answer(request, found["protobuf"], PROTOBUF_ANSWER)


async def _group_version(request: Request) -> Response:
    _chosen(request, (JSON,))
    path = request.path.removeprefix(f"{ROOT}/").rstrip("/")
    found = await threads.read(documents.version3, path)
    if found is None:
        raise NotFound()
    given = request.query.get("hash")
    if given is None:
        return _answer(request, found, JSON)
    if given != found.hash:
        return RedirectResponse(_address(path, found), 301)
    return _answer(request, found, JSON, FOREVER)


def _addresses() -> dict[str, dict[str, str]]:
    found = {path: documents.version3(path) for path in documents.group_versions()}
    return {path: {"serverRelativeURL": _address(path, made)} for path, made in found.items() if made}


def _address(path: str, found: Document) -> str:
    return f"{ROOT}/{path}?hash={found.hash}"


def _chosen(request: Request, offered: tuple[str, ...]) -> str:
    """Return the first media type of the Accept header that is offered; NotAcceptable if there is none."""
    for wanted, _ in forms.clauses(request.headers.get("accept", "")):
        if wanted in ("*/*", "application/*"):
            return offered[0]
        if wanted in offered:
            return wanted
    raise NotAcceptable.of(offered)


def _answer(request: Request, found: Document, media_type: str, cache: str = "no-cache, private") -> Response:
    head = {"ETag": f'"{found.hash}"', "Vary": "Accept, Accept-Encoding", "Cache-Control": cache}
    if head["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=head)
    head["Content-Type"] = media_type
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers={**head, "Content-Encoding": "gzip"})
    return Response(found.body, headers=head)
