"""Who may do what: the one decision that pages, the API and sockets ask.

What each role may do is the table of `cluster.access.roles`; here it meets the accounts. An actor's roles cost one
query, are cached with the actor object (a request has its own) and are read again after `FRESH_S` seconds, or at once
when an account changes in this process, or for who asks for it (`renew`): the keepers of what lasts do so each second.

Controllers, scheduler and nodes act as `SYSTEM` and write to the store directly: what they do follows from what people
did, is in the log and is not audited a second time.

About the objects of a cluster in which people act as themselves, that cluster
decides (`delegate`); the roles here then hold for accounts and audit alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models.signals import m2m_changed, post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest

from cluster import clock
from cluster.access.roles import ALL, EVERYWHERE, Everywhere, Grants, Role, decide, namespaces_of, needed, strongest
from cluster.models.accounts import this_cluster
from cluster.store import sql
from kube.errors import Forbidden
from kube.resources import Resource

FRESH_S = 10.0
MASTERS = "system:masters"  # the group that may do anything, as in Kubernetes (§6.4)
ACCOUNT = "system:serviceaccount:"  # the names of service accounts begin so; a user's name holds no colon
# Who a node is to the API, as in Kubernetes (node authorizer). Its agent comes with a token of its own (`tokens.join`).
NODE = "system:node:"
NODES = "system:nodes"
BOOTSTRAPPERS = "system:bootstrappers"  # who holds a token with which a machine joins, and may do nothing else
NOBODY = "Nobody may do this by hand."
# Each request and, once a second, each right of what lasts reads roles: for Django to compose these took ten times as long
# as they take themselves.
OF_USER = """
    SELECT b.namespace, b.role FROM cluster_rolebinding b JOIN auth_user u ON u.id = b.user_id
     WHERE u.id = %s AND u.is_active AND b.cluster = %s
    UNION SELECT b.namespace, b.role FROM cluster_rolebinding b
      JOIN auth_user_groups m ON m.group_id = b.group_id JOIN auth_user u ON u.id = m.user_id
     WHERE u.id = %s AND u.is_active AND b.cluster = %s
    UNION SELECT %s, %s FROM auth_user u WHERE u.id = %s AND u.is_active AND u.is_superuser
"""
OF_NAMES = """
    SELECT b.namespace, b.role FROM cluster_rolebinding b LEFT JOIN auth_group g ON g.id = b.group_id
     WHERE b.cluster = %s AND (g.name IN ({groups}) OR (b.account_namespace = %s AND b.account = %s))
"""
_generation = 0
_refused: Callable[[str, str], str] = lambda verb, resource: ""  # noqa: E731
_delegate: Authorizer | None = None


class Authorizer(Protocol):
    """Decides what people may do with the objects of a cluster.

    Its methods may ask that cluster, so none is called in an event loop. Where nothing is known of
    somebody's rights because the cluster does not answer, ServiceUnavailable says so.
    """

    def decides(self, resource: str) -> bool:
        """Say whether a resource (by its id, perhaps with a subresource) is of that cluster."""

    def allowed(self, actor: Actor, verb: str, resource: str, namespace: str) -> bool:
        """Say whether the actor may do the verb, by the cluster's last answer."""

    def require(self, actor: Actor, verb: str, resource: str, namespace: str, name: str) -> None:
        """Raise Forbidden unless the actor may do the verb; a change takes a fresh answer."""

    def namespaces(self, actor: Actor, verb: str, resource: str) -> frozenset[str] | Everywhere:
        """Return where the actor may do the verb."""

    def scope(self, actor: Actor) -> Hashable:
        """Return a value that is the same for actors who may do the same, and another one when that changes; never raises."""

    @property
    def remedy(self) -> str:
        """Whom to ask for a right, in a sentence."""


class _CachedGrants:
    """The roles of an actor as last read."""

    __slots__ = ("generation", "grants", "until")

    def __init__(self) -> None:
        self.grants: Grants | None = None
        self.generation = -1
        self.until = 0.0


@dataclass(frozen=True)
class Actor:
    """Somebody in whose name something is done.

    user_id is the account; without one, `groups` are the groups that the authenticator vouches for. `real` is who it is
    in truth when somebody acts as another one.
    """

    name: str
    groups: tuple[str, ...] = ()
    user_id: int | None = None
    uid: str = ""
    real: str = ""
    _cached: _CachedGrants = field(default_factory=_CachedGrants, init=False, repr=False, compare=False)


SYSTEM = Actor("system:controller", (MASTERS,))
CONSOLE = Actor("system:console", (MASTERS,))  # whoever runs manage.py, and so owns the database


def is_system(actor: Actor) -> bool:
    """Say whether the actor is part of the system and may do anything."""
    return MASTERS in actor.groups


def account_of(name: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that an actor's name stands for, None for other actors."""
    namespace, _, account = name.removeprefix(ACCOUNT).partition(":")
    return (namespace, account) if name.startswith(ACCOUNT) and namespace and account else None


def node_of(actor: Actor) -> str:
    """Return which node an actor is, "" for everybody else. What a node may do is in `cluster.access.nodes`."""
    is_node = NODES in actor.groups and actor.name.startswith(NODE)
    return actor.name.removeprefix(NODE) if is_node else ""


def refuse(why: Callable[[str, str], str]) -> None:
    """Refuse to everybody what `why` returns a reason against, given verb and resource id; "" leaves it to the roles.

    The reasons are those of the kind of cluster (`cluster.backend.Backend.refusal`).
    """
    global _refused
    _refused = why


def delegate(authorizer: Authorizer | None) -> None:
    """Have an authorizer decide about its resources, in place of the roles here; None undoes that."""
    global _delegate
    _delegate = authorizer


def _decider(resource: str) -> Authorizer | None:
    """Return who decides about a resource in place of the roles here."""
    return _delegate if _delegate is not None and _delegate.decides(resource) else None


def decides_elsewhere(resource: Resource | str) -> bool:
    """Whether the cluster itself decides about a resource, and not the roles here."""
    return _decider(_id(resource)) is not None


def generation() -> int:
    """Return a number that grows when an account, a role or a token changes in this process."""
    return _generation


def for_user(user: AbstractBaseUser | AnonymousUser) -> Actor:
    """Return the actor of a Django user; nobody's rights for an anonymous one."""
    if user.pk is None:
        return Actor("system:anonymous")
    return Actor(user.get_username(), user_id=user.pk)


def of(request: HttpRequest) -> Actor:
    """Return the actor of a request, the same one each time."""
    user = request.user
    actor: Actor | None = getattr(request, "_actor", None)
    if actor is None or actor.user_id != user.pk:
        actor = for_user(user)
        request._actor = actor  # type: ignore[attr-defined]
    return actor


def grants(actor: Actor) -> Grants:
    """Return the roles of an actor, read from the database when they are not fresh."""
    cached = actor._cached
    now = clock.monotonic()
    if cached.grants is None or cached.generation != _generation or cached.until < now:
        cached.generation, cached.until = _generation, now + FRESH_S
        roles: dict[str, Role] = {}
        for namespace, role in _bindings(actor):
            roles[namespace] = strongest(Role(role), roles.get(namespace)) or Role(role)
        cached.grants = Grants(actor.name, roles)
    return cached.grants


def renew(actor: Actor) -> None:
    """Have the roles of an actor read from the database when they are asked for next."""
    actor._cached.until = 0.0


def allowed(actor: Actor, verb: str, resource: Resource | str, namespace: str, *, owner: str | None = None) -> bool:
    """Say whether the actor may do the verb (get, list, watch, create, update, patch, delete, deletecollection).

    resource is a Resource or its id, with a subresource after a slash (`pods/log`,
    `queues.scheduling.volcano.sh/state`). namespace is "" for what lies in none, except a Namespace, which counts as
    lying in itself. owner is the name of who created the object.
    """
    if _refused(verb, _id(resource)):
        return False
    if is_system(actor):
        return True
    if decider := _decider(_id(resource)):
        return decider.allowed(actor, verb, _id(resource), namespace)
    return decide(grants(actor), verb, _id(resource), namespace, owner)


def namespaces(actor: Actor, resource: Resource | str, verb: str = "list") -> frozenset[str] | Everywhere:
    """Return where the actor may do the verb to anybody's objects: namespaces, or ALL of them."""
    if _refused(verb, _id(resource)):
        return frozenset()
    if is_system(actor):
        return ALL
    if decider := _decider(_id(resource)):
        return decider.namespaces(actor, verb, _id(resource))
    return namespaces_of(grants(actor), _id(resource), verb)


def somewhere(actor: Actor, verb: str, resource: Resource | str) -> bool:
    """Say whether there is a namespace in which the actor may do the verb, if only to what is his own."""
    if is_system(actor) or _decider(_id(resource)):
        return bool(namespaces(actor, resource, verb))
    held = grants(actor).roles
    return any(allowed(actor, verb, resource, namespace, owner=actor.name) for namespace in held)


def scope(actor: Actor) -> Hashable:
    """Return a value that is the same for actors who may see the same; it is another one when that changes.

    A submitter may do things to his own objects only, so what he is shown is his alone.
    """
    held = grants(actor)
    is_personal = any(role == Role.SUBMITTER for role in held.roles.values())
    elsewhere = None if _delegate is None or is_system(actor) else _delegate.scope(actor)
    return frozenset(held.roles.items()), actor.groups, held.name if is_personal else "", elsewhere


def require(
    actor: Actor, verb: str, resource: Resource | str, namespace: str, name: str = "", *, owner: str | None = None
) -> None:
    """Raise Forbidden, in Kubernetes' words and with the remedy, unless `allowed`."""
    if why := _refused(verb, _id(resource)):
        raise Forbidden(why)
    if not is_system(actor) and (decider := _decider(_id(resource))):
        decider.require(actor, verb, _id(resource), namespace, name)
    elif not allowed(actor, verb, resource, namespace, owner=owner):
        # What is to be created has no name yet in the path by which it is asked for, so Kubernetes says none.
        named = "" if verb == "create" and "/" not in _id(resource) else name
        where = f"in {namespace}" if namespace and _id(resource) != "namespaces" else "in all namespaces"
        role = needed(verb, _id(resource))
        way = f"It takes the role {role} {where}; ask an administrator for it." if role else NOBODY
        text = cannot(actor.name, verb, _id(resource), namespace, named)
        raise refused(f"{text}. {way}", _id(resource), named)


def refused(message: str, resource: str, name: str) -> Forbidden:
    """Return the refusal of something to do with a resource or a part of it, by its id."""
    return Forbidden(message, resource=resource.partition("/")[0], name=name)


def remedy(verb: str, resource: Resource | str) -> str:
    """Say what gives the right to a verb somewhere, and whom to ask for it, in a sentence."""
    if decider := _decider(_id(resource)):
        return decider.remedy
    role = needed(verb, _id(resource))
    return f"It takes the role {role} in some namespace; ask an administrator for it." if role else NOBODY


def cannot(user: str, verb: str, resource: str, namespace: str, name: str) -> str:
    """Say that a user may not do a verb to a resource (by its id), in Kubernetes' words without the full stop."""
    base, _, sub = resource.partition("/")
    plural, _, group = base.partition(".")
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    return (
        f"{base}{f' {chr(34)}{name}{chr(34)}' if name else ''} is forbidden: "
        f'User "{user}" cannot {verb} resource "{plural}{sub and "/" + sub}" '
        f'in API group "{group}" {where}'
    )


def _id(resource: Resource | str) -> str:
    return resource if isinstance(resource, str) else resource.id


def _bindings(actor: Actor) -> list[tuple[str, str]]:
    """The (namespace, role) pairs of an actor in one query; none for an inactive account."""
    here = this_cluster()
    if actor.user_id is not None:
        user = actor.user_id
        params = [user, here, user, here, EVERYWHERE, Role.ADMINISTRATOR.value, user]
        return sql.rows(settings.ACCOUNTS_DATABASE, OF_USER, params)
    # Those of a service account, and of the groups that the authenticator vouches for; machines have none.
    account = account_of(actor.name)
    if NODES in actor.groups or BOOTSTRAPPERS in actor.groups or not (account or actor.groups):
        return []
    groups = sorted(actor.groups)
    text = OF_NAMES.format(groups=sql.marks(len(groups)) or "NULL")
    return sql.rows(settings.ACCOUNTS_DATABASE, text, [here, *groups, *(account or (None, None))])


@receiver([post_save, post_delete], sender="cluster.RoleBinding")
@receiver([post_save, post_delete], sender="cluster.Token")
@receiver([post_save, post_delete], sender="auth.User")
@receiver([post_delete], sender="auth.Group")
@receiver(m2m_changed, sender="auth.User_groups")
def _forget(**_: Any) -> None:
    """Make every actor of this process read its roles again, now and once the change is committed."""
    _grow()
    if transaction.get_connection(settings.ACCOUNTS_DATABASE).in_atomic_block:
        transaction.on_commit(_grow, using=settings.ACCOUNTS_DATABASE)


def _grow() -> None:
    global _generation
    _generation += 1
