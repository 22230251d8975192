"""What a cluster says that somebody may do: the rules of its answer to a SelfSubjectRulesReview, and how they are read.

A rule holds where verb, group, resource and, if it names objects, the name all match; "*" matches all
of them but names (Kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go). Rules only ever allow.
"""

from __future__ import annotations

from typing import NamedTuple

from kube import lenient
from kube.meta import Object

ALL = "*"


class Question(NamedTuple):
    """May somebody do a verb to a resource (by its id, perhaps with a subresource), in a namespace or ("") at the cluster's scope?"""

    verb: str
    resource: str
    namespace: str
    name: str = ""

    @property
    def group(self) -> str:
        return self.resource.partition("/")[0].partition(".")[2]

    @property
    def plural(self) -> str:
        return self.resource.partition("/")[0].partition(".")[0]

    @property
    def subresource(self) -> str:
        return self.resource.partition("/")[2]


class Rule(NamedTuple):
    """Verbs that are allowed to resources of groups; without names to all objects."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str] = frozenset()

    def allows(self, asked: Question) -> bool:
        """Say whether this rule is enough for what is asked."""
        return (
            (ALL in self.verbs or asked.verb in self.verbs)
            and (ALL in self.groups or asked.group in self.groups)
            and self._is_about(asked)
            and (not self.names or asked.name in self.names)
        )

    def _is_about(self, asked: Question) -> bool:
        part = asked.subresource
        whole = f"{asked.plural}/{part}" if part else asked.plural
        return ALL in self.resources or whole in self.resources or (bool(part) and f"{ALL}/{part}" in self.resources)


class AccessRules(NamedTuple):
    """All that somebody may do in a place; when they are not complete, they cannot answer a question."""

    rules: frozenset[Rule] = frozenset()
    are_complete: bool = True

    def allow(self, asked: Question) -> bool:
        """Say whether one of the rules is enough for what is asked."""
        return any(rule.allows(asked) for rule in self.rules)


NONE = AccessRules()


def read(review: Object) -> AccessRules:
    """Return the rules of an answered review; those of paths that name no object are left out."""
    status = lenient.mapping(review, "status")
    rules = frozenset(map(_rule, lenient.sequence(status, "resourceRules")))
    return AccessRules(rules, are_complete=not status.get("incomplete"))


def _rule(rule: Object) -> Rule:
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    return Rule(*(frozenset(lenient.texts(rule, field)) for field in fields))
