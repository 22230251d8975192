"""Getting in: one-time links, and how often a password may be guessed.

A link carries 256 random bits; only their SHA-256 is stored. It works once,
for fifteen minutes, and of two who follow it at the same moment one gets in.

Guesses are counted for the name together with where they come from, and for the address alone. Nobody can lock somebody
else out: a browser in which a user has logged in before is known by a signed cookie and counted by itself (OWASP
"device cookies"), other people's failures elsewhere do not count for him, and a one-time link always gets in. An
attempt is written down before the password is looked at, so parallel guesses do not slip through.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.urls import reverse

from cluster import clock
from cluster.access import audit
from cluster.access.audit import Deed
from cluster.access.router import account_transaction
from cluster.models import LoginFailure, LoginLink
from cluster.store import sql
from kube.errors import NotFound, TooManyRequests

FIRST = "admin"  # the first administrator's name
MINUTE_MS = 60_000
LINK_MS = 15 * MINUTE_MS
WINDOW_MS = 15 * MINUTE_MS
MAX_FOR_NAME = 5
MAX_FOR_ADDRESS = 50
GONE = "The user of this login link is deactivated; ask an administrator."
REMEDY = f"Start “{settings.UP_COMMAND}” again, or run “{settings.LOGIN_COMMAND}”; each prints a new one."


def login_link(base_url: str, user: User | None = None, *, now: int | None = None) -> str:
    """Return a new one-time link for a user, by default the first administrator; base_url is the site's address."""
    user = ensure_administrator() if user is None else user
    now = clock.milliseconds() if now is None else now
    token = secrets.token_urlsafe(32)
    LoginLink.objects.filter(expires__lt=now - LINK_MS).delete()
    LoginLink.objects.create(user=user, token_hash=_hash(token), expires=now + LINK_MS)
    return base_url.rstrip("/") + reverse("accounts:link", args=[token])


def ensure_administrator() -> User:
    """Return an active superuser, making the first one (without a password) when there is none."""
    administrator = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if administrator is not None:
        return administrator
    with account_transaction():
        names = set(User.objects.filter(username__startswith=FIRST).values_list("username", flat=True))
        name, number = FIRST, 1
        while name in names:
            number += 1
            name = f"{FIRST}-{number}"
        user = User(username=name, is_superuser=True, is_staff=False)
        user.set_unusable_password()
        user.save()
        audit.record(Deed("system:controller", "create", "users", name=name, message="The first administrator."))
    return user


def claim(token: str, address: str, *, now: int | None = None) -> User:
    """Use a link up and return its user; NotFound, with the remedy, when it is wrong, used or too old."""
    now = clock.milliseconds() if now is None else now
    with account_transaction():
        # Only columns of the row itself: with a join PostgreSQL would decide on the row as it was before a rival.
        fresh = LoginLink.objects.filter(token_hash=_hash(token), used=None, expires__gt=now)
        if fresh.update(used=now) != 1:
            raise NotFound(_what_is_wrong(token, now))
        user = LoginLink.objects.select_related("user").get(token_hash=_hash(token)).user
        if not user.is_active:
            raise NotFound(GONE)
        logged_in(user, address, "by a one-time link", now=now)
    return user


def check_link(token: str, *, now: int | None = None) -> User:
    """Return the user of a link that would still work, without using it; NotFound otherwise."""
    now = clock.milliseconds() if now is None else now
    links = LoginLink.objects.select_related("user").filter(
        token_hash=_hash(token), used=None, expires__gt=now, user__is_active=True
    )
    link = links.first()
    if link is None:
        raise NotFound(_what_is_wrong(token, now))
    return link.user


def owner(token: str) -> int | None:
    """Return the id of the user whose link this is or was, None for a link that nobody knows."""
    return LoginLink.objects.filter(token_hash=_hash(token)).values_list("user_id", flat=True).first()


def _what_is_wrong(token: str, now: int) -> str:
    link = LoginLink.objects.select_related("user").filter(token_hash=_hash(token)).first()
    if link is None:
        return f"This login link is not one of this server's, or was forgotten. {REMEDY}"
    if link.used is not None:
        return f"This login link has been used; each works once. {REMEDY}"
    if link.expires <= now:
        return f"This login link is older than {LINK_MS // MINUTE_MS} minutes. {REMEDY}"
    return GONE


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


@dataclass(frozen=True)
class Attempt:
    """A login that is being tried; end it with `succeeded` or leave it counted as failed."""

    name: str
    source: str
    address: str

    def failed(self) -> None:
        """Leave an audit row. What was typed as the name is shown only if it is one: it may be a password."""
        is_user = "\0" not in self.name and User.objects.filter(username=self.name).exists()
        name = self.name if is_user else "(unknown name)"
        _record(name, "denied", f"Wrong name or password, from {self.address}.")

    def succeeded(self, user: User) -> None:
        """Forget the failures that were counted for this user from here."""
        LoginFailure.objects.filter(name=_folded(self.name), source=self.source).delete()
        logged_in(user, self.address, "by password")


def attempt(name: str, address: str, cookies: Mapping[str, str], *, now: int | None = None) -> Attempt:
    """Count a login that is about to be tried, or raise TooManyRequests with the seconds to wait."""
    now = clock.milliseconds() if now is None else now
    try:
        owner, mark = signing.loads(cookies.get(_cookie_name(name), ""), salt="known-browser")
    except (signing.BadSignature, ValueError):
        owner, mark = None, ""
    browser = f"browser {mark}" if owner == _folded(name) else ""
    source = browser or address
    with account_transaction():
        # Guesses that come together are counted one after another; the password is looked at afterwards.
        sql.lock_head(settings.ACCOUNTS_DATABASE)
        LoginFailure.objects.filter(at__lte=now - WINDOW_MS).delete()
        wait = _wait(now, MAX_FOR_NAME, name=_folded(name), source=source)
        if not browser:
            wait = max(wait, _wait(now, MAX_FOR_ADDRESS, source=source))
        if not wait:
            LoginFailure.objects.create(name=_folded(name), source=source, at=now)
    if wait:
        minutes = -(-wait // MINUTE_MS)
        raise TooManyRequests(
            f"Too many failed logins. Try again in {minutes} minute{'s' if minutes > 1 else ''}, "
            f"or ask whoever runs this server for a one-time link ({settings.LOGIN_COMMAND}).",
            retry_after_s=-(-wait // 1000),
        )
    return Attempt(name, source, address)


def _wait(now: int, most: int, **what: str) -> int:
    """Milliseconds until fewer than `most` failures are left in the window."""
    times = LoginFailure.objects.filter(**what, at__gt=now - WINDOW_MS).order_by("-at")
    oldest = times.values_list("at", flat=True)[most - 1 : most].first()
    return 0 if oldest is None else oldest + WINDOW_MS - now


def _folded(name: str) -> str:
    """Return name as failures are counted: case does not matter, nor what a database refuses."""
    return name.casefold().replace("\0", "").encode(errors="replace").decode()[:150]


def browser_cookie(name: str) -> tuple[str, str]:
    """Return name and value of the cookie by which a user's browser is known after a login."""
    return _cookie_name(name), signing.dumps([_folded(name), secrets.token_hex(16)], salt="known-browser")


def _cookie_name(name: str) -> str:
    mark = hashlib.sha256(_folded(name).encode(errors="replace")).hexdigest()[:12]
    return f"volcano_ui_known_{settings.PORT}_{mark}"


def logged_in(user: User, address: str, how: str, *, now: int | None = None) -> None:
    """Leave an audit row for a login."""
    _record(user.username, "done", f"Logged in {how} from {address}.", now=now)


def logged_out(user: User) -> None:
    """Leave an audit row for a logout."""
    audit.record(Deed(user.username, "logout", "users", name=user.username))


def _record(name: str, outcome: str, message: str, *, now: int | None = None) -> None:
    actor = name if outcome == "done" else "system:anonymous"
    at = clock.milliseconds() if now is None else now
    audit.record(Deed(actor, "login", "users", name=name, outcome=outcome, message=message, at=at))
