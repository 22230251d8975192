from __future__ import annotations

import pytest

from jobs.editor import job_text
from jobs.editor.samples import SAMPLES


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_every_sample_is_one_valid_document_without_notes(sample):
    document = job_text.read(sample.yaml)
    assert document.notes == ()
    assert document.object["metadata"]["name"] == sample.slug


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_sample_gets_a_name_of_its_own_each_time_it_runs(sample):
    metadata = sample.object("team-a")["metadata"]
    assert metadata == {"generateName": f"{sample.slug}-", "namespace": "team-a"}


def test_the_primes_sample_needs_all_four_workers():
    spec = SAMPLES["primes"].object("default")["spec"]
    assert (spec["minAvailable"], spec["tasks"][0]["replicas"]) == (4, 4)


def test_the_failing_sample_ends_with_exit_code_three():
    tasks = SAMPLES["primes-and-failure"].object("default")["spec"]["tasks"]
    assert tasks[1]["template"]["spec"]["containers"][0]["command"][-1].endswith("exit 3")
