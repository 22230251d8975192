"""Tables of the cluster: the store's and the accounts'."""

from __future__ import annotations

from cluster.models.accounts import AuditEntry as AuditEntry
from cluster.models.accounts import Identity as Identity
from cluster.models.accounts import LoginFailure as LoginFailure
from cluster.models.accounts import LoginLink as LoginLink
from cluster.models.accounts import RoleBinding as RoleBinding
from cluster.models.remote import MirroredCluster as MirroredCluster
from cluster.models.remote import MirroredKind as MirroredKind
from cluster.models.remote import Outgoing as Outgoing
from cluster.models.remote import ProgramsLease as ProgramsLease
from cluster.models.store import Change as Change
from cluster.models.store import Cursor as Cursor
from cluster.models.store import Decision as Decision
from cluster.models.store import IdleRoomCheck as IdleRoomCheck
from cluster.models.store import Log as Log
from cluster.models.store import Object as Object
from cluster.models.store import Ownership as Ownership
from cluster.models.store import Record as Record
from cluster.models.store import Refusal as Refusal
from cluster.models.store import Timer as Timer
from cluster.models.tokens import Token as Token
