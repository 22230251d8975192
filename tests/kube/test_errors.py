from __future__ import annotations

import msgspec

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
    always = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    assert always.items() <= status.items()


@cases("cause, text", {
    "required": (errors.required("a"), "a: Required value"),
    "required, with a reason": (errors.required("a", "give one"), "a: Required value: give one"),
    "invalid": (errors.invalid("a", -1, "must be more"), "a: Invalid value: -1: must be more"),
    "an object": (errors.invalid("a", {"b": None}, "no"), 'a: Invalid value: {"b": null}: no'),
    "a text": (errors.invalid("a", "Zoë", "no"), 'a: Invalid value: "Zoë": no'),
    "of no field": (errors.invalid("", 1, "no"), "Invalid value: 1: no"),
    "not supported": (errors.not_supported("a", "x", ["y", "z"]), 'a: Unsupported value: "x": supported values: "y", "z"'),
    "duplicate": (errors.duplicate("a", "x"), 'a: Duplicate value: "x"'),
    "not found": (errors.not_found("a", "x"), 'a: Not found: "x"'),
    "too long": (errors.too_long("a", 63), "a: Too long: may not be more than 63 bytes"),
    "too many": (errors.too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
})  # fmt: skip
def test_causes_print_as_those_of_kubernetes(cause, text):
    assert str(cause) == text


def test_any_value_can_be_shown_in_a_short_message():
    for value in ("x" * 10**6, "\ud800", b"x", {1: {2}}, float("nan")):
        text = errors.shown(value)
        assert len(text) <= errors.LONGEST_SHOWN + 1
        msgspec.json.encode(text)


def test_a_status_is_read_back_as_the_error_that_it_says():
    for error in (
        errors.Invalid.of("Job.batch.volcano.sh", "x", TWO), errors.NotFound.of("pods", "x"), errors.InternalError("boom"),
        errors.AlreadyExists.generated("jobs.batch.volcano.sh", "x"), errors.Timeout.too_large_resource_version(9, 7),
    ):  # fmt: skip
        read = errors.of_status(error.status(), error.code)
        assert (type(read), read.status()) == (type(error), error.status())


def test_an_answer_that_says_little_is_told_by_its_code():
    for status, code, kind, reason in (
        ({}, 403, errors.Forbidden, "Forbidden"), ({"reason": "Gone"}, 410, errors.Expired, "Expired"),
        ({"message": "teapot"}, 418, errors.ApiError, "InternalError"),
        ({"reason": "StorageReadError"}, 500, errors.InternalError, "InternalError"),
    ):  # fmt: skip
        read = errors.of_status(status, code)
        assert (type(read), read.code, read.reason, bool(read.message)) == (kind, code, reason, True)
