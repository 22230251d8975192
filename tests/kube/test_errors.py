from __future__ import annotations

import msgspec
import pytest

from kube import errors
from tests.tables import cases

TWO = [errors.required("spec.a"), errors.forbidden("spec.b", "no")]
INVALID = [
    {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
    {"reason": "FieldValueForbidden", "message": "Forbidden: no", "field": "spec.b"},
]


# What a kube-apiserver does not say in `tests/golden/kubernetes/statuses.json`; the rest is compared there.
@cases("error, message, details", {
    "a method without a resource": (errors.MethodNotAllowed(), "the server does not allow this method on the requested resource", {}),
    "a verb that the resource has not": (errors.MethodNotAllowed.of("jobs.batch", "update"),
        'update is not supported on resources of kind "jobs.batch"', {"group": "batch", "kind": "jobs"}),
    "timeout": (errors.Timeout.of("request did not complete", retry_after_s=2), "Timeout: request did not complete", {"retryAfterSeconds": 2}),
    "too many requests": (errors.TooManyRequests("Later.", retry_after_s=3), "Later.", {"retryAfterSeconds": 3}),
    "expired": (errors.Expired("It is old."), "It is old.", None),
    "unavailable": (errors.ServiceUnavailable("Not now."), "Not now.", None),
    "a defect": (errors.InternalError.of("a defect"), "Internal error occurred: a defect", {"causes": [{"message": "a defect"}]}),
    "two causes": (errors.Invalid.of("Job.batch.volcano.sh", "x", TWO),
        'Job.batch.volcano.sh "x" is invalid: [spec.a: Required value, spec.b: Forbidden: no]',
        {"name": "x", "group": "batch.volcano.sh", "kind": "Job", "causes": INVALID}),
    "forbidden": (errors.Forbidden.of("pods", "", "quota"), "pods is forbidden: quota", {"kind": "pods"}),
    "conflict": (errors.Conflict.of("pods", "x", "late"), 'Operation cannot be fulfilled on pods "x": late', {"name": "x", "kind": "pods"}),
})  # fmt: skip
def test_texts_are_those_of_kubernetes(error, message, details):
    status = error.status()
    assert (status["message"], status.get("details")) == (message, details)
    assert (str(error), status["code"]) == (message, error.code)
    assert (status["kind"], status["apiVersion"], status["metadata"], status["status"]) == (
        "Status",
        "v1",
        {},
        "Failure",
    )


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
        errors.NotFound.of("pods", "x"), errors.AlreadyExists.generated("jobs.batch.volcano.sh", "x"),
        errors.Timeout.too_large_resource_version(9, 7), errors.InternalError("boom"),
    ],
)  # fmt: skip
def test_status_is_read_back_as_the_error_that_it_says(error):
    read = errors.of_status(error.status(), error.code)
    assert type(read) is type(error)
    assert read.status() == error.status()


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        ({}, 403, errors.Forbidden, "Forbidden"), ({"reason": "Gone"}, 410, errors.Expired, "Expired"),
        ({"message": "teapot"}, 418, errors.ApiError, "InternalError"),
        ({"reason": "StorageReadError"}, 500, errors.InternalError, "InternalError"),
    ],
)  # fmt: skip
def test_answer_that_says_little_is_told_by_its_code(status, code, kind, reason):
    read = errors.of_status(status, code)
    assert (type(read), read.code, read.reason) == (kind, code, reason)
    assert read.message
