"""The definitions of Volcano's kinds, asked of a kube-apiserver: it accepts them, and keeps what is written."""

import json

import pytest

from kube.resources import JOBS
from proof.kubernetes import world
from tests.kubernetes import manifests
from tests.kubernetes.objects import sample
from tests.tables import cases
from volcano_ui.management.commands.crds import KINDS

pytestmark = pytest.mark.system
JOBS_WRITTEN = manifests.jobs()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_definition_is_accepted_without_a_word_against_it(kubernetes, kind):
    conditions = kubernetes.get("crd", kind.id)["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("name", JOBS_WRITTEN)
def test_job_is_kept_as_it_was_written(kubernetes, name):
    job = JOBS_WRITTEN[name]
    job = {**job, "metadata": {**job["metadata"], "namespace": "default"}}
    written = kubernetes.kubectl(
        "create", "--validate=strict", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(job)
    )
    created = json.loads(written)
    assert created["spec"] == world.without_nulls(job["spec"])
    for part in ("labels", "annotations"):
        assert created["metadata"].get(part, {}) == job["metadata"].get(part, {})


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_object_is_made_printed_and_found_by_its_short_names(kubernetes, kind):
    obj = sample(kind, "plain")
    kubernetes.apply(obj)
    try:
        for name in (kind.id, *kind.short_names):
            printed = kubernetes.kubectl("get", name, "plain", "-o", "wide").splitlines()[0]
            columns = [column.name.upper() for column in kind.columns]
            assert printed.split() == columns
    finally:
        kubernetes.kubectl("delete", kind.id, "plain")


def test_status_is_written_by_its_own_path_alone(kubernetes):
    kubernetes.apply({**sample(JOBS, "plain"), "status": {"pending": 7}})
    try:
        assert "status" not in kubernetes.get(JOBS.id, "plain")
        kubernetes.set_status(JOBS.id, "plain", {"state": {"phase": "Running"}, "running": 1})
        assert kubernetes.get(JOBS.id, "plain")["status"] == {"state": {"phase": "Running"}, "running": 1}
    finally:
        kubernetes.kubectl("delete", JOBS.id, "plain")


@cases("spec, complaint", {
    "misspelled": ({"minAvailible": 1}, 'unknown field "spec.minAvailible"'),
    "text as a number": ({"minAvailable": "1"}, "spec.minAvailable"),
    "below its least": ({"maxRetry": -1}, "spec.maxRetry"),
})  # fmt: skip
def test_wrong_job_is_refused_with_its_field(kubernetes, spec, complaint):
    job = sample(JOBS, "wrong")
    text = json.dumps({**job, "spec": {**job["spec"], **spec}})
    assert complaint in kubernetes.kubectl.fails("create", "--validate=strict", "-f", "-", stdin=text)
