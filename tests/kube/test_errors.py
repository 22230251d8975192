from __future__ import annotations

import msgspec
import pytest

from kube import errors
from tests.tables import cases

# Whether apimachinery's own errors have details, if empty ones.
ERRORS = [
    (errors.BadRequest, 400, "BadRequest", False),
    (errors.Unauthorized, 401, "Unauthorized", False),
    (errors.Forbidden, 403, "Forbidden", True),
    (errors.NotFound, 404, "NotFound", True),
    (errors.MethodNotAllowed, 405, "MethodNotAllowed", True),
    (errors.NotAcceptable, 406, "NotAcceptable", True),
    (errors.AlreadyExists, 409, "AlreadyExists", True),
    (errors.Conflict, 409, "Conflict", True),
    (errors.Expired, 410, "Expired", False),
    (errors.RequestEntityTooLarge, 413, "RequestEntityTooLarge", False),
    (errors.UnsupportedMediaType, 415, "UnsupportedMediaType", False),
    (errors.Invalid, 422, "Invalid", True),
    (errors.TooManyRequests, 429, "TooManyRequests", False),
    (errors.InternalError, 500, "InternalError", True),
    (errors.ServiceUnavailable, 503, "ServiceUnavailable", False),
    (errors.Timeout, 504, "Timeout", True),
]


@pytest.mark.parametrize(("kind", "code", "reason", "has_details"), ERRORS, ids=[each[2] for each in ERRORS])
def test_every_error_answers_with_its_status(kind, code, reason, has_details):
    error = kind("Something is wrong.")
    assert isinstance(error, errors.ApiError)
    assert str(error) == "Something is wrong."
    assert error.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Something is wrong.",
        "reason": reason,
        **({"details": {}} if has_details else {}),
        "code": code,
    }


def test_a_defect_is_told_as_its_cause_too():
    status = errors.InternalError.of("a defect").status()
    assert status["message"] == "Internal error occurred: a defect"
    assert status["details"] == {"causes": [{"message": "a defect"}]}


def test_details_say_what_the_error_is_about():
    error = errors.Invalid.of(
        "Job.batch.volcano.sh", "x", [errors.required("spec.a"), errors.forbidden("spec.b", "no")]
    )
    assert str(error) == 'Job.batch.volcano.sh "x" is invalid: [spec.a: Required value, spec.b: Forbidden: no]'
    assert error.status()["details"] == {
        "name": "x",
        "group": "batch.volcano.sh",
        "kind": "Job",
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
            {"reason": "FieldValueForbidden", "message": "Forbidden: no", "field": "spec.b"},
        ],
    }


@cases("error, message, details", {
    "a method without a resource": (errors.MethodNotAllowed(),
        "the server does not allow this method on the requested resource", {}),
    "a verb that the resource has not": (errors.MethodNotAllowed.of("jobs.batch", "update"),
        'update is not supported on resources of kind "jobs.batch"', {"group": "batch", "kind": "jobs"}),
    "not acceptable": (errors.NotAcceptable.of(["application/json", "application/yaml"]),
        "only the following media types are accepted: application/json, application/yaml", {}),
    "unknown form of a body": (errors.UnsupportedMediaType.of(["application/json"]),
        "the body of the request was in an unknown format - accepted media types include: application/json", None),
    "timeout": (errors.Timeout.of("request did not complete", retry_after_s=2), "Timeout: request did not complete",
        {"retryAfterSeconds": 2}),
    "a revision of the future": (errors.Timeout.too_large_resource_version(9, 7),
        "Timeout: Too large resource version: 9, current: 7",
        {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}),
})  # fmt: skip
def test_texts_are_those_of_kubernetes(error, message, details):
    status = error.status()
    assert status["message"] == message
    assert status.get("details") == details


def test_retry_after_is_told():
    assert errors.TooManyRequests("Later.", retry_after_s=3).status()["details"] == {"retryAfterSeconds": 3}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.NotFound.of("pods", "x"), 'pods "x" not found'),
        (errors.AlreadyExists.of("jobs.batch.volcano.sh", "x"), 'jobs.batch.volcano.sh "x" already exists'),
        (errors.Forbidden.of("pods", "", "quota"), "pods is forbidden: quota"),
        (errors.Conflict.of("pods", "x", "late"), 'Operation cannot be fulfilled on pods "x": late'),
        (errors.Invalid.of("Pod", "x", [errors.required("a")]), 'Pod "x" is invalid: a: Required value'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages_are_those_of_kubernetes(error, message):
    assert error.message == message


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (errors.required("a"), "a: Required value"),
        (errors.required("a", "give one"), "a: Required value: give one"),
        (errors.invalid("a", -1, "must be more"), "a: Invalid value: -1: must be more"),
        (errors.invalid("a", {"b": None}, "no"), 'a: Invalid value: {"b": null}: no'),
        (errors.invalid("a", "Zoë", "no"), 'a: Invalid value: "Zoë": no'),
        (errors.not_supported("a", "x", ["y", "z"]), 'a: Unsupported value: "x": supported values: "y", "z"'),
        (errors.duplicate("a", "x"), 'a: Duplicate value: "x"'),
        (errors.not_found("a", "x"), 'a: Not found: "x"'),
        (errors.too_long("a", 63), "a: Too long: may not be more than 63 bytes"),
        (errors.too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
        (errors.invalid("", 1, "no"), "Invalid value: 1: no"),
    ],
    ids=str,
)
def test_causes_print_as_those_of_kubernetes(cause, text):
    assert str(cause) == text


@pytest.mark.parametrize(
    "value", ["x" * 10**6, "\ud800", b"x", {1: {2}}, float("nan")], ids=lambda value: repr(value)[:20]
)
def test_any_value_can_be_shown_in_a_short_message(value):
    text = errors.shown(value)
    assert len(text) <= errors.LONGEST_SHOWN + 1
    msgspec.json.encode(text)


@pytest.mark.parametrize(
    "error",
    [
        errors.Invalid.of("Job.batch.volcano.sh", "x", [errors.required("spec.a"), errors.forbidden("", "no")]),
        errors.NotFound.of("pods", "x"),
        errors.AlreadyExists.generated("jobs.batch.volcano.sh", "x"),
        errors.Timeout.too_large_resource_version(9, 7),
        errors.InternalError("boom"),
    ],
)
def test_status_is_read_back_as_the_error_that_it_says(error):
    read = errors.of_status(error.status(), error.code)
    assert type(read) is type(error)
    assert read.status() == error.status()


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        ({}, 403, errors.Forbidden, "Forbidden"),
        ({"reason": "Gone"}, 410, errors.Expired, "Expired"),
        ({"message": "teapot"}, 418, errors.ApiError, "InternalError"),
        ({"reason": "StorageReadError"}, 500, errors.InternalError, "InternalError"),
    ],
)
def test_answer_that_says_little_is_told_by_its_code(status, code, kind, reason):
    read = errors.of_status(status, code)
    assert (type(read), read.code, read.reason) == (kind, code, reason)
    assert read.message
