"""Jobs of `batch/v1`, which are stored and not run: what their page says, and the Volcano Job that is made of one."""

from __future__ import annotations

import pytest

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import store
from jobs.editor import converted, editor
from kube.resources import BATCH_JOBS, JOBS

POD = {
    "restartPolicy": "Never",
    "containers": [{"name": "pi", "image": "perl", "command": ["perl", "-e", "1"]}],
}


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


@pytest.mark.parametrize(
    ("spec", "replicas", "fields", "note"),
    [
        pytest.param({}, 1, {"minAvailable": 1, "maxRetry": 6}, "written as a Volcano Job", id="one pod"),
        pytest.param({"completions": 8, "parallelism": 2}, 8, {}, "All 8 pods may run at once, where parallelism was 2.", id="many"),
        pytest.param({"parallelism": 3}, 3, {}, "", id="a work queue"),
        pytest.param({"backoffLimit": 0}, 1, {"maxRetry": None, "policies": None}, "", id="no retries"),
        pytest.param({"ttlSecondsAfterFinished": 0}, 1, {"ttlSecondsAfterFinished": 0}, "", id="deleted at its end"),
        pytest.param(
            {"completions": 2, "completionMode": "Indexed"}, 2, {"plugins": {"env": []}}, "VC_TASK_INDEX", id="indexed"
        ),
        pytest.param({"activeDeadlineSeconds": 60}, 1, {}, "holds for each pod", id="a deadline"),
        pytest.param({"suspend": True}, 1, {}, "where it was suspended", id="suspended"),
    ],
)  # fmt: skip
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
