"""Who there is, what they may do, and how they get in.

    from cluster import access
    access.require(actor, "create", resource, namespace)

`authorizer` decides, from the table in `roles`, or asks who decides in place of
it; `accounts`, `tokens` and `logins` say who somebody is; `audit`
keeps what they did.
"""

from __future__ import annotations

from cluster.access.authorizer import (
    BOOTSTRAPPERS,
    CONSOLE,
    MASTERS,
    SYSTEM,
    Actor,
    account_of,
    allowed,
    decides_elsewhere,
    delegate,
    for_user,
    generation,
    grants,
    is_system,
    namespaces,
    node_of,
    of,
    refuse,
    remedy,
    renew,
    require,
    scope,
    somewhere,
)
from cluster.access.roles import ALL, EVERYWHERE, Everywhere, Role

__all__ = [
    "ALL",
    "BOOTSTRAPPERS",
    "CONSOLE",
    "EVERYWHERE",
    "MASTERS",
    "SYSTEM",
    "Actor",
    "Everywhere",
    "Role",
    "account_of",
    "allowed",
    "decides_elsewhere",
    "delegate",
    "for_user",
    "generation",
    "grants",
    "is_system",
    "namespaces",
    "node_of",
    "of",
    "refuse",
    "remedy",
    "renew",
    "require",
    "scope",
    "somewhere",
]
