from __future__ import annotations

from kube.pod_groups import job_of
from tests.tables import cases

UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"


@cases("group, job", {
    "of a job": (f"train-{UID}", "train"),
    "a name with dashes": (f"a.b-c-{UID}", "a.b-c"),
    "no uid": (f"train-{UID[:-1]}", ""),
    "made for pods without one": (f"podgroup-{UID}", ""),
    "made by hand": ("mine", ""),
    "no name": (f"-{UID}", ""),
})  # fmt: skip
def test_a_group_is_called_by_its_job(group, job):
    assert job_of(group) == job
