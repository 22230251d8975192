"""The questions of an API server (AdmissionReview, admission.k8s.io/v1) and the answers to them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from cluster.remote.webhooks.hooks import Webhook
from kube import lenient
from kube.errors import ApiError, BadRequest, quoted
from kube.meta import Object

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_NEEDED = MappingProxyType({"CREATE": ("object",), "UPDATE": ("object", "oldObject"), "DELETE": ("oldObject",)})
_encode = msgspec.json.Encoder().encode


class Question(NamedTuple):
    """What somebody asks an API server to do: the object as it would be stored (None: deleted), and as it is (None: new)."""

    uid: str
    operation: str
    object: Object | None
    old: Object | None


class Ruling(NamedTuple):
    """What is answered: a refusal, what is merely odd, and the JSON patch that fills in what was left open."""

    error: ApiError | None = None
    warnings: Sequence[str] = ()
    patch: Sequence[Object] = ()


def review(webhook: Webhook, body: Any, rule: Callable[[Webhook, Question], Ruling]) -> Object:
    """Return the answer to a question; BadRequest for what is none that this webhook is asked."""
    question = read(webhook, body)
    return answer(question, rule(webhook, question))


def read(webhook: Webhook, body: Any) -> Question:
    """Read a question; BadRequest says why it is none for this webhook."""
    if (lenient.text(body, "apiVersion"), lenient.text(body, "kind")) != (API_VERSION, KIND):
        raise BadRequest(f"A webhook is asked with a {KIND} of {API_VERSION}.")
    request = lenient.mapping(body, "request")
    uid, operation = lenient.text(request, "uid"), lenient.text(request, "operation")
    about = lenient.text(request, "resource", "group"), lenient.text(request, "resource", "resource")
    if not uid:
        raise BadRequest("request.uid is missing, by which the answer is told from others.")
    if about != (webhook.resource.group, webhook.resource.plural):
        raise BadRequest(f"{webhook.path} is about {webhook.resource.id}, not {quoted('.'.join(about[::-1]))}.")
    if operation not in webhook.operations:
        raise BadRequest(f"{webhook.path} is asked at {', '.join(webhook.operations)}, not {quoted(operation)}.")
    new, old = _part(request, "object"), _part(request, "oldObject")
    for field, is_there in (("object", new), ("oldObject", old)):
        if not is_there and field in _NEEDED[operation]:
            raise BadRequest(f"request.{field} is missing, which belongs to {operation}.")
    return Question(uid, operation, new, old)


def _part(request: Object, field: str) -> Object | None:
    value = request.get(field)
    return value if isinstance(value, dict) and value else None


def answer(question: Question, ruling: Ruling) -> Object:
    """Return the AdmissionReview that answers a question."""
    response: Object = {"uid": question.uid, "allowed": ruling.error is None}
    if ruling.error is not None:
        response["status"] = ruling.error.status()
    if ruling.warnings:
        response["warnings"] = [*ruling.warnings]
    if ruling.patch and ruling.error is None:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(_encode(ruling.patch)).decode()}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}
