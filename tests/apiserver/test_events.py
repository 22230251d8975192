"""Events over HTTP in both forms: one stored object, two views of it. What each field is called is in `kube/test_conversion`."""

from __future__ import annotations

import json

import pytest

from tests.tables import cases

CORE = "/api/v1/namespaces/default/events"
VIEW = "/apis/events.k8s.io/v1/namespaces/default/events"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
SERIES = {"count": 2, "lastObservedTime": "2026-01-01T00:05:00.000001Z"}
ABOUT = {"kind": "ConfigMap", "name": "web-0", "namespace": "default", "uid": "u-1"}
SOURCE, TIME = {"component": "kubelet", "host": "n1"}, "2026-01-01T00:00:00Z"
OLD = {
    "metadata": {"name": "web-0.2"}, "involvedObject": ABOUT, "reason": "Seen", "message": "It was seen.", "source": SOURCE,
    "firstTimestamp": TIME, "lastTimestamp": TIME, "count": 4, "type": "Warning",
}  # fmt: skip


def new(name="web-0.1", **fields):
    """An event as client-go's newer recorder sends it: Go writes what is empty too."""
    return {
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": None},
        "eventTime": "2026-01-01T00:00:00.000001Z", "reportingController": "agent", "reportingInstance": "agent-1",
        "action": "Look", "reason": "New", "regarding": ABOUT, "note": "It was looked at.", "type": "Normal",
        "deprecatedSource": {}, "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None, **fields,
    }  # fmt: skip


@pytest.fixture
def told(api):
    """One event of each form."""
    for path, event in ((VIEW, new()), (CORE, OLD)):
        answer = api.post(path, event)
        assert answer.status_code == 201, answer.text
    return api


def names(answer):
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def managers(event):
    return {(e["manager"], e["apiVersion"]): e["fieldsV1"] for e in event["metadata"]["managedFields"]}


def test_each_form_is_the_other_with_other_names(told):
    ours, cores = told.get(f"{VIEW}/web-0.1").json(), told.get(f"{CORE}/web-0.1").json()
    assert (ours["apiVersion"], ours["note"], ours["regarding"]) == ("events.k8s.io/v1", "It was looked at.", ABOUT)
    assert (cores["apiVersion"], cores["message"], cores["involvedObject"]) == ("v1", "It was looked at.", ABOUT)
    assert (cores["reportingComponent"], cores["eventTime"]) == ("agent", ours["eventTime"])
    assert ours["metadata"] == cores["metadata"]
    shown = told.get(f"{VIEW}/web-0.2").json()
    assert (shown["deprecatedSource"], shown["deprecatedCount"], shown["deprecatedLastTimestamp"]) == (SOURCE, 4, TIME)
    for path, obj in ((VIEW, ours), (CORE, cores)):  # each can be read and written back
        obj = told.get(f"{path}/web-0.1").json()
        answer = told.put(f"{path}/web-0.1", {**obj, "series": SERIES})
        assert (answer.status_code, answer.json()["series"]) == (200, SERIES)


def test_what_is_sent_is_read_and_answered_in_the_form_of_its_path(api):
    created = api.post(VIEW, new()).json()
    assert (created["apiVersion"], "message" in created) == ("events.k8s.io/v1", False)
    assert api.post(VIEW, {**OLD, "apiVersion": "v1", "kind": "Event"}).status_code == 400
    assert api.post(VIEW, {**OLD, "apiVersion": "events.k8s.io/v1"}).status_code == 422
    answer = api.post(f"{VIEW}?fieldValidation=Strict", new("b", message="core's"))
    assert 'unknown field "message"' in answer.json()["message"]
    answer = api.post(VIEW, new("b", message="core's"))
    assert 'unknown field \\"message\\"' in answer.headers["warning"]
    assert answer.json()["note"] == "It was looked at."


def test_a_list_has_all_events_in_its_form(told):
    answer = told.get(VIEW)
    assert names(answer) == names(told.get(CORE)) == ["web-0.1", "web-0.2"]
    assert (answer.json()["apiVersion"], answer.json()["kind"]) == ("events.k8s.io/v1", "EventList")
    assert [item["note"] for item in answer.json()["items"]] == ["It was looked at.", "It was seen."]
    assert names(told.get("/apis/events.k8s.io/v1/events?limit=1")) == ["web-0.1"]
    ours, cores = (told.get(f"{path}?includeObject=Object", headers=TABLE).json() for path in (VIEW, CORE))
    assert [row["cells"] for row in ours["rows"]] == [row["cells"] for row in cores["rows"]]
    assert "configmap/web-0" in ours["rows"][0]["cells"]
    assert ours["rows"][0]["object"]["note"] == cores["rows"][0]["object"]["message"]
    assert ours["columnDefinitions"] == cores["columnDefinitions"]


@pytest.mark.parametrize(
    ("path", "selector", "found"),
    [
        (VIEW, "regarding.name=web-0,reason=New", ["web-0.1"]), (VIEW, "regarding.uid=u-1", ["web-0.1", "web-0.2"]),
        (VIEW, "regarding.uid=u-2", []), (VIEW, "reportingController=agent", ["web-0.1"]),
        (VIEW, "type!=Normal", ["web-0.2"]), (VIEW, "metadata.name=web-0.2", ["web-0.2"]),
        (CORE, "source=kubelet", ["web-0.2"]), (CORE, "source=agent", ["web-0.1"]), (CORE, "source=n1", []),
        (VIEW, "involvedObject.name=web-0", None), (CORE, "regarding.name=web-0", None),
    ],
)  # fmt: skip
def test_events_are_selected_by_the_fields_of_their_form_and_by_who_told_them(told, path, selector, found):
    answer = told.get(f"{path}?fieldSelector={selector}")
    if found is None:
        assert (answer.status_code, "field label not supported: " in answer.json()["message"]) == (400, True)
    else:
        assert names(answer) == found


def test_the_recorder_counts_a_series_by_a_strategic_patch(told):
    patched = told.patch(f"{VIEW}/web-0.1", {"series": SERIES}, STRATEGIC)
    assert (patched.status_code, patched.json()["series"]) == (200, SERIES)
    (row,) = told.get(f"{CORE}?fieldSelector=metadata.name=web-0.1", headers=TABLE).json()["rows"]
    assert row["cells"][-2:] == [2, "web-0.1"]
    assert told.patch(f"{VIEW}/gone", {"series": SERIES}, STRATEGIC).status_code == 404


@cases("content_type, change", {
    "strategic": (STRATEGIC, {"note": "x"}),
    "merge": ("application/merge-patch+json", {"note": "x"}),
    "JSON": ("application/json-patch+json", [{"op": "replace", "path": "/note", "value": "x"}]),
})  # fmt: skip
def test_a_patch_is_of_the_form_that_it_is_sent_to(told, content_type, change):
    refused = told.patch(f"{VIEW}/web-0.1", change, content_type)
    assert (refused.status_code, refused.json()["details"]["causes"][0]["field"]) == (422, "message")
    core = json.loads(json.dumps(change).replace("note", "message"))
    assert told.patch(f"{CORE}/web-0.1", core, content_type).json()["message"] == "x"
    assert told.get(f"{VIEW}/web-0.1").json()["note"] == "x"


def test_who_manages_which_field_is_said_in_the_form_that_it_was_written_in(api):
    first = api.patch(f"{VIEW}/a?fieldManager=one", new("a", series=SERIES), APPLY)
    assert first.status_code == 201, first.text
    api.patch(f"{CORE}/a?fieldManager=two", {"message": "Another."})
    found = managers(api.get(f"{CORE}/a").json())
    ours = found["one", "events.k8s.io/v1"]
    assert ("f:note" in ours, "f:regarding" in ours, found["two", "v1"]) == (False, True, {"f:message": {}})
    conflict = api.patch(f"{VIEW}/a?fieldManager=one", new("a"), APPLY).json()
    (cause,) = conflict["details"]["causes"]
    assert (conflict["code"], cause["message"], cause["field"]) == (409, 'conflict with "two" using v1', ".note")
    core = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "involvedObject": ABOUT, "reason": "Other"}
    answer = api.patch(f"{CORE}/a?fieldManager=one", core, APPLY)
    assert (answer.status_code, answer.json()["involvedObject"]) == (200, ABOUT)
    assert not {"series", "eventTime"} & set(answer.json()), "it replaces what was applied in the other form"
    assert {who for who, _ in managers(answer.json())} == {"one", "two"}


def test_deleting_one_view_deletes_the_event(told):
    assert told.delete(f"{VIEW}/web-0.1").json()["status"] == "Success"
    assert told.get(f"{CORE}/web-0.1").status_code == 404
    (gone,) = told.delete(f"{VIEW}?fieldSelector=regarding.name=web-0").json()["items"]
    assert gone["note"] == "It was seen."
    assert names(told.get(CORE)) == []


def test_rights_are_those_of_core_events_and_a_review_knows_both_groups(told, person):
    reader = told.as_(person("vera", default="viewer"))
    assert names(reader.get(VIEW)) == ["web-0.1", "web-0.2"]
    assert reader.get("/apis/events.k8s.io/v1/namespaces/other/events").status_code == 403
    refused = (
        reader.post(VIEW, new("mine")),
        reader.patch(f"{VIEW}/web-0.1", {}, STRATEGIC),
        reader.delete(f"{VIEW}/web-0.1"),
    )
    assert [answer.status_code for answer in refused] == [403, 403, 403]
    for group in ("", "events.k8s.io", "*"):
        for verb, allowed in (("watch", True), ("create", False)):
            asked = {"group": group, "resource": "events", "verb": verb, "namespace": "default"}
            review = {"spec": {"resourceAttributes": asked}}
            answer = reader.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).json()
            assert answer["status"]["allowed"] is allowed, answer


def test_discovery_and_schemas_have_the_view_with_the_hash_of_what_is_stored(api):
    ours, cores = (
        next(each for each in api.get(path).json()["resources"] if each["name"] == "events")
        for path in ("/apis/events.k8s.io/v1", "/api/v1")
    )
    assert ours == cores
    assert ours["storageVersionHash"] == "r2yiGXH7wu8="
    assert api.get("/apis/events.k8s.io").json()["preferredVersion"]["groupVersion"] == "events.k8s.io/v1"
    schemas = api.get("/openapi/v3/apis/events.k8s.io/v1").json()["components"]["schemas"]
    fields = schemas["io.k8s.api.events.v1.Event"]["properties"]
    assert {"regarding", "note", "deprecatedCount", "reportingController"} <= set(fields)
    assert "message" not in fields
