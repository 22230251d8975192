"""What a person is told when a cluster cannot ask its own webhooks."""

from __future__ import annotations

import pytest

from cluster.remote import calls
from kube.errors import InternalError

FAILED = 'Internal error occurred: failed calling webhook "validatejob.volcano.sh": '


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        pytest.param(
            'failed to call webhook: Post "https://webhooks.pages.svc:443/jobs/validate?timeout=10s": dial tcp 10.0.0.7:443: connect: connection refused',
            "dial tcp 10.0.0.7:443: connect: connection refused",
            id="refused",
        ),
        pytest.param(
            'failed to call webhook: Post "https://192.0.2.7:9443/jobs/validate?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority',
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            id="certificate",
        ),
        pytest.param("failed to call webhook: the server could not find the requested resource", "the server could not find the requested resource", id="answer"),
    ],
)  # fmt: skip
def test_webhook_that_does_not_answer_is_named_with_its_cause_and_a_remedy(said, cause):
    error = calls.unasked("dev", InternalError(FAILED + said))
    assert error.code == 503
    assert error.message.startswith(
        f"The cluster dev asks the admission webhook validatejob.volcano.sh about such changes, which does not answer ({cause})"
    )
    assert "nothing was changed. Try again in a moment" in error.message


def test_other_failures_of_a_server_are_told_as_they_are():
    error = InternalError("etcd is full")
    assert calls.unasked("dev", error) is error
