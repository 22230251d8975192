"""What becomes of an object over HTTP, in which forms; what is refused is in `test_statuses`, but for what has no golden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import config_map
from tests.tables import cases

CORE = "/api/v1/namespaces/default"
MAPS = f"{CORE}/configmaps"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
GOLDEN = Path(__file__).parents[1] / "kube/protobuf/golden"  # bodies as client-go's typed clients write them


def made(api, name, labels=None, **data):
    obj = config_map(name, **data)
    obj["metadata"]["labels"] = labels or {}
    return api.post(MAPS, obj).json()


def names(api, query=""):
    return [obj["metadata"]["name"] for obj in api.get(f"{MAPS}?{query}").json()["items"]]


def test_a_created_object_can_be_read_listed_replaced_and_deleted(api):
    created = api.post(MAPS, config_map("a", key="1"))
    assert (created.status_code, created.headers["content-type"]) == (201, "application/json")
    obj = created.json()
    assert obj["metadata"]["uid"]
    assert api.get(f"{MAPS}/a").json() == obj
    listed = api.get(MAPS).json()
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("ConfigMapList", "v1", [obj])
    replaced = api.put(f"{MAPS}/a", {**obj, "data": {"key": "2"}})
    assert (replaced.status_code, replaced.json()["data"]) == (200, {"key": "2"})
    gone = api.delete(f"{MAPS}/a")
    assert (gone.status_code, gone.json()["status"]) == (200, "Success")
    assert gone.json()["details"] == {"name": "a", "kind": "configmaps", "uid": obj["metadata"]["uid"]}
    assert api.get(f"{MAPS}/a").status_code == 404
    name = api.post(MAPS, {"metadata": {"generateName": "made-"}}).json()["metadata"]["name"]
    assert (name[:5], len(name)) == ("made-", 10)
    dry = api.post(f"{MAPS}?dryRun=All", config_map("a"))
    assert (dry.status_code, bool(dry.json()["metadata"]["uid"])) == (201, True)
    assert api.get(f"{MAPS}/a").status_code == 404


@cases("content_type, patch, data", {
    "merge": ("application/merge-patch+json", {"data": {"a": None, "b": "2"}}, {"b": "2"}),
    "strategic": ("application/strategic-merge-patch+json", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    "JSON": ("application/json-patch+json", [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9"}),
})  # fmt: skip
def test_patches(api, content_type, patch, data):
    made(api, "a", a="1")
    assert api.patch(f"{MAPS}/a", patch, content_type).json()["data"] == data


def test_a_test_of_a_json_patch_that_fails_says_what_is_there(api):
    made(api, "a", x="1")
    change = [{"op": "test", "path": "/data/x", "value": "2"}]
    answer = api.patch(f"{MAPS}/a", change, "application/json-patch+json")
    assert answer.status_code == 422
    assert """the value at '/data/x' is "1", and the test expects "2".""" in answer.json()["message"]


@cases("method, path, code, reason", {
    "a cluster-scoped kind in a namespace": ("GET", f"{CORE}/nodes", 404, "NotFound"),
    "dots": ("GET", "/api/v1/namespaces/..%2f..%2fetc/pods", 404, "NotFound"),
    "post to all namespaces": ("POST", "/api/v1/configmaps", 405, "MethodNotAllowed"),
    "match without revision": ("GET", f"{MAPS}?resourceVersionMatch=Exact", 422, "Invalid"),
})  # fmt: skip
def test_refusals_are_statuses(api, method, path, code, reason):
    status = api.request(method, path, {} if method == "POST" else None).json()
    assert (status["kind"], status["status"], status["code"], status["reason"]) == ("Status", "Failure", code, reason)


@pytest.mark.parametrize(("mode", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201), ("", 201)])
def test_unknown_and_duplicate_fields(api, mode, code):
    body = '{"metadata": {"name": "a", "name": "a"}, "datta": {}}'
    answer = api.post(f"{MAPS}?fieldValidation={mode}", body)
    assert answer.status_code == code
    warnings = answer.headers.get_list("warning", split_commas=False)
    if mode == "Strict":
        assert 'unknown field "datta"' in answer.json()["message"]
        assert 'duplicate field "metadata.name"' in answer.json()["message"]
    else:
        told = ['299 - "duplicate field \\"metadata.name\\""', '299 - "unknown field \\"datta\\""']
        assert warnings == ([] if mode == "Ignore" else told)


def test_pages_of_a_list_show_one_state(api):
    for index in range(7):
        made(api, f"m{index}", key="old")
    pages = [api.get(f"{MAPS}?limit=3").json()]
    assert pages[0]["metadata"]["remainingItemCount"] == 4
    api.delete(f"{MAPS}/m4")
    api.patch(f"{MAPS}/m5", {"data": {"key": "new"}})
    while token := pages[-1]["metadata"].get("continue"):
        pages.append(api.get(f"{MAPS}?limit=3&continue={token}").json())
    found = [[obj["metadata"]["name"] for obj in page["items"]] for page in pages]
    assert found == [["m0", "m1", "m2"], ["m3", "m4", "m5"], ["m6"]]
    assert {obj["data"]["key"] for page in pages for obj in page["items"]} == {"old"}
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1


def test_a_list_can_be_of_an_older_revision(api):
    before = made(api, "a", key="1")["metadata"]["resourceVersion"]
    made(api, "b")
    assert names(api, f"resourceVersion={before}&resourceVersionMatch=Exact") == ["a"]
    assert names(api, f"resourceVersion={before}&resourceVersionMatch=NotOlderThan") == ["a", "b"]


def test_selectors_choose_what_is_listed_and_what_is_deleted(api):
    for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
        made(api, name, {"tier": tier})
    assert names(api, "labelSelector=tier%3Dfront") == ["a", "c"]
    assert names(api, "labelSelector=tier%21%3Dfront") == ["b"]
    assert names(api, "fieldSelector=metadata.name%3Db") == ["b"]
    assert names(api, "fieldSelector=metadata.name%21%3Db&limit=1") == ["a"]
    gone = api.delete(f"{MAPS}?labelSelector=tier%3Dfront").json()
    assert [obj["metadata"]["name"] for obj in gone["items"]] == ["a", "c"]
    assert names(api) == ["b"]


def test_yaml_in_and_out(api):
    body = "metadata:\n  name: a\n  annotations: {when: 2026-01-01T00:00:00Z}\ndata:\n  key: 'yes'\n"
    answer = api.post(MAPS, body, content_type="application/yaml", headers={"accept": "application/yaml"})
    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/yaml")
    assert "when: '2026-01-01T00:00:00Z'" in answer.text


def test_metadata_alone_and_tables_have_the_metadata_of_objects(api):
    made(api, "a", key="1")
    metadata = {"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    one = api.get(f"{MAPS}/a", headers=metadata).json()
    assert (one["kind"], "data" in one) == ("PartialObjectMetadata", False)
    assert api.get(MAPS, headers=metadata).json()["kind"] == "PartialObjectMetadataList"
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    found = api.get(MAPS, headers=table).json()
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = found["rows"]
    assert (row["cells"][:2], row["object"]["kind"]) == (["a", 1], "PartialObjectMetadata")
    (row,) = api.get(f"{MAPS}/a?includeObject=Object", headers=table).json()["rows"]
    assert row["object"]["data"] == {"key": "1"}
    assert api.get(f"{MAPS}?includeObject=None", headers=table).json()["rows"][0]["object"] is None


def apply(api, name, manager="flux", **data):
    return api.patch(f"{MAPS}/{name}?fieldManager={manager}", config_map(name, **data), APPLY)


def test_an_apply_creates_and_changes_and_a_conflict_says_with_whom_and_over_what(api):
    created = apply(api, "a", x="1")
    entry = created.json()["metadata"]["managedFields"][0]
    assert (created.status_code, entry["manager"], entry["operation"]) == (201, "flux", "Apply")
    assert entry["fieldsV1"] == {"f:data": {"f:x": {}}}
    changed = apply(api, "a", y="1")
    assert (changed.status_code, changed.json()["data"]) == (200, {"y": "1"})
    assert apply(api, "a", y="1").json() == changed.json()
    assert made(api, "b", x="1", y="1")["metadata"]["managedFields"][0]["manager"] == "tests", "the program's name"
    status = apply(api, "b", x="2", y="2").json()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert status["message"].endswith('conflicts with "tests" using v1:\n- .data.x\n- .data.y')
    assert [cause["field"] for cause in status["details"]["causes"]] == [".data.x", ".data.y"]
    assert apply(api, "b", "flux&force=true", x="2", y="2").json()["data"] == {"x": "2", "y": "2"}
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  x: '1'\n"
    created = api.patch(f"{MAPS}/c?fieldManager=flux", text, APPLY)
    assert (created.status_code, created.json()["metadata"]["name"]) == (201, "c")


@cases("query, body, words", {
    "another name": ("", {"metadata": {"name": "b"}}, "does not match the name on the URL"),
    "a list": ("", [], "must be an object"),
    "no YAML": ("", "a: [", "error converting YAML"),
    "another version": ("", {"apiVersion": "v2"}, "v2"),
    "an unknown field": ("&fieldValidation=Strict", {"dta": {}}, 'unknown field "dta"'),
})  # fmt: skip
def test_what_is_no_apply_is_refused(api, query, body, words):
    body = body if isinstance(body, str) else json.dumps(body)
    answer = api.patch(f"{MAPS}/a?fieldManager=a{query}", body, APPLY)
    assert (answer.status_code, words in answer.json()["message"]) == (400, True)


def send(api, method, path, body):
    return api.request(method, path, body, PROTOBUF, headers={"accept": f"{PROTOBUF},application/json"})


@cases("method, path, kind, code", {
    "another kind than the path's": ("POST", MAPS, "limitrange", 400),
    "limits": ("POST", f"{CORE}/limitranges", "limitrange", 201),
    "events": ("POST", f"{CORE}/events", "event", 201),
    "events of their own group": ("POST", "/apis/events.k8s.io/v1/namespaces/default/events", "events-event", 201),
    "quotas": ("POST", f"{CORE}/resourcequotas", "resourcequota", 201),
    "namespaces": ("POST", "/api/v1/namespaces", "namespace", 201),
    "leases": ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "lease", 201),
    "budgets": ("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "poddisruptionbudget", 201),
    "classes": ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", "priorityclass", 201),
    "policies": ("POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "networkpolicy", 201),
    "jobs": ("POST", "/apis/batch/v1/namespaces/default/jobs", "job", 201),
    "services, by the rules of their kind": ("POST", f"{CORE}/services", "service", 422),
    "options, of another uid": ("DELETE", f"{MAPS}/a", "deleteoptions", 409),
})  # fmt: skip
def test_bodies_may_be_protobuf(api, method, path, kind, code):
    made(api, "a")
    answer = send(api, method, path, (GOLDEN / f"{kind}.pb").read_bytes())
    assert (answer.status_code, answer.headers["content-type"]) == (code, "application/json"), answer.text


def test_protobuf_that_cannot_be_read_is_refused_and_its_defaults_are_those_of_json(api):
    lease = (GOLDEN / "lease.pb").read_bytes()
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert send(api, "POST", leases, lease[:40]).status_code == 400
    unknown = send(api, "POST", leases, lease.replace(b"coordination.k8s.io/v1", b"coordination.k8s.io/v7"))
    assert (unknown.status_code, unknown.json()["reason"]) == (415, "UnsupportedMediaType")
    limits = (GOLDEN / "limitrange.pb").read_bytes()
    assert send(api, "POST", f"{CORE}/limitranges", limits).json()["spec"]["limits"][0]["max"] == {"memory": "2Gi"}
    assert send(api, "PUT", f"{CORE}/limitranges/l", limits).status_code == 200
