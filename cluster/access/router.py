"""One set of accounts for several clusters: those of the first, in its database.

Identity is common (users, groups, sessions, one-time links, accounts of a provider); what somebody may do is a
cluster's own, and `RoleBinding` says in which one it counts. Tokens stay with their cluster's API.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Model

APPS = frozenset({"auth", "sessions"})
MODELS = frozenset({"rolebinding", "identity", "loginlink", "loginfailure"})  # of the application `cluster`
READS = frozenset({"get", "list", "watch"})


class Accounts:
    """Django's router of a cluster that is not the first: accounts are elsewhere, all else is here."""

    def db_for_read(self, model: type[Model], **_: Any) -> str:
        """Return the alias of the database that holds a model."""
        meta = model._meta
        is_account = meta.app_label in APPS or (meta.app_label == "cluster" and meta.model_name in MODELS)
        return settings.ACCOUNTS_DATABASE if is_account else "default"

    db_for_write = db_for_read

    def allow_relation(self, *_: Any, **__: Any) -> bool:
        """What is kept here may name a user: `jobs.models.Operation` does."""
        return True

    def allow_migrate(self, db: str, *_: Any, **__: Any) -> bool:
        """The first cluster looks after its own database."""
        return db == "default"


@contextmanager
def account_transaction() -> Iterator[None]:
    """One transaction over accounts and this cluster's audit; where those are two databases, accounts come first."""
    with transaction.atomic(using=settings.ACCOUNTS_DATABASE), transaction.atomic():
        yield


def refusal(verb: str, resource: str) -> str:
    """Say why nobody changes accounts here, "" where the first cluster, which keeps them, is this one.

    Who administers one cluster must not get into the account of who administers all.
    """
    if settings.ACCOUNTS_DATABASE == "default" or resource != "users" or verb in READS:
        return ""
    return f"The accounts are kept by the cluster {settings.CLUSTERS[0].name}; change them there."
