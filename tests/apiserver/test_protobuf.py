"""Bodies as client-go's typed clients write them."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "kube/protobuf/golden"
PROTOBUF = "application/vnd.kubernetes.protobuf"
CORE = "/api/v1/namespaces/default"


def send(api, method, path, body):
    return api.request(method, path, body, PROTOBUF, headers={"accept": f"{PROTOBUF},application/json"})


def golden(kind):
    return (GOLDEN / f"{kind}.pb").read_bytes()


def test_an_object_can_be_created_replaced_and_deleted(api):
    created = send(api, "POST", f"{CORE}/configmaps", golden("limitrange"))
    assert created.status_code == 400  # another kind than the path's

    created = send(api, "POST", f"{CORE}/limitranges", golden("limitrange"))
    assert created.status_code == 201
    assert created.headers["content-type"] == "application/json"
    limits = created.json()["spec"]["limits"]
    assert limits[0]["max"] == {"memory": "2Gi"}

    assert send(api, "PUT", f"{CORE}/limitranges/l", golden("limitrange")).status_code == 200
    assert send(api, "DELETE", f"{CORE}/limitranges/l", golden("deleteoptions")).status_code == 409  # another uid


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"{CORE}/events", "event"),
        ("/apis/events.k8s.io/v1/namespaces/default/events", "events-event"),
        (f"{CORE}/resourcequotas", "resourcequota"),
        ("/api/v1/namespaces", "namespace"),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "lease"),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "poddisruptionbudget"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", "priorityclass"),
        ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "networkpolicy"),
        ("/apis/batch/v1/namespaces/default/jobs", "job"),
    ],
)
def test_kinds_that_controllers_write(api, path, kind):
    answer = send(api, "POST", path, golden(kind))
    assert answer.status_code == 201, answer.text


def test_what_is_read_is_judged_by_the_rules_of_its_kind(api):
    answer = send(api, "POST", f"{CORE}/services", golden("service"))
    fields = [cause["field"] for cause in answer.json()["details"]["causes"]]
    assert (answer.status_code, fields) == (422, ["spec.ports[1].name", "spec.ports[1].nodePort"])


def test_a_broken_body_is_a_bad_request(api):
    answer = send(api, "POST", f"{CORE}/configmaps", golden("limitrange")[:-4])
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


def test_a_kind_that_has_no_protobuf_is_refused(api):
    body = golden("lease").replace(b"coordination.k8s.io/v1", b"coordination.k8s.io/v7")
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    answer = send(api, "POST", path, body)
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")
