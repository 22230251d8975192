"""Who sends a request: its bearer token, and whom an administrator wants to act as (reference: kubernetes-api §6.1).

Without credentials a request is `system:anonymous`: it may ask for health and
version, and is answered 401 elsewhere, as by a cluster whose anonymous access
is off. Credentials that are wrong are answered 401 everywhere. Which of the
reasons it was (unknown, expired, revoked, holder gone) is not said.

A token that was good is looked up again after CACHED_S seconds, or at once when
an account or token changes in this process. So whatever is revoked, in the
browser or on the command line, is out within CACHED_S seconds.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import DatabaseError
from starlette.datastructures import Headers

from apiserver.http import threads
from apiserver.http.request import Request
from cluster import access, clock
from cluster.access import MASTERS, Actor, tokens
from kube.errors import BadRequest, Forbidden, Unauthorized

CACHED_S = 0.75
MAX_CACHED = 4096
LONGEST = 256  # of a token, and far more than ours have
LONGEST_NAME = 340  # of whom somebody acts as: the name of a service account fits
PROTOCOL = "base64url.bearer.authorization.k8s.io."  # a browser's WebSocket cannot send Authorization
ANONYMOUS = Actor("system:anonymous", ("system:unauthenticated",))
AS_USER, AS_GROUP, AS_UID = "impersonate-user", "impersonate-group", "impersonate-uid"
AS_EXTRA = "impersonate-extra-"
log = logging.getLogger(__name__)


class CachedToken(NamedTuple):
    """Whose a token is, as last read."""

    actor: Actor
    until: float
    generation: int


_cache: dict[str, CachedToken] = {}


async def authenticate(headers: Headers) -> Actor:
    """Return who sends a request with these headers; raises Unauthorized, and Forbidden for an impersonation."""
    secret = _secret(headers)
    if secret is None:
        actor = ANONYMOUS
    elif len(secret) > LONGEST:
        raise _unauthorized()
    else:
        key = tokens.digest(secret)
        cached = _cache.get(key)
        if cached is None or cached.until < clock.monotonic() or cached.generation != access.generation():
            _cache.pop(key, None)
            actor = await threads.read(_look_up, secret)
        else:
            actor = cached.actor
    wanted = _impersonation(headers)
    return actor if wanted is None else await threads.read(_impersonate, actor, wanted)


async def still_valid(request: Request) -> bool:
    """Say whether whoever opened a long stream would still be let in, as the same one."""
    try:
        return (await authenticate(request.headers)).name == request.actor.name
    except (Unauthorized, Forbidden, BadRequest):
        return False


def credentials(headers: Headers) -> tuple[tuple[str, str], ...]:
    """Return the headers by which somebody was let in, as a value to compare; () where there were none."""
    return tuple(
        (name, value)
        for name, value in headers.items()
        if name == "authorization"
        or name.startswith("impersonate-")
        or (name == "sec-websocket-protocol" and PROTOCOL in value)
    )


def _secret(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token of a request; None without one, as upstream also for other schemes."""
    scheme, _, rest = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and rest.strip():
        return rest.strip()
    for offered in headers.get("sec-websocket-protocol", "").split(","):
        if offered.strip().startswith(PROTOCOL):
            text = offered.strip().removeprefix(PROTOCOL)
            if len(text) > 2 * LONGEST:
                raise _unauthorized()
            try:
                return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
            except (binascii.Error, ValueError):
                raise _unauthorized() from None
    return None


def _look_up(secret: str) -> Actor:
    # Read before the token is: a change in between counts as later.
    generation = access.generation()
    now = clock.milliseconds()
    row = tokens.find(secret, now=now)
    if row is None:
        raise _unauthorized()
    try:
        tokens.note_use(row, now=now)
    except DatabaseError as error:
        log.warning("when a token was used could not be noted", extra={"error": str(error)})
    actor = tokens.actor_of(row)
    if len(_cache) >= MAX_CACHED:
        _cache.clear()
    until = clock.monotonic() + min(CACHED_S, (row.expires - now) / 1000)
    _cache[tokens.digest(secret)] = CachedToken(actor, until, generation)
    return actor


class Impersonation(NamedTuple):
    """As whom somebody wants to act: kubectl's --as, --as-group and --as-uid."""

    user: str
    groups: tuple[str, ...]
    uid: str


def _impersonation(headers: Headers) -> Impersonation | None:
    user = headers.get(AS_USER, "")
    groups = tuple(headers.getlist(AS_GROUP))
    uid = headers.get(AS_UID, "")
    extra = any(name.startswith(AS_EXTRA) for name in headers)
    if not user:
        if groups or uid or extra:
            raise BadRequest("requested groups, a uid or extra fields without impersonating a user (Impersonate-User)")
        return None
    if any(len(text) > LONGEST_NAME or not text.isprintable() for text in (user, uid, *groups)) or len(groups) > 64:
        raise BadRequest(f"names to impersonate have at most {LONGEST_NAME} printable characters")
    return Impersonation(user, groups, uid)


def _impersonate(actor: Actor, wanted: Impersonation) -> Actor:
    """Return the other one, who remembers who he really is; for administrators of everything (verb impersonate)."""
    if actor.name == ANONYMOUS.name:
        raise _unauthorized()
    account = access.account_of(wanted.user)
    name = wanted.user if account is None else account[1]
    resource, namespace = ("users", "") if account is None else ("serviceaccounts", account[0])
    access.require(actor, "impersonate", resource, namespace, name)
    if MASTERS in wanted.groups:
        raise Forbidden.of("groups", MASTERS, "nobody can act as a part of the system itself")
    target = named(wanted.user, wanted.groups)
    return Actor(target.name, target.groups, target.user_id, wanted.uid or target.uid, real=actor.name)


def named(user: str, groups: tuple[str, ...] = ()) -> Actor:
    """Return somebody by name, with his own groups and the given ones; a user that nobody knows has only those.

    For impersonation and SubjectAccessReview: a name that is given by who may ask for it.
    """
    account = access.account_of(user)
    if account is not None:
        actor = tokens.account_actor(*account)
    else:
        row = User.objects.filter(username=user, is_active=True).first()
        actor = tokens.user_actor(row) if row is not None else Actor(user, ("system:authenticated",))
    more = [group for group in groups if group not in actor.groups]
    return Actor(actor.name, (*actor.groups, *more), actor.user_id, actor.uid)


def _unauthorized() -> Unauthorized:
    return Unauthorized("Unauthorized")
