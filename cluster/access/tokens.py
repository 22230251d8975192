"""Bearer tokens of users, service accounts and nodes: given out once, looked up by hash, revoked, forgotten.

A token carries 256 random bits; only its SHA-256 is stored, so a copy of the database lets nobody in, and no comparison
of secrets can be timed: what is looked up in the index is the hash. Each ends, after a year at the latest.

A token is worth nothing once it is revoked or its holder is gone: a user who is deactivated or deleted, a service
account that was deleted (also when another of its name was made since), the pod or Secret that it is bound to.

Who makes a token of a service account can act as it from then on. So he must
hold every role that the account holds (Kubernetes' rule against escalation).

How nodes get theirs is in `joining`. With one of them all of its machine's are revoked.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from cluster import access, clock
from cluster.access import audit
from cluster.access.audit import Deed
from cluster.access.authorizer import ACCOUNT, BOOTSTRAPPERS, NODE, NODES, Actor
from cluster.access.roles import RANK
from cluster.models import Token
from cluster.store import Stored, sql, store
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, invalid, required
from kube.meta import timestamp
from kube.resources import NODES as NODE_KIND
from kube.resources import PODS, SECRETS, SERVICE_ACCOUNTS, Resource

PREFIX = "vui_"  # by which scanners for leaked secrets recognise a token
SHAPE = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
MINUTE_S = 60
DAY_S = 86_400
LEAST_S = 10 * MINUTE_S
MAX_S = 365 * DAY_S
RETAINED_MS = DAY_S * 1000  # how long the row of a token that ended stays, for whoever looks into the table
USED_MS = 10 * MINUTE_S * 1000  # how coarse "last used" is
MAX_OF_USER = 100
LONGEST_NAME = 100
AUDIENCE = "https://kubernetes.default.svc"
RIGHT = f"{SERVICE_ACCOUNTS.id}/token"
BINDABLE = {"Pod": PODS, "Secret": SECRETS}


@dataclass(frozen=True)
class Issued:
    """A new token, this once in clear; `expires` is epoch milliseconds."""

    secret: str = field(repr=False)
    expires: int
    row: Token


class Bound(NamedTuple):
    """What a token is bound to: kind Pod or Secret; uid "" is filled in."""

    kind: str
    name: str
    uid: str = ""


def issue(actor: Actor, user: User, name: str, lifetime_s: int, *, now: int | None = None) -> Issued:
    """Make a token of a user, for himself or at the console."""
    if actor.user_id != user.pk and not access.is_system(actor):
        raise Forbidden(f"A token of a user is made by that user, or with {settings.KUBECONFIG_COMMAND}.")
    if not user.is_active:
        raise Conflict(f'The user "{user.username}" is deactivated; an administrator can change that.')
    now = clock.milliseconds() if now is None else now
    if of_user(user, now=now).count() >= MAX_OF_USER:
        raise Conflict(f"{user.username} holds {MAX_OF_USER} tokens; revoke those that nobody uses.")
    return issued(actor, Token(user=user, name=checked(name)), lifetime_s, now)


def issue_for_account(
    actor: Actor,
    namespace: str,
    account: str,
    name: str,
    lifetime_s: int,
    *,
    audiences: Sequence[str] = (),
    bound: Bound | None = None,
    now: int | None = None,
) -> Issued:
    """Make a token of a service account; bound to an object it ends with that (reference: kubernetes-api §4.7)."""
    access.require(actor, "create", RIGHT, namespace, account)
    _check_escalation(actor, namespace, account)
    stored_account = service_account(namespace, account)
    if stored_account is None:
        raise NotFound.of(SERVICE_ACCOUNTS.id, account)
    if len(" ".join(audiences)) > 1000 or any(not each or each.split() != [each] for each in audiences):
        causes = [invalid("spec.audiences", list(audiences), "texts without spaces, 1000 characters together")]
        raise Invalid.of("TokenRequest.authentication.k8s.io", "", causes)
    row = Token(namespace=namespace, account=account, account_uid=stored_account.uid, name=checked(name))
    row.audiences = " ".join(audiences)
    if bound is not None:
        target = _bindable(namespace, account, bound)
        row.bound_kind, row.bound_name, row.bound_uid = bound.kind, bound.name, target.uid
    return issued(actor, row, lifetime_s, clock.milliseconds() if now is None else now)


def issued(actor: Actor, row: Token, lifetime_s: int, now: int) -> Issued:
    """Store a new token, whose holder was looked at before."""
    secret = PREFIX + secrets.token_urlsafe(32)
    row.hash, row.created = digest(secret), now
    row.expires = now + min(max(lifetime_s, LEAST_S), MAX_S) * 1000
    with transaction.atomic():
        row.save(force_insert=True)
        _record(actor, "issue-token", row, f"Token “{row.name}”, until {timestamp(row.expires)}.")
    return Issued(secret, row.expires, row)


def find(secret: str, *, audience: str = AUDIENCE, now: int | None = None) -> Token | None:
    """Return the token that this is, if it lets its holder in now; None for anything else."""
    if SHAPE.fullmatch(secret) is None:
        return None
    now = clock.milliseconds() if now is None else now
    query = Token.objects.select_related("user").filter(hash=digest(secret), revoked=None, expires__gt=now)
    row = query.first()
    if row is None or audience not in audiences_of(row):
        return None
    return row if _lives(row) else None


def audiences_of(row: Token) -> list[str]:
    """Return for whom a token is meant."""
    return row.audiences.split() or [AUDIENCE]


def actor_of(row: Token) -> Actor:
    """Return who comes with a token."""
    if row.user is not None:
        return user_actor(row.user)
    if row.node:
        name, group = (f"system:bootstrap:{row.pk}", BOOTSTRAPPERS) if row.joins else (NODE + row.node, NODES)
        return Actor(name, (group, "system:authenticated"), uid=str(row.pk))
    return account_actor(row.namespace, row.account, row.account_uid)


def user_actor(user: User) -> Actor:
    """Return a user as somebody who acts, with his groups. Those of Django cannot pass for the system's."""
    names = user.groups.order_by("name").values_list("name", flat=True)
    own = [name for name in names if not name.startswith("system:")]
    return Actor(user.username, (*own, "system:authenticated"), user.pk, uid=str(user.pk))


def account_actor(namespace: str, account: str, uid: str = "") -> Actor:
    """Return a service account as somebody who acts, with Kubernetes' groups (§6.4)."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Actor(f"{ACCOUNT}{namespace}:{account}", groups, uid=uid)


def note_use(row: Token, *, now: int) -> None:
    """Remember that a token was used, once in some minutes only."""
    if row.used is None or now - row.used >= USED_MS:
        Token.objects.filter(pk=row.pk).update(used=now)


def of_user(user: User, *, now: int | None = None) -> QuerySet[Token]:
    """Return the tokens with which a user can come in, newest first."""
    return _living(now).filter(user=user)


def counted() -> Counter[int]:
    """Return how many tokens each user has, by his id."""
    return Counter(_living(None).filter(user__isnull=False).values_list("user", flat=True))


def visible(actor: Actor, *, now: int | None = None) -> list[Token]:
    """Return the tokens that the actor may revoke as an administrator: of users and nodes, and of service accounts where he is one."""
    users = access.allowed(actor, "update", "users", "")
    namespaces = access.namespaces(actor, "roles")
    accounts = ~Q(account="")
    if not isinstance(namespaces, access.Everywhere):
        accounts &= Q(namespace__in=namespaces)
    wanted = accounts | Q(user__isnull=False) if users else accounts
    if access.allowed(actor, "delete", NODE_KIND, ""):
        wanted |= ~Q(node="")
    return list(_living(now).filter(wanted).select_related("user"))


def revoke(actor: Actor, number: int, *, now: int | None = None) -> Token:
    """End a token: one's own, any user's or node's for an administrator, a service account's for one of its namespace."""
    with transaction.atomic():
        sql.lock_head(store.using)  # a machine that joins with the token now is before this, or is refused
        row = Token.objects.select_related("user").filter(pk=number).first()
        if row is None or not _may_revoke(actor, row):
            raise NotFound("There is no such token, or it is not yours.")
        if row.revoked is None:
            row.revoked = clock.milliseconds() if now is None else now
            row.save(update_fields=["revoked"])
            if row.agent:
                others = Token.objects.filter(node=row.node, agent=row.agent, revoked=None)
                others.update(revoked=row.revoked)
            _record(actor, "revoke-token", row, f"Token “{row.name}”.")
    return row


def revoke_all(actor: Actor, user: User) -> int:
    """End every token of a user, one's own or, for an administrator, anybody's, and return how many that were."""
    return len([revoke(actor, row.pk) for row in of_user(user)])


def prune(now: int) -> int:
    """Remove the tokens that ended more than a day ago and return how many they were."""
    ended = Token.objects.filter(Q(expires__lt=now - RETAINED_MS) | Q(revoked__lt=now - RETAINED_MS))
    return ended.delete()[0]


def digest(secret: str) -> str:
    """Return the hash that is stored of a token."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def service_account(namespace: str, name: str) -> Stored | None:
    """Return a service account that is not being deleted."""
    return _living_object(SERVICE_ACCOUNTS, namespace, name)


def _living(now: int | None) -> QuerySet[Token]:
    now = clock.milliseconds() if now is None else now
    return Token.objects.filter(revoked=None, expires__gt=now).order_by("-created", "-pk")


def _living_object(resource: Resource, namespace: str, name: str) -> Stored | None:
    stored = store.get_or_none(resource, namespace, name)
    return None if stored is None or stored.object["metadata"].get("deletionTimestamp") else stored


def _lives(row: Token) -> bool:
    if row.user is not None:
        return row.user.is_active
    if row.node:
        return True
    account = service_account(row.namespace, row.account)
    if account is None or account.uid != row.account_uid:
        return False
    if not row.bound_kind:
        return True
    target = _living_object(BINDABLE[row.bound_kind], row.namespace, row.bound_name)
    return target is not None and target.uid == row.bound_uid


def _bindable(namespace: str, account: str, bound: Bound) -> Stored:
    """Return what a token is to be bound to, in Kubernetes' words when that cannot be."""
    kind = BINDABLE.get(bound.kind)
    if kind is None:
        raise BadRequest(f"cannot bind token to object of type {bound.kind}")
    target = _living_object(kind, namespace, bound.name)
    if target is None:
        raise NotFound.of(kind.id, bound.name)
    if bound.uid and bound.uid != target.uid:
        raise Conflict.of(
            kind.id,
            bound.name,
            f"the UID in the bound object reference ({bound.uid}) does not match the UID in record."
            " The object might have been deleted and then recreated",
        )
    runs_as = target.object.get("spec", {}).get("serviceAccountName") or "default"
    if bound.kind == "Pod" and runs_as != account:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        )
    return target


def _check_escalation(actor: Actor, namespace: str, account: str) -> None:
    if access.is_system(actor):
        return
    own = access.grants(actor)
    for granted_in, role in access.grants(account_actor(namespace, account)).roles.items():
        held = own.role(granted_in)
        if held is None or RANK[held] < RANK[role]:
            where = "in all namespaces" if granted_in == access.EVERYWHERE else f"in {granted_in}"
            raise Forbidden.of(
                SERVICE_ACCOUNTS.id,
                account,
                f"it holds the role {role} {where}, which you do not; ask somebody who does for the token",
            )


def _may_revoke(actor: Actor, row: Token) -> bool:
    if row.user_id is not None:
        return row.user_id == actor.user_id or access.allowed(actor, "update", "users", "")
    if row.node:
        return access.allowed(actor, "delete", NODE_KIND, "")
    return access.allowed(actor, "delete", RIGHT, row.namespace)


def checked(name: str) -> str:
    """Return what a token is for, without spaces around it; Invalid when that says nothing."""
    name = name.strip()
    if not name:
        raise Invalid.of("Token", "", [required("name", "say what the token is for, such as a machine's name")])
    if len(name) > LONGEST_NAME or not name.isprintable():
        causes = [invalid("name", name, f"1 to {LONGEST_NAME} printable characters")]
        raise Invalid.of("Token", "", causes)
    return name


def _record(actor: Actor, verb: str, row: Token, message: str) -> None:
    resource = "users" if row.user is not None else "nodes" if row.node else "serviceaccounts"
    name = row.user.username if row.user is not None else row.node or row.account
    audit.record(Deed(actor.real or actor.name, verb, resource, row.namespace, name, message=message))
