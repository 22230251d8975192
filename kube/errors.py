"""Errors of the Kubernetes API, and the causes an Invalid is made of.

ApiError
  BadRequest             400  the request cannot be read
  Unauthorized           401  the client is not authenticated
  Forbidden              403  the client may not do this, or admission refuses
  NotFound               404  the name is not there
  MethodNotAllowed       405  nobody may do this here
  NotAcceptable          406  the answer cannot be written in any accepted form
  AlreadyExists          409  the name is taken
  Conflict               409  resourceVersion is not the current one
  Expired                410  the requested history is already compacted
  RequestEntityTooLarge  413  the body or the patch is too large
  UnsupportedMediaType   415  the body is written in a form that cannot be read
  Invalid                422  the object breaks its schema or a rule
  TooManyRequests        429  ask again later
  InternalError          500  a defect of the server
  ServiceUnavailable     503  the server is starting or has lost a part
  Timeout                504  the request was not completed in time

Texts are Kubernetes' own (reference: kubernetes-api §2.5), so that kubectl and
the clients read them as they are used to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

MAX_CAUSES = 256  # in an answer; more would help nobody and cost memory
WRONG_TYPE = "FieldValueTypeInvalid"
LONGEST_QUOTED = 500  # characters of a refused value in a message


class Cause(NamedTuple):
    """One thing wrong with one field of an object."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ApiError(Exception):
    """An answer of the API other than success.

    `resource` (its id, such as `jobs.batch.volcano.sh`) and `name` are those of the object.
    `noted` is the message for records, without what only the client may read.
    """

    code = 500
    reason = "InternalError"
    has_details = False  # whether its Status has details, if empty ones, as Kubernetes' own library makes it

    def __init__(
        self,
        message: str,
        *,
        causes: Iterable[Cause] = (),
        resource: str = "",
        name: str = "",
        retry_after_s: int = 0,
        noted: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.noted = noted or message
        self.causes = tuple(causes)
        self.resource = resource
        self.name = name
        self.retry_after_s = retry_after_s

    def status(self) -> dict[str, Any]:
        """Return the `Status` object that the API answers with."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self._details(),
            "code": self.code,
        }
        if not status["details"] and not self.has_details:
            del status["details"]
        return status

    def _details(self) -> dict[str, Any]:
        kind, _, group = self.resource.partition(".")
        details = {
            "name": self.name,
            "group": group,
            "kind": kind,
            "causes": [{key: text for key, text in cause._asdict().items() if text} for cause in self.causes],
            "retryAfterSeconds": self.retry_after_s,
        }
        return {key: value for key, value in details.items() if value}


class BadRequest(ApiError):
    """The request cannot be read."""

    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    """The client is not authenticated."""

    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    """The client may not do this, or admission refuses it."""

    code = 403
    reason = "Forbidden"
    has_details = True

    @classmethod
    def of(cls, resource: str, name: str, detail: str) -> Forbidden:
        """Refuse something to do with the named object: `pods "x" is forbidden: detail`."""
        return cls(f"{_named(resource, name)} is forbidden: {detail}", resource=resource, name=name)


class NotFound(ApiError):
    """The name is not there; without a message, the path is not."""

    code = 404
    reason = "NotFound"
    has_details = True

    def __init__(self, message: str = "the server could not find the requested resource", **details: Any) -> None:
        super().__init__(message, **details)

    @classmethod
    def of(cls, resource: str, name: str) -> NotFound:
        """Say that the named object is not there: `pods "x" not found`."""
        return cls(f"{_named(resource, name)} not found", resource=resource, name=name)


class MethodNotAllowed(ApiError):
    """Nobody may do this here, whatever their rights."""

    code = 405
    reason = "MethodNotAllowed"
    has_details = True

    def __init__(
        self, message: str = "the server does not allow this method on the requested resource", **details: Any
    ) -> None:
        super().__init__(message, **details)

    @classmethod
    def of(cls, resource: str, verb: str) -> MethodNotAllowed:
        """Say that a resource has no such verb: `update is not supported on resources of kind "pods"`."""
        return cls(f'{verb} is not supported on resources of kind "{resource}"', resource=resource)


class NotAcceptable(ApiError):
    """The answer cannot be written in any form that the client accepts."""

    code = 406
    reason = "NotAcceptable"
    has_details = True

    @classmethod
    def of(cls, media_types: Iterable[str]) -> NotAcceptable:
        """Say in which forms the answer could be written."""
        return cls(f"only the following media types are accepted: {', '.join(media_types)}")


class AlreadyExists(ApiError):
    """The name is taken."""

    code = 409
    reason = "AlreadyExists"
    has_details = True

    @classmethod
    def of(cls, resource: str, name: str) -> AlreadyExists:
        """Say that the name is taken: `pods "x" already exists`."""
        return cls(f"{_named(resource, name)} already exists", resource=resource, name=name)

    @classmethod
    def generated(cls, resource: str, name: str) -> AlreadyExists:
        """Say that every name tried for `generateName` is taken, of which `name` was the last."""
        detail = "already exists, the server was not able to generate a unique name for the object"
        return cls(f"{_named(resource, name)} {detail}", resource=resource, name=name, retry_after_s=1)


class Conflict(ApiError):
    """The object changed since it was read."""

    code = 409
    reason = "Conflict"
    has_details = True

    @classmethod
    def of(cls, resource: str, name: str, detail: str = "") -> Conflict:
        """Say that a write came too late: `Operation cannot be fulfilled on pods "x": detail`."""
        detail = detail or "the object has been modified; please apply your changes to the latest version and try again"
        message = f"Operation cannot be fulfilled on {_named(resource, name)}: {detail}"
        return cls(message, resource=resource, name=name)


class Expired(ApiError):
    """The requested history is already compacted."""

    code = 410
    reason = "Expired"


class RequestEntityTooLarge(ApiError):
    """The body or the patch is too large."""

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The body is written in a form that cannot be read."""

    code = 415
    reason = "UnsupportedMediaType"

    @classmethod
    def of(cls, media_types: Iterable[str]) -> UnsupportedMediaType:
        """Say which forms of a body can be read."""
        return cls(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(media_types)}"
        )


class Invalid(ApiError):
    """The object breaks its schema or a rule."""

    code = 422
    reason = "Invalid"
    has_details = True

    @classmethod
    def of(cls, kind: str, name: str, causes: Sequence[Cause]) -> Invalid:
        """Refuse an object for its causes, of which the first are listed; kind is `Pod` or `Job.batch.volcano.sh`."""
        texts = [str(cause) for cause in causes[:MAX_CAUSES]]
        if len(causes) > MAX_CAUSES:
            texts.append(f"and {len(causes) - MAX_CAUSES:,} more")
            causes = causes[:MAX_CAUSES]
        listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return cls(f'{kind} "{name}" is invalid: {listed}', causes=causes, resource=kind, name=name)


class TooManyRequests(ApiError):
    """Ask again later."""

    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    """A defect of the server."""

    has_details = True

    @classmethod
    def of(cls, detail: str) -> InternalError:
        """Say what went wrong: `Internal error occurred: detail`."""
        return cls(f"Internal error occurred: {detail}", causes=[Cause("", detail, "")])


class ServiceUnavailable(ApiError):
    """The server is starting or has lost a part."""

    code = 503
    reason = "ServiceUnavailable"


class Timeout(ApiError):
    """The request was not completed in time."""

    code = 504
    reason = "Timeout"
    has_details = True

    @classmethod
    def of(cls, detail: str, *, retry_after_s: int = 0) -> Timeout:
        """Say what took too long: `Timeout: detail`."""
        return cls(f"Timeout: {detail}", retry_after_s=retry_after_s)

    @classmethod
    def too_large_resource_version(cls, wanted: int, current: int) -> Timeout:
        """Refuse to wait for a revision of the future; by its cause a client knows to ask again."""
        text = "Too large resource version"
        return cls(
            f"Timeout: {text}: {wanted}, current: {current}",
            causes=(Cause("ResourceVersionTooLarge", text, ""),),
            retry_after_s=1,
        )


_CLASSES: tuple[type[ApiError], ...] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    AlreadyExists,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    Timeout,
)
_BY_REASON = {each.reason: each for each in _CLASSES} | {"Gone": Expired}
_BY_CODE = {each.code: each for each in reversed(_CLASSES)}


def of_status(status: Mapping[str, Any], code: int) -> ApiError:
    """Return the error of a server's Status, the inverse of `ApiError.status`; code is that of the answer.

    For a body that is no Status, such as a proxy's page, the code alone decides.
    """
    details = status.get("details") or {}
    kind, group = str(details.get("kind") or ""), str(details.get("group") or "")
    reason = str(status.get("reason") or "")
    error_class = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    error = error_class(
        str(status.get("message") or f"The server answered with the code {code}."),
        causes=[Cause(*(str(cause.get(key) or "") for key in Cause._fields)) for cause in details.get("causes") or ()],
        resource=f"{kind}.{group}" if group else kind,
        name=str(details.get("name") or ""),
        retry_after_s=int(details.get("retryAfterSeconds") or 0),
    )
    if error_class is ApiError:
        error.code, error.reason = code, reason or error.reason
    return error


def required(path: str, detail: str = "") -> Cause:
    """Refuse the absence of a field."""
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", path)


def invalid(path: str, value: Any, detail: str) -> Cause:
    """Refuse a value for the reason that detail gives."""
    return Cause("FieldValueInvalid", f"Invalid value: {quoted(value)}: {detail}", path)


def wrong_type(path: str, value: Any, detail: str) -> Cause:
    """Refuse a value that has another type than the field."""
    return Cause(WRONG_TYPE, f"Invalid value: {quoted(value)}: {detail}", path)


def not_supported(path: str, value: Any, allowed: Iterable[str]) -> Cause:
    """Refuse a value outside a list of allowed ones."""
    listed = ", ".join(quoted(str(item)) for item in allowed)
    return Cause("FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {listed}", path)


def duplicate(path: str, value: Any) -> Cause:
    """Refuse a value that may appear only once."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {quoted(value)}", path)


def forbidden(path: str, detail: str) -> Cause:
    """Refuse a field that may not be given or changed here."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", path)


def not_found(path: str, value: Any) -> Cause:
    """Refuse a reference to something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {quoted(value)}", path)


def too_long(path: str, limit: int) -> Cause:
    """Refuse a text longer than limit."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def too_many(path: str, count: int, limit: int) -> Cause:
    """Refuse a list of count items where limit are allowed."""
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}", path)


def quoted(value: Any) -> str:
    """Write a value as JSON for a message, shortened; a value that is not JSON shows as its type."""
    try:
        # Escaping keeps lone surrogates, which no answer could be encoded with, out of messages.
        text = json.dumps(value, ensure_ascii=not _is_text(value))
    except (RecursionError, TypeError, ValueError):
        text = f'"<{type(value).__name__}>"'
    return text if len(text) <= LONGEST_QUOTED else text[:LONGEST_QUOTED] + "…"


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:
        return False


def _named(resource: str, name: str) -> str:
    return f'{resource} "{name}"' if name else resource
