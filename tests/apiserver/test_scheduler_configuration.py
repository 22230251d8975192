"""The scheduler's ConfigMap as kubectl brings it."""

from __future__ import annotations

import pytest

from cluster.store import Create, store
from kube.resources import NAMESPACES
from tests.cluster.api.conftest import config_map, namespace

MAPS = "/api/v1/namespaces/volcano-system/configmaps"
NAME = "volcano-scheduler-configmap"


@pytest.fixture(autouse=True)
def _system(api):
    store.write(Create(NAMESPACES, namespace("volcano-system")))


def configured(text):
    return config_map(NAME, "volcano-system", **{"volcano-scheduler.conf": text})


def test_what_cannot_be_used_is_422_with_its_causes(api):
    answer = api.post(MAPS, configured("actions: alocate\ntiers: 5"))
    assert answer.status_code == 422
    assert [(cause["field"], cause["message"]) for cause in answer.json()["details"]["causes"]] == [
        ("data[volcano-scheduler.conf]", "Line 1: There is no action alocate. Did you mean allocate?"),
        ("data[volcano-scheduler.conf]", "Line 2: tiers is a list, not a number."),
    ]
    api.post(MAPS, configured("actions: allocate"))
    patch = {"data": {"volcano-scheduler.conf": "actions: alocate"}}
    assert api.patch(f"{MAPS}/{NAME}", patch, "application/merge-patch+json").status_code == 422
    assert api.get(f"{MAPS}/{NAME}").json()["data"] == {"volcano-scheduler.conf": "actions: allocate"}


def test_what_has_no_effect_is_a_warning(api):
    strange = 'actions: allocate, shuffle\ntiers: [{plugins: [{name: "gang\\r\\nSet-Cookie: a"}]}]'
    answer = api.post(MAPS, configured(strange))
    assert answer.status_code == 201
    told = answer.headers.get_list("warning")
    assert any("shuffle moves no pod without the plugin rescheduling." in each for each in told)
    assert any("There is no plugin gang" in each for each in told)
    assert "set-cookie" not in answer.headers
