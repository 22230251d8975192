"""Events over HTTP in both forms: one stored object, two views of it."""

from __future__ import annotations

import json

import pytest

from cluster.access import Actor
from cluster.models import RoleBinding
from tests.cluster.api.conftest import make_user

CORE = "/api/v1/namespaces/default/events"
VIEW = "/apis/events.k8s.io/v1/namespaces/default/events"
MOMENT = "2026-01-01T00:00:00.000001Z"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
SERIES = {"count": 2, "lastObservedTime": "2026-01-01T00:05:00.000001Z"}


def new(name="web-0.1", **fields):
    """An event as client-go's newer recorder sends it: Go writes what is empty too."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": None},
        "eventTime": MOMENT,
        "reportingController": "agent",
        "reportingInstance": "agent-1",
        "action": "Look",
        "reason": "New",
        "regarding": {"kind": "ConfigMap", "name": "web-0", "namespace": "default", "uid": "u-1"},
        "note": "It was looked at.",
        "type": "Normal",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
        **fields,
    }


def old(name="web-0.2"):
    """An event as the older recorder sends it."""
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "ConfigMap", "name": "web-0", "namespace": "default", "uid": "u-1"},
        "reason": "Seen",
        "message": "It was seen.",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 4,
        "type": "Warning",
    }


@pytest.fixture
def told(api):
    """One event of each form."""
    for path, event in ((VIEW, new()), (CORE, old())):
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
    assert (ours["apiVersion"], ours["note"], ours["regarding"]["name"]) == (
        "events.k8s.io/v1",
        "It was looked at.",
        "web-0",
    )
    assert (cores["apiVersion"], cores["message"], cores["involvedObject"]["name"]) == (
        "v1",
        "It was looked at.",
        "web-0",
    )
    assert (cores["reportingComponent"], cores["eventTime"]) == ("agent", MOMENT)
    assert ours["metadata"] == cores["metadata"]
    shown = told.get(f"{VIEW}/web-0.2").json()
    assert shown["deprecatedSource"] == {"component": "kubelet", "host": "n1"}
    assert (shown["deprecatedCount"], shown["deprecatedLastTimestamp"]) == (4, "2026-01-01T00:00:00Z")


def test_what_is_created_is_answered_in_the_form_that_was_sent(api):
    created = api.post(VIEW, new()).json()
    assert created["apiVersion"] == "events.k8s.io/v1"
    assert "message" not in created
    refused = api.post(VIEW, {**old(), "apiVersion": "v1", "kind": "Event"})
    assert refused.status_code == 400
    assert api.post(VIEW, {**old(), "apiVersion": "events.k8s.io/v1"}).status_code == 422


def test_fields_of_the_other_form_are_unknown(api):
    answer = api.post(f"{VIEW}?fieldValidation=Strict", new(message="core's"))
    assert 'unknown field "message"' in answer.json()["message"]
    answer = api.post(VIEW, new(message="core's"))
    assert 'unknown field \\"message\\"' in answer.headers["warning"]
    assert answer.json()["note"] == "It was looked at."


def test_a_list_has_all_events_in_its_form(told):
    answer = told.get(VIEW)
    assert names(answer) == names(told.get(CORE)) == ["web-0.1", "web-0.2"]
    assert (answer.json()["apiVersion"], answer.json()["kind"]) == ("events.k8s.io/v1", "EventList")
    assert [item["note"] for item in answer.json()["items"]] == ["It was looked at.", "It was seen."]
    assert names(told.get("/apis/events.k8s.io/v1/events?limit=1")) == ["web-0.1"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("regarding.name=web-0,reason=New", ["web-0.1"]),
        ("regarding.uid=u-1", ["web-0.1", "web-0.2"]),
        ("regarding.uid=u-2", []),
        ("reportingController=agent", ["web-0.1"]),
        ("type!=Normal", ["web-0.2"]),
        ("metadata.name=web-0.2", ["web-0.2"]),
    ],
)
def test_a_view_is_selected_by_its_own_fields(told, selector, found):
    assert names(told.get(f"{VIEW}?fieldSelector={selector}")) == found


@pytest.mark.parametrize(("source", "found"), [("kubelet", ["web-0.2"]), ("agent", ["web-0.1"]), ("n1", [])])
def test_events_are_selected_by_who_told_them(told, source, found):
    assert names(told.get(f"{CORE}?fieldSelector=source={source}")) == found


@pytest.mark.parametrize(("path", "field"), [(VIEW, "involvedObject.name"), (CORE, "regarding.name")])
def test_fields_of_the_other_form_select_nothing(told, path, field):
    answer = told.get(f"{path}?fieldSelector={field}=web-0")
    assert (answer.status_code, f"field label not supported: {field}" in answer.json()["message"]) == (400, True)


def test_a_table_shows_the_same_in_both_forms(told):
    ours, cores = (told.get(f"{path}?includeObject=Object", headers=TABLE).json() for path in (VIEW, CORE))
    assert [row["cells"] for row in ours["rows"]] == [row["cells"] for row in cores["rows"]]
    assert "configmap/web-0" in ours["rows"][0]["cells"]
    assert ours["rows"][0]["object"]["note"] == cores["rows"][0]["object"]["message"]
    assert ours["columnDefinitions"] == cores["columnDefinitions"]


def test_the_recorder_counts_a_series_by_a_strategic_patch(told):
    patched = told.patch(f"{VIEW}/web-0.1", {"series": SERIES}, STRATEGIC)
    assert (patched.status_code, patched.json()["series"]) == (200, SERIES)
    assert told.get(f"{CORE}/web-0.1").json()["series"] == SERIES
    row = told.get(f"{CORE}?fieldSelector=metadata.name=web-0.1", headers=TABLE).json()["rows"][0]
    assert row["cells"][-2:] == [2, "web-0.1"]
    assert told.patch(f"{VIEW}/gone", {"series": SERIES}, STRATEGIC).status_code == 404


@pytest.mark.parametrize(
    ("content_type", "change"),
    [
        (STRATEGIC, {"note": "x"}),
        ("application/merge-patch+json", {"note": "x"}),
        ("application/json-patch+json", [{"op": "replace", "path": "/note", "value": "x"}]),
    ],
)
def test_a_patch_is_of_the_form_that_it_is_sent_to(told, content_type, change):
    refused = told.patch(f"{VIEW}/web-0.1", change, content_type)
    assert refused.status_code == 422
    assert refused.json()["details"]["causes"][0]["field"] == "message"
    core = json.loads(json.dumps(change).replace("note", "message"))
    assert told.patch(f"{CORE}/web-0.1", core, content_type).json()["message"] == "x"
    assert told.get(f"{VIEW}/web-0.1").json()["note"] == "x"


def test_an_event_can_be_read_and_written_back_in_either_form(told):
    for path in (VIEW, CORE):
        read = told.get(f"{path}/web-0.1").json()
        read["series"] = SERIES
        answer = told.put(f"{path}/web-0.1", read)
        assert (answer.status_code, answer.json()["series"]) == (200, SERIES)


def test_who_manages_which_field_is_said_in_the_form_that_it_was_written_in(api):
    first = api.request("PATCH", f"{VIEW}/a?fieldManager=one", new("a"), APPLY)
    assert first.status_code == 201, first.text
    api.patch(f"{CORE}/a?fieldManager=two", {"message": "Another."})
    found = managers(api.get(f"{CORE}/a").json())
    assert "f:note" not in found["one", "events.k8s.io/v1"]
    assert "f:regarding" in found["one", "events.k8s.io/v1"]
    assert found["two", "v1"] == {"f:message": {}}
    conflict = api.request("PATCH", f"{VIEW}/a?fieldManager=one", new("a"), APPLY)
    assert conflict.status_code == 409
    assert [(c["message"], c["field"]) for c in conflict.json()["details"]["causes"]] == [
        ('conflict with "two" using v1', ".note")
    ]


def test_what_a_manager_applies_in_another_form_replaces_what_it_applied(api):
    applied = new("a", series=SERIES)
    assert api.request("PATCH", f"{VIEW}/a?fieldManager=one", applied, APPLY).status_code == 201
    core = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}}
    core |= {"involvedObject": applied["regarding"], "reason": "Other"}
    answer = api.request("PATCH", f"{CORE}/a?fieldManager=one", core, APPLY)
    assert answer.status_code == 200, answer.text
    assert answer.json()["involvedObject"] == applied["regarding"]
    assert {"series", "message", "eventTime"} & set(answer.json()) == set()
    assert list(managers(answer.json())) == [("one", "v1")]


def test_deleting_one_view_deletes_the_event(told):
    assert told.delete(f"{VIEW}/web-0.1").json()["status"] == "Success"
    assert told.get(f"{CORE}/web-0.1").status_code == 404
    gone = told.delete(f"{VIEW}?fieldSelector=regarding.name=web-0").json()
    assert [item["note"] for item in gone["items"]] == ["It was seen."]
    assert names(told.get(CORE)) == []


def test_rights_are_those_of_core_events(told):
    viewer = make_user("viewer")
    RoleBinding.objects.create(user=viewer, namespace="default", role="viewer")
    reader = told.as_(Actor("viewer", user_id=viewer.pk))
    assert names(reader.get(VIEW)) == ["web-0.1", "web-0.2"]
    assert reader.get("/apis/events.k8s.io/v1/namespaces/other/events").status_code == 403
    assert reader.post(VIEW, new("mine")).status_code == 403
    assert reader.patch(f"{VIEW}/web-0.1", {"series": SERIES}, STRATEGIC).status_code == 403
    assert reader.delete(f"{VIEW}/web-0.1").status_code == 403


@pytest.mark.parametrize("group", ["", "events.k8s.io", "*"])
def test_a_review_knows_both_groups(told, group):
    viewer = make_user("viewer")
    RoleBinding.objects.create(user=viewer, namespace="default", role="viewer")
    reader = told.as_(Actor("viewer", user_id=viewer.pk))
    for verb, allowed in (("watch", True), ("create", False)):
        asked = {"group": group, "resource": "events", "verb": verb, "namespace": "default"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = reader.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).json()
        assert answer["status"]["allowed"] is allowed, answer


def test_discovery_lists_the_view_with_the_hash_of_what_is_stored(api):
    def found(path):
        listed = api.get(path).json()["resources"]
        return next(each for each in listed if each["name"] == "events")

    ours, cores = found("/apis/events.k8s.io/v1"), found("/api/v1")
    assert ours == cores
    assert ours["storageVersionHash"] == "r2yiGXH7wu8="
    assert api.get("/apis/events.k8s.io").json()["preferredVersion"]["groupVersion"] == "events.k8s.io/v1"


def test_its_schema_is_published(api):
    schemas = api.get("/openapi/v3/apis/events.k8s.io/v1").json()["components"]["schemas"]
    fields = schemas["io.k8s.api.events.v1.Event"]["properties"]
    assert {"regarding", "note", "deprecatedCount", "reportingController"} <= set(fields)
    assert "message" not in fields
