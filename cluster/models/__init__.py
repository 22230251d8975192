"""Tables of the cluster: the store's and the accounts'."""

from __future__ import annotations

from cluster.models.accounts import AuditEntry, LoginFailure, LoginLink, RoleBinding
from cluster.models.store import Change, Cursor, Log, Object, Ownership, Record, Timer
from cluster.models.tokens import Token

__all__ = [
    "AuditEntry",
    "Change",
    "Cursor",
    "Log",
    "LoginFailure",
    "LoginLink",
    "Object",
    "Ownership",
    "Record",
    "RoleBinding",
    "Timer",
    "Token",
]
