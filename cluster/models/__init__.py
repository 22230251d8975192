"""Tables of the cluster: the store's and the accounts'."""

from __future__ import annotations

from cluster.models.accounts import AuditEntry, Identity, LoginFailure, LoginLink, RoleBinding
from cluster.models.remote import MirroredCluster, MirroredKind, Outgoing, ProgramsLease
from cluster.models.store import Change, Cursor, Decision, IdleRoomCheck, Log, Object, Ownership, Record, Refusal, Timer
from cluster.models.tokens import Token

__all__ = [
    "AuditEntry",
    "Change",
    "Cursor",
    "Decision",
    "Identity",
    "IdleRoomCheck",
    "Log",
    "LoginFailure",
    "LoginLink",
    "MirroredCluster",
    "MirroredKind",
    "Object",
    "Outgoing",
    "Ownership",
    "ProgramsLease",
    "Record",
    "Refusal",
    "RoleBinding",
    "Timer",
    "Token",
]
