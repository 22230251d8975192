"""Jobs of `batch/v1`, which are stored and not run: what their page says, and the Volcano Job that is made of one."""

from __future__ import annotations

import lxml.html
import pytest

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import store
from dashboard.live import TopicRequest, topics
from jobs.editor import converted, editor
from kube.resources import BATCH_JOBS, JOBS
from tests.tables import cases

POD = {"restartPolicy": "Never", "containers": [{"name": "pi", "image": "perl", "command": ["perl", "-e", "1"]}]}


@pytest.fixture
def stored(alice, admin_user):
    """Store a Job of batch/v1 as kubectl does."""
    bootstrap()

    def store_(name="pi", metadata=None, **spec):
        obj = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"template": {"metadata": metadata or {}, "spec": POD}, **spec},
        }
        return api.create(access.for_user(admin_user), BATCH_JOBS, obj)

    return store_


def test_its_page_says_that_it_is_stored_and_not_run_and_leads_to_a_volcano_job(admin_client, stored):
    stored()
    response = admin_client.get("/jobs/default/pi/")
    content = response.content.decode()
    assert response.status_code == 200
    assert "Stored, not run here." in content
    assert "deleted so long ago" not in content
    assert "/jobs/new/?batch=default/pi" in content
    page = admin_client.get("/jobs/new/?batch=default/pi").content.decode()
    assert "# The Job pi of batch/v1, written as a Volcano Job." in page
    assert "batch.volcano.sh/v1alpha1" in page


def test_a_name_that_nothing_has_is_gone_as_before(admin_client, stored):
    stored()
    response = admin_client.get("/jobs/default/tau/")
    assert (response.status_code, b"deleted so long ago" in response.content) == (404, True)


def test_a_volcano_job_of_the_name_has_its_own_page(admin_client, admin_user, stored):
    made = stored()
    editor.submit(access.for_user(admin_user), converted.text(made.object), "")
    content = admin_client.get("/jobs/default/pi/").content.decode()
    assert "Stored, not run here." not in content


def test_who_may_not_see_it_is_told_nothing(stored, person, client):
    stored()
    client.force_login(person("nora", role=""))
    assert client.get("/jobs/default/pi/").status_code in (403, 404)
    assert client.get("/jobs/new/?batch=default/pi").status_code in (403, 404)


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
    (element,) = lxml.html.document_fromstring(client.get(address).content).xpath(f"//*[@id='{part}']")
    return " ".join(element.text_content().split()), "".join(element.xpath(".//a/@href"))


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


def test_an_open_list_learns_of_one_that_is_stored(admin_client, admin_user, stored):
    request = TopicRequest(access.for_user(admin_user), {})
    before = topics.find("jobs:list")(request)
    stored()
    after = topics.find("jobs:list")(request)
    assert "1 Job of" not in before.parts["jobs-not-run"]
    assert "1 Job of" in after.parts["jobs-not-run"]
    assert any(each.resource == BATCH_JOBS.id for each in before.watches)


def test_the_overview_counts_them_beside_the_jobs(admin_client, stored):
    stored()
    assert line(admin_client, "/?namespace=default", "overview-not-run") == (
        "1 Job of batch/v1 in default is stored and not run here.",
        "/jobs/-/kubernetes/?namespace=default",
    )


def test_their_list_has_the_state_of_each_and_leads_to_its_page(admin_client, stored):
    stored("pi")
    stored("tau")
    page = lxml.html.document_fromstring(admin_client.get("/jobs/-/kubernetes/?q=pi").content)
    (row,) = page.xpath("//tbody[@id='table-rows']/tr")
    assert "not run here" in row.text_content()
    assert row.xpath("./th/a/@href") == ["/jobs/default/pi/"]


def test_who_may_not_list_them_is_told_no_number(stored, person, client):
    stored()
    client.force_login(person("nora", namespace="other"))
    assert line(client, "/jobs/") == ("", "")
    assert b"pi" not in client.get("/jobs/-/kubernetes/").content.split(b'id="table-rows"')[1].split(b"</tbody>")[0]
