"""The cluster behind the pages as this process knows it: its API server, and what may be changed there."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from cluster import access, clock
from cluster.access import Actor
from cluster.remote import recorder
from cluster.remote.door import calls as asking
from cluster.remote.door.calls import Calls
from cluster.remote.http.request import Impersonation, Unreachable
from cluster.remote.http.target import Target
from cluster.remote.mirroring import ways
from cluster.remote.mirroring.ways import Permits
from kube.errors import Forbidden, MethodNotAllowed

if TYPE_CHECKING:  # it brings the official client, which is 900 modules
    from cluster.remote.connection import Connection

FRESH_S = 1.0
PERSON_S = 5.0
MAX_PEOPLE = 5000
SYSTEMS = "system:"  # names that begin so are the system's own, with a prefix or without
CONNECTION = "cluster.remote.connection.Connection"


def target() -> Target:
    """Return which cluster it is."""
    if settings.TARGET is None:
        raise ImproperlyConfigured("The cluster is embedded; it has no API server beside our own.")
    return settings.TARGET


def directory() -> Path:
    """Return where certificates of its kubeconfig are kept while processes run."""
    path: Path = settings.DATA / "run" / "kubeconfig"
    return path


@cache
def connection() -> Connection:
    """Return this process's connection; Unreachable when the kubeconfig cannot be used."""
    # By its path: the official client costs 40 MB, which only processes that ask should have.
    client: Connection = import_string(CONNECTION).of(target(), directory())
    return client


def calls(actor: Actor) -> Calls:
    """Return what asks the server for changes on behalf of somebody."""
    try:
        return asking.Calls(connection(), acting_as(actor))
    except Unreachable as error:
        raise asking.away(target().name, error) from None


def acting_as(actor: Actor) -> Impersonation | None:
    """Return as whom requests are made for an actor; None stands for the kubeconfig's user.

    Forbidden when people act as themselves there and the actor is nobody.
    """
    if not settings.IMPERSONATE or access.is_system(actor):
        return None
    user = impersonation(actor)
    if user is None:
        raise Forbidden(f"{actor.name} has no account that is active, so the cluster {target().name} is not asked.")
    return user


_people: dict[Actor, tuple[int, float, Impersonation | None]] = {}


def impersonation(actor: Actor) -> Impersonation | None:
    """Return who an actor is in the cluster: the name of his account and those of its groups; None for nobody.

    It is read again after PERSON_S, or at once when an account changes in this process.
    """
    generation, now = access.generation(), clock.monotonic()
    cached = _people.get(actor)
    if cached is None or cached[0] != generation or cached[1] < now:
        if len(_people) > MAX_PEOPLE:
            _people.clear()
        cached = _people[actor] = generation, now + PERSON_S, _person(actor)
    return cached[2]


def _person(actor: Actor) -> Impersonation | None:
    """Read who an actor is. Groups of ours that begin with system: are not passed on, nor are names that a header cuts."""
    user = User.objects.filter(pk=actor.user_id, is_active=True).first() if actor.user_id is not None else None
    if user is None:
        return None
    prefix = settings.IMPERSONATE_GROUP_PREFIX
    names = user.groups.order_by("name").values_list("name", flat=True)
    groups = (f"{prefix}{name}" for name in names if not name.startswith(SYSTEMS) and name == name.strip())
    return Impersonation(
        f"{settings.IMPERSONATE_USER_PREFIX}{user.username}",
        tuple(group for group in groups if not group.startswith(SYSTEMS)),
    )


def not_here(what: str) -> MethodNotAllowed:
    """Return the refusal of what the cluster does by itself, or its own API for those who ask it."""
    return MethodNotAllowed(
        f"These pages stand beside the cluster {target().name}, and {what} is its own business. Use kubectl."
    )


_permits: tuple[float, Permits] | None = None


def permits() -> Permits:
    """Return what the cluster permits, read at most every FRESH_S seconds: each button on a page asks."""
    global _permits
    now = clock.monotonic()
    if _permits is None or now - _permits[0] > FRESH_S:
        _permits = (now, ways.permits(target().name, settings.WAY, recorder.statuses()))
    return _permits[1]
