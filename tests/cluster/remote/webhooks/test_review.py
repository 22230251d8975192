"""The questions of API servers, and the answers that they understand."""

from __future__ import annotations

import pytest

from cluster.remote.webhooks import hooks
from cluster.remote.webhooks.review import Question, Ruling, review
from kube.errors import BadRequest, Cause, Invalid
from tests.cluster.remote.webhooks.questions import patch_of, question

JOB = {"metadata": {"name": "a"}}
VALIDATE = hooks.BY_PATH["/jobs/validate"]


def asked(change):
    """Return a question of which something is changed."""
    body = question("/jobs/validate", JOB)
    change(body)
    return body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(None, "is asked with a AdmissionReview", id="nothing"),
        pytest.param([], "is asked with a AdmissionReview", id="a list"),
        pytest.param({**question("/jobs/validate", JOB), "apiVersion": "admission.k8s.io/v1beta1"}, "admission.k8s.io/v1", id="an older version"),
        pytest.param(asked(lambda body: body.pop("request")), "request.uid is missing", id="no request"),
        pytest.param(question("/queues/validate", JOB), 'not "queues.scheduling.volcano.sh"', id="another kind"),
        pytest.param(question("/jobs/validate", operation="CONNECT"), 'not "CONNECT"', id="another operation"),
        pytest.param(question("/jobs/validate", operation="CREATE"), "request.object is missing", id="no object"),
        pytest.param(question("/jobs/validate", JOB, operation="UPDATE"), "request.oldObject is missing", id="no old object"),
    ],
)  # fmt: skip
def test_what_is_no_question_is_told_so(body, message):
    with pytest.raises(BadRequest, match=message):
        review(VALIDATE, body, lambda *_: Ruling())


def test_question_is_read_as_it_was_meant():
    heard = []
    old = {"metadata": {"name": "a", "uid": "1"}}
    review(VALIDATE, question("/jobs/validate", JOB, old), lambda *about: heard.append(about) or Ruling())
    assert heard == [(VALIDATE, Question("705ab4f5", "UPDATE", JOB, old))]


def test_refusal_has_code_reason_and_each_cause_at_its_field():
    causes = [Cause("FieldValueRequired", "Required value", "spec.tasks"), Cause("FieldValueInvalid", "no", "spec")]
    refusal = Ruling(Invalid.of("Job.batch.volcano.sh", "a", causes), patch=[{"op": "remove", "path": "/spec"}])
    answer = review(VALIDATE, question("/jobs/validate", JOB), lambda *_: refusal)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answer["response"]
    assert (response["uid"], response["allowed"]) == ("705ab4f5", False)
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert [each["field"] for each in status["details"]["causes"]] == ["spec.tasks", "spec"]
    assert "patch" not in response


def test_warnings_and_patch_go_with_a_yes():
    ops = [{"op": "add", "path": "/spec", "value": {}}]
    answer = review(VALIDATE, question("/jobs/validate", JOB), lambda *_: Ruling(None, ["odd"], ops))
    assert answer["response"]["warnings"] == ["odd"]
    assert patch_of(answer) == ops
    plain = review(VALIDATE, question("/jobs/validate", JOB), lambda *_: Ruling())["response"]
    assert plain == {"uid": "705ab4f5", "allowed": True}
