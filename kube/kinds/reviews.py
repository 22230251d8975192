"""Reviews: questions about who somebody is and what he may do (reference: kubernetes-api §4.7)."""

from __future__ import annotations

from kube.kinds.fields import View
from kube.kinds.meta import ObjectMeta


class ResourceAttributes(View):
    """An action on objects; "*" stands for all, and no name for every name."""

    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(View):
    """An action on a path that names no object."""

    path: str = ""
    verb: str = ""


class AccessReviewStatus(View):
    """Whether it is allowed, and why."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SelfSubjectAccessReviewSpec(View):
    """The action that the client asks about for itself."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectAccessReview(View):
    """May I do this?"""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()
    status: AccessReviewStatus = AccessReviewStatus()


class SubjectAccessReviewSpec(View):
    """The action that is asked about, and by whom it would be done."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: list[str] = []
    uid: str = ""
    extra: dict[str, list[str]] = {}


class SubjectAccessReview(View):
    """May somebody do this? In a namespace it is a LocalSubjectAccessReview."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: AccessReviewStatus = AccessReviewStatus()


class ResourceRule(View):
    """What may be done with objects."""

    verbs: list[str] = []
    api_groups: list[str] = []
    resources: list[str] = []


class NonResourceRule(View):
    """What may be done with paths."""

    verbs: list[str] = []
    non_resource_urls: list[str] = []


class RulesReviewStatus(View):
    """All that somebody may do in a namespace; `incomplete` when rules cannot express that."""

    resource_rules: list[ResourceRule] = []
    non_resource_rules: list[NonResourceRule] = []
    incomplete: bool = False
    evaluation_error: str = ""


class SelfSubjectRulesReviewSpec(View):
    """The namespace that the review is about."""

    namespace: str = ""


class SelfSubjectRulesReview(View):
    """What may I do in a namespace?"""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: SelfSubjectRulesReviewSpec = SelfSubjectRulesReviewSpec()
    status: RulesReviewStatus = RulesReviewStatus()


class UserInfo(View):
    """Who somebody is."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class TokenReviewSpec(View):
    """A token, and for whom it should be."""

    token: str = ""
    audiences: list[str] = []


class TokenReviewStatus(View):
    """Whose the token is."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: list[str] = []
    error: str = ""


class TokenReview(View):
    """Whose is this token?"""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: TokenReviewSpec = TokenReviewSpec()
    status: TokenReviewStatus = TokenReviewStatus()
