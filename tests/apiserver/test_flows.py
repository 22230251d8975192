"""Flows, templates and cron jobs over HTTP, as kubectl and vcctl ask for them."""

from __future__ import annotations

import pytest

from tests.cluster.api.conftest import person  # noqa: F401
from tests.jobs.made import runner, settle, spec
from tests.tables import cases

PLACE = "namespaces/default"
FLOWS = f"/apis/flow.volcano.sh/v1alpha1/{PLACE}/jobflows"
TEMPLATES = f"/apis/flow.volcano.sh/v1alpha1/{PLACE}/jobtemplates"
CRONS = f"/apis/batch.volcano.sh/v1alpha1/{PLACE}/cronjobs"
JOBS = f"/apis/batch.volcano.sh/v1alpha1/{PLACE}/jobs"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def flow(*names, **fields):
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f"},
        "spec": {"flows": [{"name": name} for name in names], **fields},
    }


def template(name="a", **fields):
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name},
        "spec": spec(**fields),
    }


def cron(**fields):
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"schedule": "0 2 * * *", "jobTemplate": {"spec": spec()}, **fields},
    }


def test_vcctl_creates_lists_describes_and_deletes_a_flow(api):
    """`vcctl jobflow create -f`, `list --all-namespaces`, `get`, `describe`, `delete` (reference: §5.5)."""
    assert api.post(TEMPLATES, template()).status_code == 201
    created = api.post(FLOWS, flow("a"))
    assert (created.status_code, created.json()["spec"]["jobRetainPolicy"]) == (201, "retain")
    settle(runner("jobflows"))
    listed = api.get("/apis/flow.volcano.sh/v1alpha1/jobflows").json()
    assert [(each["metadata"]["name"], each["status"]["state"]["phase"]) for each in listed["items"]] == [
        ("f", "Pending")
    ]
    assert api.get(f"{FLOWS}/f").json()["status"]["pendingJobs"] == ["f-a"]
    assert api.get(f"{JOBS}/f-a").json()["metadata"]["ownerReferences"][0]["kind"] == "JobFlow"
    assert api.delete(f"{FLOWS}/f").status_code == 200
    assert api.get(f"{FLOWS}/f").status_code == 404


def test_vcctl_creates_lists_and_deletes_a_template(api):
    assert api.post(TEMPLATES, template()).json()["spec"] == spec()
    assert [each["metadata"]["name"] for each in api.get(TEMPLATES).json()["items"]] == ["a"]
    assert api.delete(f"{TEMPLATES}/a").status_code == 200


@cases("path, obj, columns", {
    "jobflows": (FLOWS, flow(), ["Name", "Status", "Age"]),
    "jobtemplates": (TEMPLATES, template(), ["Name", "Age"]),
    "cronjobs": (CRONS, cron(), ["Name", "Age"]),
})  # fmt: skip
def test_kubectl_prints_the_columns_of_the_crd(api, path, obj, columns):
    api.post(path, obj)
    table = api.get(path, headers=TABLE).json()
    assert [column["name"] for column in table["columnDefinitions"]] == columns


@pytest.mark.parametrize(
    ("path", "obj", "field"),
    [
        (FLOWS, flow("a", "a_b"), "spec.flows[1].name"),
        (FLOWS, flow(jobRetainPolicy="keep"), "spec.jobRetainPolicy"),
        (TEMPLATES, template(minAvailable=9), "spec.minAvailable"),
        (CRONS, cron(schedule="at noon"), "spec.schedule"),
        (CRONS, cron(concurrencyPolicy="Maybe"), "spec.concurrencyPolicy"),
        (CRONS, cron(failedJobsHistoryLimit=-1), "spec.failedJobsHistoryLimit"),
        (CRONS, cron(startingDeadlineSeconds=-1), "spec.startingDeadlineSeconds"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(api, path, obj, field):
    refused = api.post(path, obj)
    assert refused.status_code == 422
    assert [cause["field"] for cause in refused.json()["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("path", "obj"), [(FLOWS, flow(colour=1)), (CRONS, cron(colour=1)), (TEMPLATES, template(colour=1))]
)
def test_unknown_fields_are_refused_on_request(api, path, obj):
    refused = api.post(f"{path}?fieldValidation=Strict", obj)
    assert refused.status_code == 400
    assert 'unknown field "spec.colour"' in refused.json()["message"]


def test_a_submitter_has_what_he_made_and_its_status_is_written_by_controllers(api, person):  # noqa: F811
    sam, tom = (api.as_(person(name, default="submitter")) for name in ("sam", "tom"))
    sam.post(CRONS, {**cron(), "status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}})
    assert "status" not in sam.get(f"{CRONS}/c").json()
    assert tom.patch(f"{CRONS}/c", {"spec": {"suspend": True}}).status_code == 403
    suspended = sam.patch(f"{CRONS}/c", {"spec": {"suspend": True}}).json()
    assert (suspended["spec"]["suspend"], suspended["metadata"]["generation"]) == (True, 2)
