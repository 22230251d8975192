"""Jobs of `batch/v1`, which are stored and not run: what their page says, and the Volcano Job that is made of one."""

from __future__ import annotations

import pytest

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import store
from jobs.editor import converted, editor
from kube.resources import BATCH_JOBS, JOBS
from tests.builders import of
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

POD = {"restartPolicy": "Never", "containers": [{"name": "pi", "image": "perl", "command": ["perl", "-e", "1"]}]}


@pytest.fixture
def stored(alice, admin_user):
    """Store a Job of batch/v1 as kubectl does."""
    bootstrap()

    def store_(name="pi", metadata=None, **spec):
        obj = of(BATCH_JOBS, name, template={"metadata": metadata or {}, "spec": POD}, **spec)
        return api.create(access.for_user(admin_user), BATCH_JOBS, obj)

    return store_


def test_its_page_says_that_it_is_stored_and_not_run_and_leads_to_a_volcano_job(admin_client, admin_user, stored):
    made = stored()
    html = JobPage(admin_client, "pi").html
    assert all(text in html for text in ("Stored, not run here.", "/jobs/new/?batch=default/pi"))
    assert "deleted so long ago" not in html
    missing = admin_client.get("/jobs/default/tau/")
    assert (missing.status_code, b"deleted so long ago" in missing.content) == (404, True)
    form = admin_client.get("/jobs/new/?batch=default/pi").content.decode()
    assert "# The Job pi of batch/v1, written as a Volcano Job." in form
    assert "batch.volcano.sh/v1alpha1" in form
    editor.submit(access.for_user(admin_user), converted.text(made.object), "")
    assert "Stored, not run here." not in JobPage(admin_client, "pi").html, "a Volcano Job has the name"


def test_who_may_not_see_it_is_told_nothing_and_no_number(stored, person, client):
    stored()
    client.force_login(person("nora", namespace="other"))
    assert client.get("/jobs/default/pi/").status_code == 403
    assert client.get("/jobs/new/?batch=default/pi").status_code == 403
    assert line(client, "/jobs/") == ("", "")
    assert JobPage(client, address="/jobs/-/kubernetes/").names == []


@cases("spec, replicas, fields, note", {
    "one pod": ({}, 1, {"minAvailable": 1, "maxRetry": 6}, "written as a Volcano Job"),
    "many": ({"completions": 8, "parallelism": 2}, 8, {}, "All 8 pods may run at once, where parallelism was 2."),
    "a work queue": ({"parallelism": 3}, 3, {}, ""),
    "no retries": ({"backoffLimit": 0}, 1, {"maxRetry": None, "policies": None}, ""),
    "deleted at its end": ({"ttlSecondsAfterFinished": 0}, 1, {"ttlSecondsAfterFinished": 0}, ""),
    "indexed": ({"completions": 2, "completionMode": "Indexed"}, 2, {"plugins": {"env": []}}, "VC_TASK_INDEX"),
    "a deadline": ({"activeDeadlineSeconds": 60}, 1, {}, "holds for each pod"),
    "suspended": ({"suspend": True}, 1, {}, "where it was suspended"),
})  # fmt: skip
def test_the_volcano_job_does_the_same_work(stored, admin_user, spec, replicas, fields, note):
    obj = stored(metadata={"labels": {"app": "pi"}}, **spec).object
    made = converted.of(obj)
    (task,) = made["spec"]["tasks"]
    assert task["replicas"] == replicas
    assert task["template"]["metadata"] == {"labels": {"app": "pi"}}
    assert {name: made["spec"].get(name) for name in fields} == fields
    assert note in " ".join(converted.notes(obj))
    job = editor.submit(access.for_user(admin_user), converted.text(obj), "")
    assert store.get(JOBS, "default", job.name).object["spec"]["schedulerName"] == "volcano"


def line(client, address, part="jobs-not-run"):
    """Return what the page says of Jobs of batch/v1, and where that leads."""
    element = JobPage(client, address=address).tree.get_element_by_id(part)
    return words(element), "".join(element.xpath(".//a/@href"))


@cases("query, said, way", {
    "all": ("", "3 Jobs of batch/v1 are stored and not run here.", ""),
    "a text": ("q=pi", "2 Jobs of batch/v1 with “pi” in their names are stored and not run here.", "?q=pi"),
    "a text in a namespace": ("q=tau&namespace=default",
        "1 Job of batch/v1 in default with “tau” in its name is stored and not run here.", "?q=tau&namespace=default"),
    "an owner": ("owner=admin", "3 Jobs of batch/v1 of admin are stored and not run here.", "?owner=admin"),
    "another namespace": ("namespace=elsewhere", "", None),
    "a text that none has": ("q=rho", "", None),
    "what only Volcano's have": ("phase=Failed", "", None),
})  # fmt: skip
def test_the_list_of_jobs_says_how_many_match_and_leads_to_them(admin_client, stored, query, said, way):
    for name in ("pi", "pi-again", "tau"):
        stored(name)
    assert line(admin_client, f"/jobs/?{query}") == (said, "" if way is None else f"/jobs/-/kubernetes/{way}")


def test_the_line_follows_the_filters_where_only_the_table_is_asked_for(admin_client, stored):
    stored()
    answer = admin_client.get("/jobs/?q=pi", headers={"HX-Request": "true"}).content.decode()
    assert "with “pi” in its name" in answer


def test_the_overview_counts_them_and_their_list_leads_to_the_page_of_each(admin_client, stored):
    stored()
    assert line(admin_client, "/?namespace=default", "overview-not-run") == (
        "1 Job of batch/v1 in default is stored and not run here.",
        "/jobs/-/kubernetes/?namespace=default",
    )
    stored("tau")
    (row,) = JobPage(admin_client, address="/jobs/-/kubernetes/?q=pi").rows
    assert "not run here" in words(row)
    assert row.find("th/a").get("href") == "/jobs/default/pi/"
