"""Asking a cluster what somebody may do there, in his name, by self subject reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.remote.door import access_rules
from cluster.remote.door.access_rules import AccessRules, Question
from cluster.remote.http.request import Impersonation, Unreachable, decode
from kube import lenient
from kube.errors import ApiError, Unauthorized
from kube.meta import Object

if TYPE_CHECKING:  # it brings the official client, which is 900 modules
    from cluster.remote.connection import Connection

API = "authorization.k8s.io/v1"
PATH = "/apis/authorization.k8s.io/v1"
ANSWER_S = 5.0  # people wait for a page meanwhile
# No namespace can be named so, and none may hold a role binding: what is allowed there is allowed in all of them.
EVERYWHERE = "-"


class Unanswered(Exception):
    """The cluster did not say what somebody may do; the message is the cause, in few words."""


def rules(connection: Connection, who: Impersonation, namespace: str) -> AccessRules:
    """Return what somebody may do in a namespace, or ("") in all of them and at the cluster's scope.

    Forbidden when we may not act as him; Unanswered when the cluster does not answer.
    """
    spec = {"namespace": namespace or EVERYWHERE}
    return access_rules.read(_ask(connection, who, "SelfSubjectRulesReview", spec))


def access(connection: Connection, who: Impersonation, question: Question) -> bool:
    """Say whether somebody may do one thing; errors as of `rules`."""
    attributes = {
        "verb": question.verb,
        "group": question.group,
        "resource": question.plural,
        "subresource": question.subresource,
        "namespace": question.namespace,
        "name": question.name,
    }
    answer = _ask(connection, who, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    return lenient.mapping(answer, "status").get("allowed") is True


def _ask(connection: Connection, who: Impersonation, kind: str, spec: Object) -> Object:
    body = {"apiVersion": API, "kind": kind, "spec": spec}
    path = f"{PATH}/{kind.lower()}s"
    try:
        return decode(connection.request("POST", path, body=body, impersonation=who, answer_s=ANSWER_S))
    except Unreachable as error:
        raise Unanswered(error.cause) from None
    except Unauthorized as error:
        raise Unanswered(f"it does not know the user of the kubeconfig: {error.message}") from None
    except ApiError as error:
        if error.code == 429 or error.code >= 500:
            raise Unanswered(error.message) from None
        raise
