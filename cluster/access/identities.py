"""Accounts of an OpenID Connect provider, and the users that log in by them.

A user is known again by issuer and subject, never by his name: who may choose his name at the provider must not get
into somebody else's account here. What the provider says of groups replaces, at each login, what was known of them.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User

from cluster import access
from cluster.access import accounts, audit, logins
from cluster.access.audit import Deed
from cluster.access.roles import EVERYWHERE, Role
from cluster.access.router import account_transaction
from cluster.claims import Person
from cluster.models import Identity, RoleBinding
from cluster.store import sql
from kube.errors import Conflict, Forbidden


def log_in(person: Person, address: str) -> User:
    """Return the user of somebody whom the provider vouches for, making it at the first login.

    Forbidden when the user is deactivated; Conflict when the name is taken by a user who logs in otherwise;
    Invalid when it cannot be a name here.
    """
    with account_transaction():
        # Two first logins at the same moment make one user.
        sql.lock_head(settings.ACCOUNTS_DATABASE)
        user = _find(person) or _create(person)
        if not user.is_active:
            raise Forbidden(f'The user "{user.username}" is deactivated; ask an administrator.')
        _set_groups(user, person.groups)
        logins.logged_in(user, address, f"at {person.issuer}")
    return user


def connect(user: User, person: Person) -> None:
    """Let a user who is logged in also log in by an account of the provider, under the name he has here."""
    with account_transaction():
        sql.lock_head(settings.ACCOUNTS_DATABASE)
        holder = _find(person)
        if holder is not None and holder.pk != user.pk:
            raise Conflict(
                f'This account of the provider belongs to the user "{holder.username}" here. '
                "Log out there, and choose your own account."
            )
        if holder is None:
            Identity.objects.filter(user=user, issuer=person.issuer).delete()
            Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject)
            _record(user, "connect", f"Logs in by {person.subject} at {person.issuer} from now on.")
        _set_groups(user, person.groups)


def subject_of(user: User, issuer: str) -> str:
    """Return the subject by which a user logs in at a provider, "" for none."""
    subject = Identity.objects.filter(user=user, issuer=issuer).values_list("subject", flat=True).first()
    return subject or ""


def appoint_administrators() -> bool:
    """Make VOLCANO_UI_OIDC_ADMIN_GROUP administrator of everything, unless it is; return whether that was new."""
    group = settings.OIDC_ADMIN_GROUP
    if not group:
        return False
    held = RoleBinding.objects.filter(group__name=group, namespace=EVERYWHERE, role=Role.ADMINISTRATOR)
    if held.exists():
        return False
    accounts.bind_role(access.CONSOLE, Role.ADMINISTRATOR, EVERYWHERE, group=group)
    return True


def _find(person: Person) -> User | None:
    identities = Identity.objects.select_related("user").filter(issuer=person.issuer, subject=person.subject)
    identity = identities.first()
    return identity.user if identity else None


def _create(person: Person) -> User:
    name = User.normalize_username(person.name)
    accounts.check_name(name)
    if User.objects.filter(username=name).exists():
        raise Conflict(
            f'The name "{name}" belongs to a user who does not log in by this account. If that is you, log in as '
            "before and connect the two in the menu of your name; otherwise ask for another name at the provider."
        )
    user = User(username=name)
    user.set_unusable_password()
    user.save(force_insert=True)
    Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject)
    _record(user, "create", f"At the first login at {person.issuer}.")
    return user


def _set_groups(user: User, groups: tuple[str, ...]) -> None:
    old = sorted(user.groups.values_list("name", flat=True))
    if old == list(groups):
        return
    user.groups.set([accounts.group_named(group) for group in groups])
    _record(user, "update", "As the provider says.", old, list(groups))


def _record(user: User, verb: str, message: str, old: object = None, new: object = None) -> None:
    changes = audit.changes({"groups": old}, {"groups": new})
    audit.record(Deed(user.username, verb, "users", name=user.username, message=message, changes=changes))
