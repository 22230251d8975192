"""Jobs of `batch/v1`, which are stored and not run: what their page says, and the Volcano Job that is made of one."""

from __future__ import annotations

import pytest
import yaml

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import store
from jobs.editor import converted, editor
from kube.resources import BATCH_JOBS, JOBS
from tests.blocks import blocks
from tests.builders import of
from tests.jobs.pages.job_page import JobPage, words

POD = {"restartPolicy": "Never", "containers": [{"name": "pi", "image": "perl", "command": ["perl", "-e", "1"]}]}


@pytest.fixture
def stored(alice, admin_user):
    bootstrap()

    def store_(name="pi", metadata=None, **spec):
        obj = of(BATCH_JOBS, name, template={"metadata": metadata or {}, "spec": POD}, **spec)
        return api.create(access.for_user(admin_user), BATCH_JOBS, obj)

    return store_


def test_its_page_says_that_it_is_stored_and_not_run_and_leads_to_a_volcano_job(admin_client, admin_user, stored):
    made = stored()
    html = JobPage(admin_client, "pi").html
    texts = ("Stored, not run here.", "/jobs/new/?batch=default/pi", "deleted so long ago")
    assert [text in html for text in texts] == [True, True, False]
    missing = admin_client.get("/jobs/default/tau/")
    assert (missing.status_code, b"deleted so long ago" in missing.content) == (404, True)
    form = admin_client.get("/jobs/new/?batch=default/pi").content.decode()
    assert "# The Job pi of batch/v1, written as a Volcano Job." in form
    editor.submit(access.for_user(admin_user), converted.text(made.object), "")
    assert "Stored, not run here." not in JobPage(admin_client, "pi").html, "a Volcano Job has the name"


def test_who_may_not_see_it_is_told_nothing_and_no_number(stored, person, client):
    stored()
    client.force_login(person("nora", namespace="other"))
    assert [client.get(f"/jobs/{each}").status_code for each in ("default/pi/", "new/?batch=default/pi")] == [403, 403]
    assert line(client, "/jobs/") == ("", "")
    assert JobPage(client, address="/jobs/-/kubernetes/").names == []


@blocks("kubernetes_jobs", folder="pages")
def test_the_volcano_job_does_the_same_work(stored, admin_user, block, golden):
    obj = stored(metadata={"labels": {"app": "pi"}}, **yaml.safe_load(block.inputs[0])).object
    golden(block, lambda _: converted.text(obj).splitlines())
    job = editor.submit(access.for_user(admin_user), converted.text(obj), "")
    assert store.get(JOBS, "default", job.name).object["spec"]["schedulerName"] == "volcano"


def line(client, address, part="jobs-not-run"):
    element = JobPage(client, address=address).tree.get_element_by_id(part)
    return words(element), "".join(element.xpath(".//a/@href"))


def test_the_list_of_jobs_says_how_many_match_and_leads_to_them(admin_client, stored, reads):
    for name in ("pi", "pi-again", "tau"):
        stored(name)
    for query in ("", "q=pi", "q=tau&namespace=default", "owner=admin", "namespace=elsewhere", "q=rho", "phase=Failed"):
        said, way = line(admin_client, f"/jobs/?{query}")
        reads.read(f"?{query}: {said or 'nothing'} {way}")
    answer = admin_client.get("/jobs/?q=tau", headers={"HX-Request": "true"}).content.decode()
    assert "with “tau” in its name" in answer, "where only the table is asked for"


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
