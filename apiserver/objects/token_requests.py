"""`serviceaccounts/NAME/token`: a token of a service account for whoever may act as it (reference: kubernetes-api §4.7)."""

from __future__ import annotations

import msgspec
from django.db import transaction
from starlette.responses import Response

from apiserver.http import query, respond, routes, threads
from apiserver.http.request import Request
from apiserver.objects import reviews
from cluster.access import tokens
from cluster.access.tokens import Bound, Issued
from kube.errors import BadRequest, Invalid, invalid
from kube.kinds.accounts import TokenRequest, TokenRequestSpec
from kube.meta import timestamp
from kube.resources import SERVICE_ACCOUNTS

API_VERSION, KIND = "authentication.k8s.io/v1", "TokenRequest"
DEFAULT_S = 3600
MAX_REQUESTED_S = 1 << 32


@routes.subresource(SERVICE_ACCOUNTS, "token")
async def request_token(request: Request) -> Response:
    """Answer with the token, this once; one that should last longer than is allowed lasts as long as is allowed."""
    obj = reviews.shaped(await request.object(), API_VERSION, KIND)
    spec = msgspec.convert(obj, TokenRequest).spec
    named = obj["metadata"].get("name")
    if named and named != request.info.name:
        raise BadRequest("the name of the object does not match the name on the URL")
    lifetime_s = DEFAULT_S if spec.expiration_seconds is None else spec.expiration_seconds
    if not tokens.LEAST_S <= lifetime_s <= MAX_REQUESTED_S:
        bound = "less than 10 minutes" if lifetime_s < tokens.LEAST_S else "larger than 2^32 seconds"
        causes = [invalid("spec.expirationSeconds", lifetime_s, f"may not specify a duration {bound}")]
        raise Invalid.of(f"{KIND}.authentication.k8s.io", "", causes)
    if lifetime_s > tokens.MAX_S:
        request.warn(f"requested expiration of {lifetime_s} seconds shortened to {tokens.MAX_S} seconds")
        lifetime_s = tokens.MAX_S
    dry_run = query.write_options(request.query, request.user_agent, request.method).dry_run
    issued = await threads.write(_issue, request, spec, lifetime_s, dry_run)
    obj["metadata"] |= {"name": request.info.name, "namespace": request.info.namespace}
    obj["spec"] = {
        **obj.get("spec", {}),
        "audiences": spec.audiences or [tokens.AUDIENCE],
        "expirationSeconds": lifetime_s,
    }
    obj["status"] = {"token": issued.secret, "expirationTimestamp": timestamp(issued.expires)}
    return respond.plain(request, obj, 201)


def _issue(request: Request, spec: TokenRequestSpec, lifetime_s: int, dry_run: bool) -> Issued:
    """Make the token; for a dry run it is taken back, so that what is answered lets nobody in."""
    reference = spec.bound_object_ref
    bound = Bound(reference.kind, reference.name, reference.uid) if reference is not None else None
    with transaction.atomic():
        issued = tokens.issue_for_account(
            request.actor,
            request.info.namespace,
            request.info.name,
            "API",
            lifetime_s,
            audiences=spec.audiences,
            bound=bound,
            now=request.now,
        )
        if dry_run:
            transaction.set_rollback(True)
    return issued
