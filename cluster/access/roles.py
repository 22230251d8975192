"""Which role may do what: one table, and the pure functions that read it.

Roles are ordered, viewer ⊂ submitter ⊂ operator ⊂ administrator, and are held in a namespace or ("*") everywhere.
Whoever is not granted something is denied it. `cluster.access` connects this to users, groups and the database.

A namespaced resource asks for the role in its namespace. A resource of the whole cluster is read by everybody who has a
role anywhere, and written by those whose role is held in "*". A Namespace object counts as lying in itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cache

from kube import resources
from kube.resources import Resource

EVERYWHERE = "*"


class Role(StrEnum):
    """What somebody is, in one namespace or everywhere; weakest first."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


class Everywhere(Enum):
    """The answer "in every namespace" of `namespaces`."""

    ALL = "*"


ALL = Everywhere.ALL
Row = tuple[str, str, str, str]

# Each column adds to the one on its left. r read (get, list, watch), c create, u update (and patch), d delete
# (and deletecollection); with * only what the actor created. Resources are `kube.resources` ids; a part after a
# slash is a subresource, `*/x` any resource's; users, roles and audit are the dashboard's own,
# and metrics is the path /metrics.
NAMESPACED: dict[str, Row] = {
    #                                  viewer  submitter     operator   administrator
    "jobs.batch.volcano.sh":           ("r",   "c u* d*",    "u d",     ""),
    "cronjobs.batch.volcano.sh":       ("r",   "c u* d*",    "u d",     ""),
    "jobflows.flow.volcano.sh":        ("r",   "c u* d*",    "u d",     ""),
    "jobtemplates.flow.volcano.sh":    ("r",   "c u* d*",    "u d",     ""),
    "jobs.batch":                      ("r",   "c u* d*",    "u d",     ""),
    "pods":                            ("r",   "c u* d*",    "u d",     ""),
    "pods/log":                        ("r",   "",           "",        ""),
    "pods.metrics.k8s.io":             ("r",   "",           "",        ""),
    "pods/exec":                       ("",    "c*",         "c",       ""),
    "pods/attach":                     ("",    "c*",         "c",       ""),
    "pods/portforward":                ("",    "c*",         "c",       ""),
    "pods/eviction":                   ("",    "c*",         "c",       ""),
    "pods/binding":                    ("",    "",           "",        "c"),
    "bindings":                        ("",    "",           "",        "c"),
    "podgroups.scheduling.volcano.sh": ("r",   "c u* d*",    "u d",     ""),
    "commands.bus.volcano.sh":         ("r",   "c* d*",      "c d",     ""),
    "configmaps":                      ("r",   "c u* d*",    "u d",     ""),
    "configmaps/scheduler":            ("",    "",           "",        "c u d"),
    "services":                        ("r",   "c u* d*",    "u d",     ""),
    "endpoints":                       ("r",   "c u* d*",    "u d",     ""),
    "networkpolicies.networking.k8s.io": ("r", "c u* d*",    "u d",     ""),
    "persistentvolumeclaims":          ("r",   "c u* d*",    "u d",     ""),
    "poddisruptionbudgets.policy":     ("r",   "",           "c u d",   ""),
    "secrets":                         ("",    "c r* u* d*", "r u d",   ""),
    "events":                          ("r",   "",           "c u d",   ""),
    "leases.coordination.k8s.io":      ("",    "",           "r",       "c u d"),
    "serviceaccounts":                 ("r",   "",           "",        "c u d"),
    "serviceaccounts/token":           ("",    "",           "",        "c d"),
    "resourcequotas":                  ("r",   "",           "",        "c u d"),
    "limitranges":                     ("r",   "",           "",        "c u d"),
    "*/status":                        ("r",   "",           "",        "u"),
    "*/scale":                         ("r",   "u*",         "u",       ""),
    "localsubjectaccessreviews.authorization.k8s.io": ("", "", "", "c"),
    "audit":                           ("",    "",           "r",       ""),
    "roles":                           ("",    "",           "",        "r c u d"),
}  # fmt: skip
CLUSTER: dict[str, Row] = {
    #                                         viewer  submitter  operator  administrator
    "queues.scheduling.volcano.sh":           ("r",   "",        "",       "c u d"),
    "queues.scheduling.volcano.sh/state":     ("",    "",        "u",      ""),
    "hypernodes.topology.volcano.sh":         ("r",   "",        "",       "c u d"),
    "nodes":                                  ("r",   "",        "u",      "c d"),
    "nodes.metrics.k8s.io":                   ("r",   "",        "",       ""),
    "priorityclasses.scheduling.k8s.io":      ("r",   "",        "",       "c u d"),
    "customresourcedefinitions.apiextensions.k8s.io": ("r", "",  "",       "c u d"),
    "users":                                  ("",    "",        "",       "r c u d"),
    "metrics":                                ("r",   "",        "",       ""),
    "subjectaccessreviews.authorization.k8s.io": ("", "",        "",       "c"),
    "tokenreviews.authentication.k8s.io":     ("",    "",        "",       "c"),
}  # fmt: skip
METRICS = "metrics"
# What everybody who has logged in may ask, whatever his roles (Kubernetes: system:basic-user).
ABOUT_ONESELF = frozenset(
    {
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
    }
)
# As whom an administrator of everything may act (verb impersonate).
SOMEBODY = frozenset({"users", "groups", "uids.authentication.k8s.io", "serviceaccounts"})
# Read with a role in that namespace, written with a role in "*".
NAMESPACE = "namespaces"
NAMESPACE_ROW = ("r", "", "", "c u d")
NAMESPACE_PARTS = {"namespaces/finalize": ("", "", "", "u"), "namespaces/status": ("r", "", "", "u")}
# Kinds that users add with a CustomResourceDefinition.
CUSTOM_NAMESPACED = NAMESPACED["configmaps"]
CUSTOM_CLUSTER = CLUSTER["priorityclasses.scheduling.k8s.io"]

LETTER = {
    **dict.fromkeys(("get", "list", "watch"), "r"),
    "create": "c",
    **dict.fromkeys(("update", "patch"), "u"),
    **dict.fromkeys(("delete", "deletecollection"), "d"),
}


@dataclass(frozen=True, slots=True)
class Grants:
    """The strongest role that somebody holds, by namespace ("*" for everywhere); `name` is who created things."""

    name: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)

    def role(self, namespace: str) -> Role | None:
        """Return the strongest role that holds in a namespace."""
        return strongest(self.roles.get(namespace), self.roles.get(EVERYWHERE))

    def highest(self) -> Role | None:
        """Return the strongest role held anywhere."""
        return strongest(*self.roles.values())


def strongest(*roles: Role | None) -> Role | None:
    """Return the strongest of the roles, None for none."""
    held = [role for role in roles if role is not None]
    return max(held, key=RANK.__getitem__) if held else None


RANK = {role: rank for rank, role in enumerate(Role)}


def decide(grants: Grants, verb: str, resource: str, namespace: str, owner: str | None = None) -> bool:
    """Say whether the grants allow the verb; an unknown verb or resource is denied.

    owner is the name of whoever created the object, None when there is none or it is not known. For a
    list, namespace "" of a namespaced resource means all namespaces and needs a role in "*".
    """
    letter = LETTER.get(verb)
    if letter is None:
        return verb == "impersonate" and resource in SOMEBODY and grants.roles.get(EVERYWHERE) is Role.ADMINISTRATOR
    if resource in ABOUT_ONESELF:
        return verb == "create"
    if resource.partition("/")[0] == NAMESPACE:
        right_namespace = namespace or EVERYWHERE if letter == "r" else EVERYWHERE
        return letter in letters(grants.role(right_namespace), resource)
    if _is_of_cluster(resource):
        role = grants.highest() if letter == "r" and resource != "users" else grants.roles.get(EVERYWHERE)
        return letter in letters(role, resource)
    held = letters(grants.role(namespace), resource)
    return letter in held or (f"{letter}*" in held and bool(grants.name) and owner == grants.name)


def namespaces_of(grants: Grants, resource: str, verb: str = "list") -> frozenset[str] | Everywhere:
    """Return the namespaces in which the verb is allowed on anybody's objects."""
    if _is_of_cluster(resource):
        return ALL if decide(grants, verb, resource, "") else frozenset()
    if decide(grants, verb, resource, EVERYWHERE):
        return ALL
    return frozenset(
        namespace for namespace in grants.roles if namespace != EVERYWHERE and decide(grants, verb, resource, namespace)
    )


def needed(verb: str, resource: str) -> Role | None:
    """Return the weakest role that may do the verb on anybody's objects, None when no role may."""
    letter = LETTER.get(verb, "")
    return next((role for role in Role if letter in letters(role, resource)), None)


def letters(role: Role | None, resource: str) -> frozenset[str]:
    """Return what a role may do with a resource, in the table's letters."""
    row = _row(resource)
    return frozenset() if role is None or row is None else _letters(role, row)


@cache
def _letters(role: Role, row: Row) -> frozenset[str]:
    return frozenset(" ".join(row[: RANK[role] + 1]).split())


def _is_of_cluster(resource: str) -> bool:
    """Say whether a resource lies in no namespace; a Namespace counts as lying in itself."""
    base = resource.partition("/")[0]
    if base in CLUSTER:
        return True
    custom = _custom(base)
    return custom is not None and not custom.namespaced


def _row(resource: str) -> Row | None:
    if resource == NAMESPACE:
        return NAMESPACE_ROW
    row = NAMESPACED.get(resource) or CLUSTER.get(resource) or NAMESPACE_PARTS.get(resource)
    if row is not None:
        return row
    base, _, part = resource.partition("/")
    if part:
        return NAMESPACED.get(f"*/{part}") if _row(base) else None
    custom = _custom(resource)
    if custom is None:
        return None
    return CUSTOM_NAMESPACED if custom.namespaced else CUSTOM_CLUSTER


def _custom(resource: str) -> Resource | None:
    """Return the custom kind with this id; the others have rows of their own."""
    if resource in NAMESPACED or resource in CLUSTER:
        return None
    try:
        kind = resources.by_id(resource)
    except KeyError:
        return None
    return kind if kind.schema is not None else None
