from __future__ import annotations

import pytest

from kube.pod_groups import job_of

UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"


@pytest.mark.parametrize(
    ("group", "job"),
    [
        pytest.param(f"train-{UID}", "train", id="of a job"),
        pytest.param(f"a.b-c-{UID}", "a.b-c", id="a name with dashes"),
        pytest.param(f"train-{UID[:-1]}", "", id="no uid"),
        pytest.param(f"podgroup-{UID}", "", id="made for pods without one"),
        pytest.param("mine", "", id="made by hand"),
        pytest.param(f"-{UID}", "", id="no name"),
    ],
)
def test_a_group_is_called_by_its_job(group, job):
    assert job_of(group) == job
