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
    by_form = await threads.read(documents.version2)
    if chosen == JSON:
        return _answer(request, by_form["json"], JSON)
    return _answer(request, by_form["protobuf"], PROTOBUF_ANSWER)


async def _group_version(request: Request) -> Response:
    _chosen(request, (JSON,))
    path = request.path.removeprefix(f"{ROOT}/").rstrip("/")
    document = await threads.read(documents.version3, path)
    if document is None:
        raise NotFound()
    requested_hash = request.query.get("hash")
    if requested_hash is None:
        return _answer(request, document, JSON)
    if requested_hash != document.hash:
        return RedirectResponse(_address(path, document), 301)
    return _answer(request, document, JSON, FOREVER)


def _addresses() -> dict[str, dict[str, str]]:
    versions = {path: documents.version3(path) for path in documents.group_versions()}
    return {path: {"serverRelativeURL": _address(path, document)} for path, document in versions.items() if document}


def _address(path: str, document: Document) -> str:
    return f"{ROOT}/{path}?hash={document.hash}"


def _chosen(request: Request, offered: tuple[str, ...]) -> str:
    """Return the first media type of the Accept header that is offered; NotAcceptable if there is none."""
    for wanted, _ in forms.clauses(request.headers.get("accept", "")):
        if wanted in ("*/*", "application/*"):
            return offered[0]
        if wanted in offered:
            return wanted
    raise NotAcceptable.of(offered)


def _answer(request: Request, document: Document, media_type: str, cache: str = "no-cache, private") -> Response:
    head = {"ETag": f'"{document.hash}"', "Vary": "Accept, Accept-Encoding", "Cache-Control": cache}
    if head["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=head)
    head["Content-Type"] = media_type
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(document.compressed, headers={**head, "Content-Encoding": "gzip"})
    return Response(document.body, headers=head)
