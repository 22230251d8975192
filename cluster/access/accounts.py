"""Accounts: users, the roles that they hold, and how they log in.

Users and groups are Django's; roles are `RoleBinding` rows. Everything that changes an account takes the actor who
asks, checks his right, and leaves an audit row in the same transaction. One-time links and failed logins are in
`cluster.access.logins`.

A user who is deactivated, or whose password somebody else sets, loses his sessions at once; sockets and streams end
within two seconds. The tokens of one who is deactivated are worth nothing meanwhile; with a new password they are
revoked if that is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import Q
from django.utils import timezone

from cluster import access
from cluster.access import audit, tokens
from cluster.access.audit import Deed
from cluster.access.authorizer import Actor
from cluster.access.logins import ensure_administrator, login_link
from cluster.access.roles import EVERYWHERE, Role
from cluster.access.router import account_transaction
from cluster.models import RoleBinding
from cluster.models.accounts import this_cluster
from kube import names
from kube.errors import AlreadyExists, Cause, Conflict, Invalid, NotFound, invalid, required

__all__ = ["Account", "Binding", "ensure_administrator", "login_link"]

LONGEST_NAME = 150


@dataclass(frozen=True)
class Binding:
    """A role of a user, a group or a service account (`NAMESPACE/NAME`); exactly one of the three is filled."""

    user: str
    group: str
    namespace: str
    role: Role
    account: str = ""


@dataclass(frozen=True)
class Account:
    """A user as lists show him; `bindings` are his own, without those of his groups."""

    id: int
    name: str
    active: bool
    superuser: bool
    has_password: bool
    at_provider: bool
    tokens: int
    groups: tuple[str, ...]
    bindings: tuple[Binding, ...]


def users() -> list[Account]:
    """Return every account by name, in five queries."""
    bindings = defaultdict(list)
    for row in RoleBinding.objects.filter(user__isnull=False).order_by("namespace"):
        bindings[row.user_id].append(row)
    query = User.objects.order_by("username").prefetch_related("groups", "identities")
    counts = tokens.counted()
    return [
        Account(
            id=user.pk,
            name=user.username,
            active=user.is_active,
            superuser=user.is_superuser,
            has_password=user.has_usable_password(),
            at_provider=bool(user.identities.all()),
            tokens=counts[user.pk],
            groups=tuple(sorted(group.name for group in user.groups.all())),
            bindings=tuple(_binding(b, user.username) for b in bindings[user.pk]),
        )
        for user in query
    ]


def role_bindings(namespace: str | None = None) -> list[Binding]:
    """Return the roles held in a namespace ("*": in all), or every one there is."""
    query = RoleBinding.objects.select_related("user", "group").order_by(
        "namespace", "user__username", "group__name", "account_namespace", "account"
    )
    if namespace is not None:
        query = query.filter(namespace=namespace)
    return [_binding(each, each.user.username if each.user else "") for each in query]


def _binding(row: RoleBinding, user: str) -> Binding:
    account = f"{row.account_namespace}/{row.account}" if row.account else ""
    group = row.group.name if row.group_id is not None and row.group else ""
    return Binding(user, group, row.namespace, Role(row.role), account)


def create_user(actor: Actor, name: str, *, password: str = "", groups: Iterable[str] = ()) -> User:
    """Create a user; one without a password logs in by one-time links only."""
    access.require(actor, "create", "users", "", name)
    user = User(username=User.normalize_username(name))
    check_name(name)
    if password:
        _check_password(password, user)
        user.set_password(password)
    else:
        user.set_unusable_password()
    try:
        with account_transaction():
            user.save(force_insert=True)
            user.groups.set([group_named(group) for group in groups])
            audit.record(Deed(actor.name, "create", "users", name=name))
    except IntegrityError:
        raise AlreadyExists(f'The user "{name}" already exists; choose another name.') from None
    return user


def set_password(actor: Actor, user: User, password: str, *, revoke: bool = False) -> int:
    """Give a user a password: one's own, or anybody's for an administrator. Ends his sessions, and with `revoke` his tokens.

    Tokens are those of this cluster's API; how many were revoked is returned.
    """
    if actor.user_id != user.pk:
        access.require(actor, "update", "users", "", user.username)
    _check_password(password, user)
    user.set_password(password)
    with account_transaction():
        user.save(update_fields=["password"])
        revoked = tokens.revoke_all(actor, user) if revoke else 0
        text = f"Sessions ended, tokens revoked: {revoked}."
        audit.record(Deed(actor.name, "set-password", "users", name=user.username, message=text))
        end_sessions(user)
    return revoked


def set_active(actor: Actor, user: User, *, active: bool) -> None:
    """Activate a user, or deactivate him and end his sessions; an active administrator must remain."""
    access.require(actor, "update", "users", "", user.username)
    with _staying_administered():
        user.is_active = active
        user.save(update_fields=["is_active"])
        audit.record(Deed(actor.name, "activate" if active else "deactivate", "users", name=user.username))
        if not active:
            end_sessions(user)


def set_groups(actor: Actor, user: User, groups: Sequence[str]) -> None:
    """Make a user a member of exactly these groups; a group that does not exist is made."""
    access.require(actor, "update", "users", "", user.username)
    with _staying_administered():
        old = sorted(user.groups.values_list("name", flat=True))
        user.groups.set([group_named(group) for group in groups])
        changes = audit.changes({"groups": old}, {"groups": sorted(groups)})
        audit.record(Deed(actor.name, "update", "users", name=user.username, changes=changes))


def bind_role(
    actor: Actor, role: Role, namespace: str, *, user: User | None = None, group: str = "", account: str = ""
) -> None:
    """Give somebody a role in a namespace or "*", in place of the one held there.

    It is a user, a group, or a service account (`NAMESPACE/NAME`), which need not exist yet.
    """
    access.require(actor, "update", "roles", namespace)
    if namespace != EVERYWHERE and (problem := names.dns_label(namespace)):
        raise Invalid.of("RoleBinding", namespace, [invalid("namespace", namespace, problem)])
    if account:
        account_namespace, _, name = account.partition("/")
        if problem := names.dns_label(account_namespace) or names.dns_subdomain(name):
            raise Invalid.of("RoleBinding", account, [invalid("name", account, f"NAMESPACE/NAME: {problem}")])
    with _staying_administered():
        subject = {"group": group_named(group)} if group else _subject(user, group, account)
        old = RoleBinding.objects.filter(**subject, namespace=namespace).first()
        binding = old or RoleBinding(**subject, namespace=namespace, cluster=this_cluster())
        was, binding.role = old.role if old else None, role
        binding.save()
        _record_role(actor, "bind", _subject_name(user, group, account), namespace, was, role)


def unbind_role(actor: Actor, namespace: str, *, user: User | None = None, group: str = "", account: str = "") -> None:
    """Take away the role that somebody holds in a namespace or "*"."""
    access.require(actor, "delete", "roles", namespace)
    with _staying_administered():
        old = RoleBinding.objects.filter(**_subject(user, group, account), namespace=namespace).first()
        if old is None:
            raise NotFound(f"{_subject_name(user, group, account)} holds no role in {namespace}.")
        old.delete()
        _record_role(actor, "unbind", _subject_name(user, group, account), namespace, old.role, None)


def _subject(user: User | None, group: str, account: str) -> dict[str, Any]:
    if user is not None:
        return {"user": user}
    if account:
        account_namespace, _, name = account.partition("/")
        return {"account_namespace": account_namespace, "account": name}
    return {"group__name": group}


def _subject_name(user: User | None, group: str, account: str) -> str:
    if user is not None:
        return user.username
    return f"service account {account}" if account else f"group {group}"


def find_user(name: str) -> User:
    """Return the account of a name or raise NotFound."""
    try:
        return User.objects.get(username=name)
    except User.DoesNotExist:
        raise NotFound(f'There is no user "{name}".') from None


def end_sessions(user: User) -> int:
    """Log a user out everywhere and return how many sessions that were."""
    store = import_module(settings.SESSION_ENGINE).SessionStore
    ended = 0
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            store(session.session_key).delete()
            ended += 1
    return ended


def group_named(name: str) -> Group:
    """Return the group of a name, made if there is none; Invalid when no group may be named so."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid.of("Group", name, [invalid("name", name, "a group is named by 1 to 150 printable characters")])
    if name.startswith("system:") and not name.startswith("system:serviceaccounts"):
        raise Invalid.of("Group", name, [invalid("name", name, "names that begin with system: are the system's")])
    return Group.objects.get_or_create(name=name)[0]


def check_name(name: str) -> None:
    """Raise Invalid unless a user may be named so."""
    try:
        User.username_validator(name)
    except ValidationError as error:
        raise Invalid.of("User", name, [invalid("name", name, " ".join(error.messages))]) from None
    if not name or len(name) > LONGEST_NAME:
        raise Invalid.of("User", name, [required("name", f"1 to {LONGEST_NAME} characters")])


def _check_password(password: str, user: User) -> None:
    if not settings.PASSWORD_LOGIN:
        off = "passwords are switched off here (VOLCANO_UI_PASSWORD_LOGIN); leave it empty"
        raise Invalid.of("User", user.username, [Cause("FieldValueForbidden", off, "password")])
    try:
        validate_password(password, user)
    except ValidationError as error:
        causes = [Cause("FieldValueInvalid", text, "password") for text in error.messages]
        raise Invalid.of("User", user.username, causes) from None


@contextmanager
def _staying_administered() -> Iterator[None]:
    """One transaction, undone by a Conflict when it leaves nobody who administers everything."""
    with account_transaction():
        before = _administered()
        yield
        if before - _administered():
            raise Conflict(
                "This would leave nobody who administers the cluster; make somebody else administrator first."
            )


def _administered() -> set[str]:
    """Return the clusters that somebody administers, as `RoleBinding` names them."""
    if User.objects.filter(is_active=True, is_superuser=True).exists():
        return {"", *RoleBinding.of_all.values_list("cluster", flat=True)}
    held = RoleBinding.of_all.filter(namespace=EVERYWHERE, role=Role.ADMINISTRATOR)
    active = Q(user__is_active=True) | Q(group__user__is_active=True)
    return set(held.filter(active).values_list("cluster", flat=True))


def _record_role(actor: Actor, verb: str, name: str, namespace: str, old: str | None, role: Role | None) -> None:
    change = {"path": "role", "old": old, "new": role}
    audit_namespace = "" if namespace == EVERYWHERE else namespace
    audit.record(Deed(actor.name, verb, "roles", audit_namespace, name, changes=[change]))
