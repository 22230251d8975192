"""POST pods/x/binding, bindings and pods/x/eviction (reference: kubernetes-api §4.7)."""

from __future__ import annotations

from starlette.responses import Response

from apiserver.http import query, respond, routes, threads
from apiserver.http.request import Request
from cluster import api
from kube import errors, lenient
from kube.errors import BadRequest, Invalid, MethodNotAllowed
from kube.meta import Object
from kube.resources import BINDINGS, PODS

EVICTIONS = ("policy/v1", "policy/v1beta1")


@routes.subresource(PODS, "binding")
async def binding(request: Request) -> Response:
    """Give a pod its node."""
    _only_post(request)
    return await _bound(request, request.info.name, await request.object())


@routes.virtual(BINDINGS)
async def binding_by_body(request: Request) -> Response:
    """Give the pod that the body names its node, as the Python client asks for it."""
    _only_post(request)
    body = await request.object()
    name = lenient.text(body, "metadata", "name")
    if not name:
        raise BadRequest("name is required")
    return await _bound(request, name, body)


async def _bound(request: Request, pod: str, body: Object) -> Response:
    _check_body(pod, body, "Binding", ("v1",))
    options = query.write_options(request.query, request.user_agent, request.method)
    target = lenient.mapping(body, "target")
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(errors.not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not isinstance(target.get("name"), str) or not target["name"]:
        causes.append(errors.required("target.name", "name the node"))
    if causes:
        raise Invalid.of("Binding", pod, causes)
    uid = str(lenient.mapping(body, "metadata").get("uid") or "")
    key = request.info.namespace, pod
    await threads.write(api.bind, request.actor, *key, target["name"], uid=uid, dry_run=options.dry_run)
    return respond.success(request, code=201)


@routes.subresource(PODS, "eviction")
async def eviction(request: Request) -> Response:
    """Delete a pod if its disruption budget lets it go."""
    _only_post(request)
    body = await request.object()
    _check_body(request.info.name, body, "Eviction", EVICTIONS)
    options = query.delete_options(request.query, lenient.mapping(body, "deleteOptions"))
    dry_run = options.dry_run or query.write_options(request.query, "", request.method).dry_run
    await threads.write(
        api.evict,
        request.actor,
        request.info.namespace,
        request.info.name,
        uid=options.uid,
        version=options.version,
        grace=options.grace,
        dry_run=dry_run,
    )
    return respond.success(request, code=201)


def _only_post(request: Request) -> None:
    if request.info.verb != "create":
        raise MethodNotAllowed()


def _check_body(pod: str, body: Object, kind: str, versions: tuple[str, ...]) -> None:
    type_meta = (body.get("kind") or kind, body.get("apiVersion") or versions[0])
    if type_meta[0] != kind or type_meta[1] not in versions:
        raise BadRequest(f"{type_meta[0]!s:.100} in {type_meta[1]!s:.100} is no {kind} of {versions[0]}.")
    name = lenient.mapping(body, "metadata").get("name") or pod
    if name != pod:
        raise BadRequest(f"name in URL does not match name in {kind} object: {name!s:.253}")
