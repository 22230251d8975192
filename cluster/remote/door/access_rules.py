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

    def allows(self, question: Question) -> bool:
        """Say whether this rule alone allows it."""
        part = question.subresource
        targets = {ALL, f"{question.plural}/{part}", f"{ALL}/{part}"} if part else {ALL, question.plural}
        return (
            not self.verbs.isdisjoint({ALL, question.verb})
            and not self.groups.isdisjoint({ALL, question.group})
            and not self.resources.isdisjoint(targets)
            and (not self.names or question.name in self.names)
        )


class AccessRules(NamedTuple):
    """All that somebody may do in a namespace; when they are not complete, they cannot answer a question."""

    rules: frozenset[Rule] = frozenset()
    are_complete: bool = True

    def allow(self, question: Question) -> bool:
        """Say whether one of the rules allows it."""
        return any(rule.allows(question) for rule in self.rules)


NONE = AccessRules()


def read(review: Object) -> AccessRules:
    """Return the rules of an answered review; those of paths that name no object are left out."""
    status = lenient.mapping(review, "status")
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    rules = frozenset(
        Rule(*(frozenset(lenient.texts(rule, field)) for field in fields))
        for rule in lenient.sequence(status, "resourceRules")
    )
    return AccessRules(rules, are_complete=not status.get("incomplete"))
