"""The reviews: who am I, what may I do, whose is this token (reference: kubernetes-api §4.7).

They answer from the table that every request is checked with
(`cluster.api.can_i`). A review is answered, not stored; a token that is handed
in to be looked at is not handed back.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from apiserver.http import authentication, respond, routes, threads
from apiserver.http.request import Request
from cluster import access
from cluster.access import Actor, tokens
from cluster.api import can_i
from cluster.api.can_i import Verdict
from kube import definitions, schema
from kube.errors import BadRequest, Invalid, invalid, quoted, required
from kube.kinds.fields import View
from kube.kinds.reviews import (
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from kube.meta import Object
from kube.resources import (
    LOCAL_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_REVIEWS,
    SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
)

T = TypeVar("T", bound="View")


@routes.virtual(SELF_SUBJECT_ACCESS_REVIEWS, everybody=True)
async def review_own_access(request: Request) -> Response:
    """May I?"""
    obj, review = await read(request, SelfSubjectAccessReview)
    return _answer(request, obj, await threads.read(_verdict, request.actor, review, request))


@routes.virtual(SUBJECT_ACCESS_REVIEWS)
async def review_access(request: Request) -> Response:
    """May somebody?"""
    obj, review = await read(request, SubjectAccessReview)
    return _answer(request, obj, await threads.read(_verdict_about, review, request))


@routes.virtual(LOCAL_SUBJECT_ACCESS_REVIEWS)
async def review_local_access(request: Request) -> Response:
    """May somebody, in this namespace?"""
    obj, review = await read(request, SubjectAccessReview)
    namespace = request.info.namespace
    attributes = review.spec.resource_attributes
    if attributes is None:
        raise _invalid(request, "spec.nonResourceAttributes", "disallowed on this kind of request")
    if attributes.namespace != namespace:
        raise BadRequest(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _answer(request, obj, await threads.read(_verdict_about, review, request))


@routes.virtual(SELF_SUBJECT_RULES_REVIEWS, everybody=True)
async def review_own_rules(request: Request) -> Response:
    """What may I do here?"""
    obj, review = await read(request, SelfSubjectRulesReview)
    if not review.spec.namespace:
        raise BadRequest("no namespace on request")
    rules = await threads.read(can_i.rules, request.actor, review.spec.namespace)
    status = {"resourceRules": [], "nonResourceRules": [], "incomplete": False, **msgspec.to_builtins(rules)}
    return respond.plain(request, {**obj, "status": status}, 201)


@routes.virtual(SELF_SUBJECT_REVIEWS, everybody=True)
async def review_oneself(request: Request) -> Response:
    """Who am I?"""
    obj = await body(request)
    info = msgspec.to_builtins(user_info(request.actor))
    return respond.plain(request, {**obj, "status": {"userInfo": info}}, 201)


@routes.virtual(TOKEN_REVIEWS)
async def review_token(request: Request) -> Response:
    """Whose is this token?"""
    obj, review = await read(request, TokenReview)
    if not review.spec.token:
        raise BadRequest("token is required for TokenReview in authentication")
    verdict = await threads.read(_whose, review, request.now)
    # Clients insist on the field; the secret itself is not sent back.
    spec: Object = {"token": "", **({"audiences": review.spec.audiences} if review.spec.audiences else {})}
    return respond.plain(request, {**obj, "spec": spec, "status": msgspec.to_builtins(verdict)}, 201)


async def read(request: Request, kind: type[T]) -> tuple[Object, T]:
    """Return the body as it is to be answered and as a view; Invalid says what is wrong with its fields."""
    obj = await body(request)
    return obj, msgspec.convert(obj, kind)


async def body(request: Request) -> Object:
    """Return the body as it is to be answered; Invalid says what is wrong with its fields."""
    resource = request.info.resource
    if resource is None:
        raise ValueError("There is no resource to be reviewed.")
    return shaped(await request.object(), resource.api_version, resource.kind)


def shaped(obj: Object, api_version: str, kind: str) -> Object:
    """Return a body that says its kind and is well shaped; BadRequest for another kind, Invalid for wrong fields."""
    type_meta = (obj.get("apiVersion") or api_version, obj.get("kind") or kind)
    if type_meta != (api_version, kind):
        raise BadRequest(
            f"{type_meta[1]!s:.100} in version {quoted(type_meta[0])} cannot be handled as a {kind}:"
            f" give apiVersion {api_version} and kind {kind}."
        )
    definition = definitions.of_kind(api_version, kind)
    causes = schema.check({"spec": {}, **obj}, definition)
    if causes:
        group = api_version.partition("/")[0]
        raise Invalid.of(f"{kind}.{group}", "", causes)
    plain = schema.without_nulls(obj, definition)
    return {"metadata": {}, **plain, "apiVersion": api_version, "kind": kind}


def user_info(actor: Actor) -> UserInfo:
    """Return who somebody is, as reviews say it."""
    return UserInfo(username=actor.name, uid=actor.uid, groups=list(actor.groups))


def _verdict(actor: Actor, review: SelfSubjectAccessReview | SubjectAccessReview, request: Request) -> Verdict:
    spec = review.spec
    if (spec.resource_attributes is None) == (spec.non_resource_attributes is None):
        raise _invalid(
            request,
            "spec.resourceAttributes",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
    if spec.resource_attributes is not None:
        return can_i.judge(actor, spec.resource_attributes)
    path = spec.non_resource_attributes
    endpoint = routes.find_path(path.path.removesuffix("*").rstrip("/")) if path is not None else None
    if path is None or endpoint is None or path.verb.upper() not in endpoint.methods:
        return Verdict(False, "There is no such path, or it does not answer that.")
    if endpoint.right and not access.allowed(actor, "get", endpoint.right, ""):
        return Verdict(False, access.remedy("get", endpoint.right))
    is_allowed = endpoint.anonymous or actor.name != authentication.ANONYMOUS.name
    return Verdict(is_allowed, "Every authenticated user may." if is_allowed else "It takes a token.")


def _verdict_about(review: SubjectAccessReview, request: Request) -> Verdict:
    spec = review.spec
    if not spec.user and not spec.groups:
        causes = [required("spec.user", "at least one of user or group must be specified")]
        raise Invalid.of(_kind(request), "", causes)
    return _verdict(authentication.named(spec.user, tuple(spec.groups)), review, request)


def _whose(review: TokenReview, now: int) -> TokenReviewStatus:
    for audience in review.spec.audiences or [tokens.AUDIENCE]:
        row = tokens.find(review.spec.token, audience=audience, now=now)
        if row is not None:
            held = tokens.audiences_of(row)
            common = [each for each in review.spec.audiences or [audience] if each in held]
            return TokenReviewStatus(authenticated=True, user=user_info(tokens.actor_of(row)), audiences=common)
    return TokenReviewStatus(error="invalid bearer token")


def _answer(request: Request, obj: Object, verdict: Verdict) -> Response:
    status: dict[str, Any] = {"allowed": verdict.allowed, "reason": verdict.reason}
    return respond.plain(request, {**obj, "status": status}, 201)


def _kind(request: Request) -> str:
    return request.info.resource.group_kind if request.info.resource is not None else ""


def _invalid(request: Request, path: str, detail: str) -> Invalid:
    return Invalid.of(_kind(request), "", [invalid(path, None, detail)])
