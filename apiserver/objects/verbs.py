"""The verbs of stored objects (reference: kubernetes-api §2.1 to §2.4). Every change goes through `cluster.api`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast

from starlette.responses import Response, StreamingResponse

from apiserver import openapi
from apiserver import watch as watching
from apiserver.http import bodies, forms, intake, listing, query, respond, threads
from apiserver.http.bodies import Decoded
from apiserver.http.query import WriteOptions
from apiserver.http.request import Request
from apiserver.openapi.operations import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, patch_types
from cluster import api
from cluster.backend import Creation
from cluster.rules.batch.jobs import ORPHAN_WARNING
from cluster.store import Stored, store
from kube import errors
from kube.errors import ApiError, BadRequest, Invalid, MethodNotAllowed, NotFound, Timeout, UnsupportedMediaType
from kube.meta import Object
from kube.resources import BATCH_JOBS, Resource

HOW: dict[str, Literal["json", "merge", "strategic"]] = {
    JSON_PATCH: "json",
    MERGE_PATCH: "merge",
    STRATEGIC_PATCH: "strategic",
}
DELETE_OPTIONS = "DeleteOptions"
# Kinds whose deletion answers with what was deleted; the others answer with a Status (§2.4).
RETURNED = frozenset(
    {"pods", "services", "persistentvolumeclaims", "serviceaccounts", "resourcequotas", "podtemplates"}
)
SENT_AT_ONCE = 64 * 1024  # bytes of a list handed to the socket at a time


async def answer(request: Request) -> Response:
    """Answer a request for stored objects, or raise the ApiError that is the answer."""
    handler = HANDLERS.get(request.info.verb)
    if handler is None:
        raise MethodNotAllowed()
    return await handler(request)


def _resource(request: Request) -> Resource:
    resource = request.info.resource
    if resource is None:
        raise NotFound()
    return resource


async def get(request: Request) -> Response:
    """Read one object, or its status."""
    info, resource = request.info, _resource(request)
    wanted = query.revision(request.query.get("resourceVersion", ""))
    stored = await threads.read(_get, resource, info.namespace, info.name, wanted)
    return await _answer_with(request, stored)


def _get(resource: Resource, namespace: str, name: str, wanted: int) -> Stored:
    with store.reading() as head:
        if wanted > head:
            raise Timeout.too_large_resource_version(wanted, head)
        return store.get(resource, namespace, name)


async def list_(request: Request) -> Response:
    """List objects."""
    resource = _resource(request)
    options = query.list_options(request.query, resource)
    query.check_list(options, watch=False)
    page = await threads.read(listing.find, resource, request.info.namespace, options)
    pieces = forms.write_list(request.form, resource, page.items, page.metadata, request.now)
    as_stored = forms.as_stored(request.form, resource)
    if not as_stored and _large(page.items):
        return respond.respond(request, await intake.work(b"".join, pieces))
    if len(page.items) <= 100 or not as_stored:
        return respond.respond(request, b"".join(pieces))
    response = StreamingResponse(_gathered(pieces), media_type=None)
    response.headers["Content-Type"] = request.form.content_type
    return respond.finish(request, response)


def _large(items: list[Stored]) -> bool:
    """Whether it takes long to write objects in another form than the stored one."""
    return len(items) > 100 or sum(len(item.body) for item in items) > intake.LARGE


async def _answer_with(request: Request, stored: Stored, status: int = 200) -> Response:
    """Answer with one object; in another form than the stored one a large object takes long."""
    resource = _resource(request)
    if forms.as_stored(request.form, resource) or not _large([stored]):
        return respond.object(request, stored, status)
    body = await intake.work(forms.write, request.form, resource, stored, request.now)
    return respond.respond(request, body, status)


async def watch(request: Request) -> Response:
    """Send what changes, for as long as the client listens."""
    resource = _resource(request)
    options = query.list_options(request.query, resource)
    query.check_list(options, watch=True)
    return await watching.watch(request, resource, options)


async def _gathered(pieces: Any) -> Any:
    """Join the pieces of a list into parts that are worth a write."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= SENT_AT_ONCE:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


async def create(request: Request) -> Response:
    """Store a new object."""
    info, resource = request.info, _resource(request)
    if resource.namespaced and not info.namespace:
        raise MethodNotAllowed()
    options = query.write_options(request.query, request.user_agent, request.method)
    decoded = await request.decoded()
    obj = placed(request, bodies.as_object(decoded.value))
    await _check_fields(request, resource, options, decoded)
    if options.dry_run:
        with _read_as(resource):
            stored = await threads.write(
                api.create, request.actor, resource, obj, manager=options.manager, dry_run=True, warn=request.warn
            )
    else:
        creation = Creation(request.actor, resource, obj, options.manager, request.warn)
        with _read_as(resource):
            stored = await threads.write_together(api.create_each, creation, resource)
    return await _answer_with(request, stored, 201)


@contextmanager
def _read_as(resource: Resource) -> Iterator[None]:
    """Refuse an object whose values have other types than its fields as one that cannot be read.

    Kubernetes reads its own kinds into types of Go, so that it says BadRequest of such a body. To kinds that
    others define, such as Volcano's, it applies a schema: they are Invalid, and so is whatever a patch makes.
    """
    try:
        yield
    except Invalid as problem:
        wrong = [str(each) for each in problem.causes if each.reason == errors.WRONG_TYPE]
        if not wrong or resource.is_custom:
            raise
        raise BadRequest(f"{_unread(resource)}: {', '.join(wrong)}") from None


def _unread(resource: Resource) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def placed(request: Request, obj: Object) -> Object:
    """Put the namespace of the path into an object, and its name where the path has one."""
    info, resource = request.info, _resource(request)
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"metadata must be a mapping, not {errors.quoted(metadata)}.")
    if info.name:
        name = metadata.get("name") or info.name
        if name != info.name:
            raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({info.name})")
    if not resource.namespaced:
        return {**obj, "metadata": {**metadata, "name": info.name}} if info.name else obj
    namespace = metadata.get("namespace") or info.namespace
    if namespace != info.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request:"
            f" {namespace} and {info.namespace}"
        )
    named = {"name": info.name} if info.name else {}
    return {**obj, "metadata": {**metadata, **named, "namespace": info.namespace}}


async def _check_fields(
    request: Request, resource: Resource, options: WriteOptions, decoded: Decoded, how: str = ""
) -> None:
    """Refuse fields that are unknown or given twice, or warn of them, as fieldValidation says.

    `how` is the kind of patch that was sent, "" for a whole object.
    """
    if options.validation == "Ignore":
        return
    problems = [f'duplicate field "{path}"' for path in decoded.duplicates]
    if request.content_type != bodies.PROTOBUF:  # its fields are known by number, the others are skipped
        problems += await request.work(_unknown_fields, resource, decoded.value, how)
    if problems and options.validation == "Strict":
        what = "" if how else f"{_unread(resource)}: "
        raise BadRequest(f"{what}strict decoding error: {', '.join(problems[:50])}")
    for text in problems:
        request.warn(text)


def _unknown_fields(resource: Resource, value: Any, how: str) -> list[str]:
    paths: dict[str, None] = {}
    for part in openapi.written(value, how) if how else [value]:
        if len(paths) < openapi.MOST:
            paths.update(dict.fromkeys(openapi.unknown_fields(resource, part)))
    return [f'unknown field "{path}"' for path in paths]


async def update(request: Request) -> Response:
    """Replace an object, or its status."""
    resource = _resource(request)
    options = query.write_options(request.query, request.user_agent, request.method)
    decoded = await request.decoded()
    obj = placed(request, bodies.as_object(decoded.value))
    await _check_fields(request, resource, options, decoded)
    with _read_as(resource):
        stored = await threads.write(api.update, request.actor, resource, obj, **_change_options(request, options))
    return await _answer_with(request, stored)


def _change_options(request: Request, options: WriteOptions) -> dict[str, Any]:
    """Return the options that updating, patching and applying have in common."""
    return {
        "manager": options.manager,
        "subresource": request.info.subresource,
        "dry_run": options.dry_run,
        "warn": request.warn,
    }


async def patch(request: Request) -> Response:
    """Change parts of an object, or apply what somebody wants of it."""
    resource = _resource(request)
    kind = request.content_type
    if kind == APPLY_PATCH:
        return await apply(request)
    how = HOW.get(kind)
    if how is None or (how == "strategic" and resource.schema is not None):
        raise UnsupportedMediaType.of(patch_types(resource))
    options = query.write_options(request.query, request.user_agent, request.method)
    if "force" in request.query:
        cause = errors.forbidden("force", "may not be specified for non-apply patch")
        raise Invalid.of("PatchOptions.meta.k8s.io", "", [cause])
    decoded = await request.decoded(bodies.JSON)
    await _check_fields(request, resource, options, decoded, how)
    key = request.info.namespace, request.info.name
    stored = await threads.write(
        api.patch, request.actor, resource, *key, decoded.value, how=how, **_change_options(request, options)
    )
    return await _answer_with(request, stored)


async def apply(request: Request) -> Response:
    """Apply what a manager wants of an object, creating the object where it is missing."""
    resource = _resource(request)
    options = query.write_options(request.query, request.user_agent, request.method)
    if not request.query.get("fieldManager"):
        cause = errors.required("fieldManager", "is required for apply patch")
        raise Invalid.of("PatchOptions.meta.k8s.io", "", [cause])
    decoded = await request.decoded(bodies.YAML)
    config = placed(request, bodies.as_object(decoded.value))
    await _check_fields(request, resource, options, decoded)
    key = request.info.namespace, request.info.name
    stored, created = await threads.write(
        api.apply, request.actor, resource, *key, config, force=options.force, **_change_options(request, options)
    )
    return await _answer_with(request, stored, 201 if created else 200)


async def delete(request: Request) -> Response:
    """Delete an object; the answer is its last state, or a Status where the kind answers so."""
    info, resource = request.info, _resource(request)
    options = query.delete_options(request.query, await _delete_body(request))
    _warn_of_orphans(request, resource, options)
    stored, waits = await threads.write(_delete, request, resource, options)
    if waits or resource.id in RETURNED:
        return await _answer_with(request, stored)
    details = {"name": info.name, "group": resource.group, "kind": resource.plural, "uid": stored.uid}
    return respond.success(request, {key: value for key, value in details.items() if value})


def _warn_of_orphans(request: Request, resource: Resource, options: query.DeleteOptions) -> None:
    if resource is BATCH_JOBS and not options.propagation:
        request.warn(ORPHAN_WARNING)


async def _delete_body(request: Request) -> Object | None:
    if not await request.body():
        return None
    body = await request.object()
    if body.get("kind", DELETE_OPTIONS) != DELETE_OPTIONS:
        raise BadRequest(f"The body of a DELETE is a {DELETE_OPTIONS}, not {body.get('kind')!r:.100}.")
    return body


def _delete(request: Request, resource: Resource, options: query.DeleteOptions) -> tuple[Stored, bool]:
    """Delete an object; return its last state, and whether it waits to go."""
    info = request.info
    stored = api.delete(
        request.actor,
        resource,
        info.namespace,
        info.name,
        uid=options.uid,
        version=options.version,
        grace=options.grace,
        propagation=options.propagation or None,
        dry_run=options.dry_run,
    )
    is_marked = bool(stored.object["metadata"].get("deletionTimestamp"))
    if not is_marked or options.dry_run:
        return stored, is_marked
    # One that waited already may have gone with this second deletion.
    current = store.get_or_none(resource, stored.namespace, stored.name)
    return stored, current is not None and current.uid == stored.uid


async def delete_collection(request: Request) -> Response:
    """Delete what the selectors choose, each object for itself; the answer lists what was chosen."""
    resource = _resource(request)
    if resource.namespaced and not request.info.namespace:
        raise MethodNotAllowed()
    chosen = query.list_options(request.query, resource)
    query.check_list(chosen, watch=False)
    options = query.delete_options(request.query, await _delete_body(request))
    _warn_of_orphans(request, resource, options)
    page = await threads.read(listing.find, resource, request.info.namespace, chosen)
    outcomes = await threads.write(
        api.delete_many,
        request.actor,
        resource,
        [(item.namespace, item.name) for item in page.items],
        grace=options.grace,
        propagation=options.propagation or None,
        dry_run=options.dry_run,
    )
    gone = [o for o in outcomes if not isinstance(o, NotFound)]
    for outcome in gone:
        if isinstance(outcome, ApiError):
            raise outcome
    deleted = cast("list[Stored]", gone)
    pieces = forms.write_list(request.form, resource, deleted, page.metadata, request.now)
    return respond.respond(request, await intake.work(b"".join, pieces))


HANDLERS: dict[str, Callable[[Request], Awaitable[Response]]] = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
