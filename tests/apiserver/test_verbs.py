from __future__ import annotations

import pytest

from proof.harness.waiting import HANG_S
from tests.cluster.api.conftest import config_map
from tests.tables import cases

MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def made(api, name, **data):
    return api.post(MAPS, config_map(name, **data)).json()


def test_a_created_object_can_be_read_listed_replaced_and_deleted(api):
    created = api.post(MAPS, config_map("a", key="1"))
    assert created.status_code == 201
    assert created.headers["content-type"] == "application/json"
    obj = created.json()
    assert obj["metadata"]["uid"]
    assert obj["metadata"]["resourceVersion"]

    assert api.get(f"{MAPS}/a").json() == obj
    listed = api.get(MAPS).json()
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("ConfigMapList", "v1", [obj])

    obj["data"] = {"key": "2"}
    replaced = api.put(f"{MAPS}/a", obj)
    assert replaced.status_code == 200
    assert replaced.json()["data"] == {"key": "2"}

    gone = api.delete(f"{MAPS}/a")
    assert gone.status_code == 200
    assert gone.json()["status"] == "Success"
    assert gone.json()["details"] == {"name": "a", "kind": "configmaps", "uid": obj["metadata"]["uid"]}
    assert api.get(f"{MAPS}/a").status_code == 404


def test_generate_name_gives_a_name(api):
    obj = api.post(MAPS, {"metadata": {"generateName": "made-"}}).json()
    assert obj["metadata"]["name"].startswith("made-")
    assert len(obj["metadata"]["name"]) == 10


@cases("content_type, patch, data", {
    "merge": ("application/merge-patch+json", {"data": {"a": None, "b": "2"}}, {"b": "2"}),
    "strategic": ("application/strategic-merge-patch+json", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    "json": ("application/json-patch+json", [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9"}),
})  # fmt: skip
def test_patches(api, content_type, patch, data):
    made(api, "a", a="1")
    assert api.patch(f"{MAPS}/a", patch, content_type).json()["data"] == data


def test_a_test_of_a_json_patch_that_fails_says_what_is_there(api):
    api.post(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    change = [{"op": "test", "path": "/data/x", "value": "2"}]
    answer = api.patch(f"{MAPS}/a", change, "application/json-patch+json")
    assert answer.status_code == 422
    assert """the value at '/data/x' is "1", and the test expects "2".""" in answer.json()["message"]


@cases("case", {
    "no such path": ("GET", "/apis/nothing.example/v1/things", None, 404, "NotFound"),
    "no such object": ("GET", f"{MAPS}/nope", None, 404, "NotFound"),
    "no such subresource": ("GET", f"{MAPS}/nope/log", None, 404, "NotFound"),
    "a cluster-scoped kind in a namespace": ("GET", "/api/v1/namespaces/default/nodes", None, 404, "NotFound"),
    "post to all namespaces": ("POST", "/api/v1/configmaps", {}, 405, "MethodNotAllowed"),
    "no name": ("POST", MAPS, {"data": {}}, 422, "Invalid"),
    "another kind": ("POST", MAPS, {"kind": "Pod", "apiVersion": "v1"}, 400, "BadRequest"),
    "another namespace": ("POST", MAPS, {"metadata": {"name": "a", "namespace": "other"}}, 400, "BadRequest"),
    "not json": ("POST", MAPS, "{", 400, "BadRequest"),
    "a list": ("POST", MAPS, "[]", 400, "BadRequest"),
    "huge": ("POST", MAPS, '{"data":{"a":"' + "x" * 4_000_000 + '"}}', 413, "RequestEntityTooLarge"),
    "deep": ("POST", MAPS, "[" * 100_000, 400, "BadRequest"),
    "bad selector": ("GET", f"{MAPS}?labelSelector=a in (", None, 400, "BadRequest"),
    "bad field": ("GET", f"{MAPS}?fieldSelector=data.x=1", None, 400, "BadRequest"),
    "bad token": ("GET", f"{MAPS}?continue=abc", None, 400, "BadRequest"),
    "bad revision": ("GET", f"{MAPS}?resourceVersion=abc", None, 400, "BadRequest"),
    "future revision": ("GET", f"{MAPS}?resourceVersion=99999999", None, 504, "Timeout"),
    "match without revision": ("GET", f"{MAPS}?resourceVersionMatch=Exact", None, 422, "Invalid"),
    "dry run of something": ("POST", f"{MAPS}?dryRun=Some", {"metadata": {"name": "a"}}, 422, "Invalid"),
    "a namespace that is not there": ("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}}, 404, "NotFound"),
    "dots": ("GET", "/api/v1/namespaces/..%2f..%2fetc/pods", None, 404, "NotFound"),
})  # fmt: skip
def test_refusals_are_statuses(api, case):
    method, path, body, code, reason = case
    answer = api.request(method, path, body)
    status = answer.json()
    assert (answer.status_code, status["code"], status["reason"]) == (code, code, reason)
    assert (status["kind"], status["status"]) == ("Status", "Failure")
    assert status["message"]


def test_nobody_in_particular_is_unauthorized(server):
    import httpx

    answer = httpx.get(f"{server}{MAPS}", timeout=HANG_S)
    assert answer.status_code == 401
    assert answer.json()["reason"] == "Unauthorized"


def test_stale_replacements_conflict(api):
    old = made(api, "a", key="1")
    api.patch(f"{MAPS}/a", {"data": {"key": "2"}})
    answer = api.put(f"{MAPS}/a", old)
    assert answer.status_code == 409
    assert answer.json()["reason"] == "Conflict"


def test_a_dry_run_stores_nothing(api):
    answer = api.post(f"{MAPS}?dryRun=All", config_map("a"))
    assert answer.status_code == 201
    assert answer.json()["metadata"]["uid"]
    assert api.get(f"{MAPS}/a").status_code == 404


@pytest.mark.parametrize(("mode", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201), ("", 201)])
def test_unknown_and_duplicate_fields(api, mode, code):
    body = '{"metadata": {"name": "a", "name": "a"}, "datta": {}}'
    answer = api.post(f"{MAPS}?fieldValidation={mode}", body)
    assert answer.status_code == code
    warnings = answer.headers.get_list("warning", split_commas=False)
    if mode == "Strict":
        assert 'unknown field "datta"' in answer.json()["message"]
        assert 'duplicate field "metadata.name"' in answer.json()["message"]
    elif mode == "Ignore":
        assert not warnings
    else:
        assert warnings == ['299 - "duplicate field \\"metadata.name\\""', '299 - "unknown field \\"datta\\""']


def test_pages_of_a_list_show_one_state(api):
    for index in range(7):
        made(api, f"m{index}", key="old")
    first = api.get(f"{MAPS}?limit=3").json()
    assert [o["metadata"]["name"] for o in first["items"]] == ["m0", "m1", "m2"]
    assert first["metadata"]["remainingItemCount"] == 4
    revision = first["metadata"]["resourceVersion"]

    api.delete(f"{MAPS}/m4")
    made(api, "m35", key="new")
    api.patch(f"{MAPS}/m5", {"data": {"key": "new"}})

    second = api.get(f"{MAPS}?limit=3&continue={first['metadata']['continue']}").json()
    assert [o["metadata"]["name"] for o in second["items"]] == ["m3", "m4", "m5"]
    assert [o["data"]["key"] for o in second["items"]] == ["old"] * 3
    assert second["metadata"]["resourceVersion"] == revision
    third = api.get(f"{MAPS}?limit=3&continue={second['metadata']['continue']}").json()
    assert [o["metadata"]["name"] for o in third["items"]] == ["m6"]
    assert "continue" not in third["metadata"]


def test_a_list_can_be_of_an_older_revision(api):
    before = made(api, "a", key="1")["metadata"]["resourceVersion"]
    made(api, "b")
    listed = api.get(f"{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact").json()
    assert [o["metadata"]["name"] for o in listed["items"]] == ["a"]
    newer = api.get(f"{MAPS}?resourceVersion={before}&resourceVersionMatch=NotOlderThan").json()
    assert len(newer["items"]) == 2


def test_selectors_choose(api):
    for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
        obj = config_map(name)
        obj["metadata"]["labels"] = {"tier": tier}
        api.post(MAPS, obj)

    def names(query):
        return [o["metadata"]["name"] for o in api.get(f"{MAPS}?{query}").json()["items"]]

    assert names("labelSelector=tier%3Dfront") == ["a", "c"]
    assert names("labelSelector=tier%21%3Dfront") == ["b"]
    assert names("fieldSelector=metadata.name%3Db") == ["b"]
    assert names("fieldSelector=metadata.name%21%3Db&limit=1") == ["a"]


def test_a_collection_is_deleted_by_selector(api):
    for name, tier in (("a", "front"), ("b", "back")):
        obj = config_map(name)
        obj["metadata"]["labels"] = {"tier": tier}
        api.post(MAPS, obj)
    answer = api.delete(f"{MAPS}?labelSelector=tier%3Dfront")
    assert [o["metadata"]["name"] for o in answer.json()["items"]] == ["a"]
    assert [o["metadata"]["name"] for o in api.get(MAPS).json()["items"]] == ["b"]


def test_yaml_in_and_out(api):
    body = "metadata:\n  name: a\n  annotations: {when: 2026-01-01T00:00:00Z}\ndata:\n  key: 'yes'\n"
    answer = api.post(MAPS, body, content_type="application/yaml", headers={"accept": "application/yaml"})
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/yaml"
    assert "when: '2026-01-01T00:00:00Z'" in answer.text


def test_metadata_alone(api):
    made(api, "a", key="1")
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    one = api.get(f"{MAPS}/a", headers={"accept": accept}).json()
    assert (one["kind"], "data" in one) == ("PartialObjectMetadata", False)
    many = api.get(MAPS, headers={"accept": accept}).json()
    assert many["kind"] == "PartialObjectMetadataList"


def test_an_impossible_accept_is_refused(api):
    assert api.get(MAPS, headers={"accept": "text/html"}).status_code == 406
    assert api.patch(f"{MAPS}/a", {}, "text/plain").status_code == 415


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def test_tables_have_columns_rows_and_the_objects_metadata(api):
    made(api, "a", key="1")
    table = api.get(MAPS, headers={"accept": TABLE}).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 1]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    whole = api.get(f"{MAPS}/a?includeObject=Object", headers={"accept": TABLE}).json()
    assert whole["rows"][0]["object"]["data"] == {"key": "1"}
    assert api.get(f"{MAPS}?includeObject=None", headers={"accept": TABLE}).json()["rows"][0]["object"] is None
