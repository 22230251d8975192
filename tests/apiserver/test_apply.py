"""Server-side apply over HTTP."""

from __future__ import annotations

import json

from tests.cluster.api.conftest import config_map
from tests.tables import cases

MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"


def apply(api, name, manager="flux", **data):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return api.patch(f"{MAPS}/{name}?fieldManager={manager}", body, APPLY)


def test_an_apply_creates_and_changes(api):
    made = apply(api, "a", x="1")
    assert made.status_code == 201
    entry = made.json()["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["fieldsV1"]) == ("flux", "Apply", {"f:data": {"f:x": {}}})
    changed = apply(api, "a", y="1")
    assert changed.status_code == 200
    assert changed.json()["data"] == {"y": "1"}
    again = apply(api, "a", y="1")
    assert again.json() == changed.json()


def test_a_configuration_may_be_yaml(api):
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  x: '1'\n"
    made = api.patch(f"{MAPS}/a?fieldManager=flux", text, APPLY)
    assert made.status_code == 201
    assert made.json()["metadata"]["name"] == "a"


def test_a_conflict_says_with_whom_and_over_what(api):
    api.post(f"{MAPS}?fieldManager=kubectl-create", config_map("a", x="1", y="1"))
    refused = apply(api, "a", x="2", y="2")
    assert refused.status_code == 409
    status = refused.json()
    assert status["reason"] == "Conflict"
    assert status["message"] == (
        'Apply failed with 2 conflicts: conflicts with "kubectl-create" using v1:\n- .data.x\n- .data.y'
    )
    assert [cause["field"] for cause in status["details"]["causes"]] == [".data.x", ".data.y"]
    forced = apply(api, "a", "flux&force=true", x="2", y="2")
    assert forced.json()["data"] == {"x": "2", "y": "2"}


@cases("query, content_type, body, code, words", {
    "no manager": ("", APPLY, {}, 422, "fieldManager: Required value: is required for apply patch"),
    "force": ("?force=true", "application/merge-patch+json", {}, 422, "may not be specified for non-apply patch"),
    "another name": ("?fieldManager=a", APPLY, {"metadata": {"name": "b"}}, 400, "does not match the name on the URL"),
    "a list": ("?fieldManager=a", APPLY, [], 400, "must be an object"),
    "no YAML": ("?fieldManager=a", APPLY, "a: [", 400, "error converting YAML"),
    "another version": ("?fieldManager=a", APPLY, {"apiVersion": "v2"}, 400, "v2"),
    "an unknown field": ("?fieldManager=a&fieldValidation=Strict", APPLY, {"dta": {}}, 400, 'unknown field "dta"'),
})  # fmt: skip
def test_what_is_no_apply_is_refused(api, query, content_type, body, code, words):
    answer = api.patch(f"{MAPS}/a{query}", body if isinstance(body, str) else json.dumps(body), content_type)
    assert answer.status_code == code
    assert words in answer.json()["message"]


def test_without_a_name_the_program_is_the_manager(api):
    made = api.post(MAPS, config_map("a", x="1")).json()
    assert made["metadata"]["managedFields"][0]["manager"] == "tests"
