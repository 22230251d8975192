"""`scale` of custom kinds that have replicas (reference: kubernetes-api §4.7): autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from apiserver.http import bodies, query, respond, routes, threads
from apiserver.http.query import WriteOptions
from apiserver.http.request import Request
from apiserver.objects.verbs import HOW, placed
from apiserver.openapi.operations import patch_types
from cluster import api
from cluster.store import Stored, store
from kube import definitions, errors, patch, schema
from kube.custom import scale as scales
from kube.errors import BadRequest, InternalError, Invalid, MethodNotAllowed, NotFound, UnsupportedMediaType
from kube.meta import Object
from kube.resources import Resource, ScalePaths

KIND = {"apiVersion": "autoscaling/v1", "kind": "Scale"}


@routes.subresource(None, "scale")
async def scale(request: Request) -> Response:
    """Read or change how many replicas an object wants."""
    resource = request.info.resource
    if resource is None or resource.scale is None:
        raise NotFound()
    if request.info.verb == "get":
        stored = await threads.read(store.get, resource, request.info.namespace, request.info.name)
        return respond.plain(request, _scale_of(stored, resource.scale))
    if request.info.verb == "update":
        options = query.write_options(request.query, request.user_agent, request.method)
        wanted = _checked(request, (await request.decoded()).value)
        return await _written(request, resource, lambda _: wanted, options)
    if request.info.verb == "patch":
        return await _patch(request, resource)
    raise MethodNotAllowed()


def _scale_of(stored: Stored, paths: ScalePaths) -> Object:
    try:
        return scales.scale_of(stored.object, paths)
    except scales.NoReplicasError as error:
        raise InternalError.of(str(error)) from None


async def _patch(request: Request, resource: Resource) -> Response:
    how = HOW.get(request.content_type)
    if how is None or how == "strategic":
        raise UnsupportedMediaType.of(patch_types(resource))
    options = query.write_options(request.query, request.user_agent, request.method)
    change = (await request.decoded(bodies.JSON)).value

    def patched(old: Object) -> Object:
        try:
            new = patch.json_patch(old, change) if how == "json" else patch.merge(old, change)
        except patch.PatchError as error:
            raise BadRequest(error.detail) from None
        return _checked(request, new)

    return await _written(request, resource, patched, options)


def _checked(request: Request, value: Any) -> Object:
    """Return a Scale that fits the request; BadRequest or Invalid for anything else."""
    body = bodies.as_object(value)
    type_meta = (body.get("apiVersion", KIND["apiVersion"]), body.get("kind", KIND["kind"]))
    if type_meta != (KIND["apiVersion"], KIND["kind"]):
        raise BadRequest(
            f"The body of a scale is a Scale of autoscaling/v1, not {errors.quoted(type_meta[1])} of {errors.quoted(type_meta[0])}."
        )
    if causes := schema.check(body, definitions.of_kind(KIND["apiVersion"], KIND["kind"])):
        raise Invalid.of("Scale.autoscaling", request.info.name, causes)
    return placed(request, body)


async def _written(request: Request, resource: Resource, change: Any, options: WriteOptions) -> Response:
    stored = await threads.write(_write, request, resource, change, options)
    return respond.plain(request, _scale_of(stored, resource.scale)) if resource.scale else respond.success(request)


def _write(request: Request, resource: Resource, change: Any, options: WriteOptions) -> Stored:
    """Change the replicas through the one door, so that the whole object is checked and audited."""
    info, paths = request.info, resource.scale
    if paths is None:
        raise NotFound.of(resource.id, info.name)

    def scaled(old: Object) -> Object:
        try:
            before = scales.scale_of(old, paths)
        except scales.NoReplicasError:
            before = {**KIND, "metadata": dict(old["metadata"]), "spec": {}}
        wanted = change(before)
        if (wanted.get("spec") or {}).get("replicas") is None and not before["spec"]:
            raise BadRequest(f'the spec replicas field "{paths.spec}" cannot be empty')
        return scales.scaled(old, paths, wanted)

    return api.scale(
        request.actor,
        info.verb,
        resource,
        info.namespace,
        info.name,
        scaled,
        manager=options.manager,
        dry_run=options.dry_run,
        warn=request.warn,
    )
