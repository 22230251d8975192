"""Kinds that users define, over HTTP."""

from __future__ import annotations

from copy import deepcopy

import pytest

from cluster.api import custom_kinds
from kube import resources
from tests.kube.custom import samples

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRON_TABS = "/apis/stable.example.com/v1/namespaces/default/crontabs"


@pytest.fixture(autouse=True)
def forgotten():
    """Afterwards nobody knows the kinds that the test defined."""
    yield
    custom_kinds._known.clear()
    resources.set_custom(())


@pytest.fixture
def defined(api):
    answer = api.post(DEFINITIONS, samples.CRON_TAB)
    assert answer.status_code == 201, answer.text
    return api


def create(api, name="a", **spec):
    answer = api.post(CRON_TABS, samples.cron_tab(name, **spec))
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_kind_is_in_discovery_as_soon_as_it_is_defined(api):
    assert api.get(CRON_TABS).status_code == 404
    crd = deepcopy(samples.CRON_TAB)
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    refused = api.post(DEFINITIONS, crd)
    assert (refused.status_code, "does not call conversion webhooks" in refused.json()["message"]) == (422, True)
    assert "not evaluated" in api.post(DEFINITIONS, samples.WORKLOAD).headers["warning"]
    api.post(DEFINITIONS, samples.CRON_TAB)
    assert "stable.example.com" in [group["name"] for group in api.get("/apis").json()["groups"]]
    found = {each["name"]: each for each in api.get("/apis/stable.example.com/v1").json()["resources"]}
    assert set(found) == {"crontabs", "crontabs/scale", "crontabs/status"}
    assert (found["crontabs/scale"]["kind"], found["crontabs"]["shortNames"]) == ("Scale", ["ct"])


def test_scale_reads_and_writes_the_replicas(defined):
    create(defined, replicas=2)
    scale = defined.get(f"{CRON_TABS}/a/scale").json()
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    scale["spec"]["replicas"] = 5
    assert defined.put(f"{CRON_TABS}/a/scale", scale).json()["spec"] == {"replicas": 5}
    assert defined.patch(f"{CRON_TABS}/a/scale", {"spec": {"replicas": 7}}).json()["spec"] == {"replicas": 7}
    assert defined.get(f"{CRON_TABS}/a").json()["spec"]["replicas"] == 7
    stale = defined.put(f"{CRON_TABS}/a/scale", scale)
    assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("body", "code"),
    [({"spec": {"replicas": -1}}, 422), ({"spec": {"replicas": "x"}}, 422), ({"spec": {"replicas": 11}}, 422), ({"kind": "Pod", "spec": {"replicas": 1}}, 400), ([], 400)],
    ids=["negative", "a text", "more than the schema allows", "no Scale", "no object"],
)  # fmt: skip
def test_scale_that_is_none_is_refused(defined, body, code):
    create(defined)
    assert defined.put(f"{CRON_TABS}/a/scale", body).status_code == code


def test_changes_are_judged_as_those_of_custom_kinds(defined):
    obj = samples.cron_tab("a", hue="green")
    strict = defined.post(f"{CRON_TABS}?fieldValidation=Strict", obj)
    assert (strict.status_code, "spec.hue" in strict.json()["message"]) == (400, True)
    answer = defined.post(CRON_TABS, obj)
    assert answer.headers["warning"] == '299 - "unknown field \\"spec.hue\\""'
    found = answer.json()
    assert "hue" not in found["spec"]
    answer = defined.patch(f"{CRON_TABS}/a", {}, content_type="application/strategic-merge-patch+json")
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")
    del found["metadata"]["resourceVersion"]
    (cause,) = defined.put(f"{CRON_TABS}/a", found).json()["details"]["causes"]
    assert cause["message"] == "Invalid value: 0x0: must be specified for an update"


def test_every_version_is_served_and_one_that_goes_warns(api):
    old = samples.version("v1beta1", storage=False, deprecated=True)
    api.post(DEFINITIONS, samples.definition(versions=[samples.version("v1"), old]))
    create(api)
    answer = api.get(CRON_TABS.replace("v1/", "v1beta1/") + "/a")
    assert answer.json()["apiVersion"] == "stable.example.com/v1beta1"
    assert "stable.example.com/v1beta1 CronTab is deprecated" in answer.headers["warning"]
    listed = api.get(CRON_TABS.replace("v1/", "v1beta1/")).json()
    assert (listed["kind"], listed["items"][0]["apiVersion"]) == ("CronTabList", "stable.example.com/v1beta1")


def test_roles_hold_for_custom_kinds(defined, person):
    mine = defined.as_(person("sam", default="submitter"))
    create(mine, "own")
    create(defined, "other")
    assert mine.get(CRON_TABS).status_code == 200
    for name, code in (("own", 200), ("own/scale", 200), ("other", 403), ("other/scale", 403)):
        assert mine.patch(f"{CRON_TABS}/{name}", {"spec": {"replicas": 2}}).status_code == code
    assert mine.get(CRON_TABS.replace("default", "other")).status_code == 403
    assert mine.post(DEFINITIONS, samples.TASK_FLOW).status_code == 403
