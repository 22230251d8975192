from __future__ import annotations

import pytest

from cluster.rules import node_engines
from jobs.editor import job_text, samples
from jobs.editor.samples import SAMPLES
from jobs.pages.views import EMPTY_JOB
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import fill
from jobs.sweeps.samples import DESCENT
from kube import lenient

BEGINNINGS = {
    **{slug: job_text.read(each.yaml).object for slug, each in SAMPLES.items()},
    "empty": job_text.read(EMPTY_JOB).object,
    "sweep": job_text.read(DESCENT.text.replace("{{", "").replace("}}", "")).object,
    **{slug: fill(each.template, each.parameters, each.defaults) for slug, each in BUILTINS.items()},
}
LARGE = ("python:3", "python:latest")


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_every_sample_is_one_valid_document_and_gets_a_name_of_its_own_each_time_it_runs(sample):
    document = job_text.read(sample.yaml)
    assert (document.notes, document.object["metadata"]["name"]) == ((), sample.slug)
    assert sample.object("team-a")["metadata"] == {"generateName": f"{sample.slug}-", "namespace": "team-a"}


@pytest.mark.parametrize("job", BEGINNINGS.values(), ids=BEGINNINGS)
def test_whatever_a_job_begins_with_runs_where_an_engine_is_installed_and_no_registry_answers(job):
    templates = [task["template"] for task in job["spec"]["tasks"]]
    assert all(node_engines.wants_process(lenient.mapping(each, "metadata", "annotations")) for each in templates)
    images = {container["image"] for each in templates for container in each["spec"]["containers"]}
    assert not images.intersection(LARGE)


@pytest.mark.parametrize(
    ("elsewhere", "is_offered"), [(False, True), (True, False)], ids=["embedded", "another cluster"]
)
def test_who_shares_a_cluster_is_not_offered_a_gang_that_takes_it_all(elsewhere, is_offered):
    offered = samples.offered(elsewhere=elsewhere)
    assert ("too-large" in offered) is is_offered
    assert "primes" in offered
