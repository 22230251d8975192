"""Kubernetes' own kinds over HTTP, as kubectl uses them."""

from __future__ import annotations

import pytest

from cluster.controllers import namespaces
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from tests.cluster.rules.known import indexed, job, pod

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
SPACES = "/api/v1/namespaces"


def test_a_job_gets_its_selector_from_its_uid(api):
    created = api.post(JOBS, job())
    assert created.status_code == 201
    stored = created.json()
    uid = stored["metadata"]["uid"]
    assert stored["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    assert stored["spec"]["template"]["metadata"]["labels"]["controller-uid"] == uid
    assert stored["metadata"]["generation"] == 1
    assert stored["status"] == {}
    assert "no controller of this cluster runs them yet" in created.headers["warning"]


def test_a_dry_run_shows_the_same_without_storing(api):
    shown = api.post(f"{JOBS}?dryRun=All", job()).json()
    assert shown["spec"]["selector"]["matchLabels"]
    assert api.get(f"{JOBS}/pi").status_code == 404


def test_a_generated_name_becomes_a_label(api):
    stored = api.post(JOBS, {**job(), "metadata": {"generateName": "pi-"}}).json()
    assert stored["spec"]["template"]["metadata"]["labels"]["job-name"] == stored["metadata"]["name"]


def test_a_refusal_lists_its_causes(api):
    refused = api.post(JOBS, indexed(parallelism=-1, completions=None))
    assert refused.status_code == 422
    status = refused.json()
    assert status["reason"] == "Invalid"
    assert 'Job.batch "pi" is invalid: [' in status["message"]
    assert [(c["reason"], c["field"]) for c in status["details"]["causes"]] == [
        ("FieldValueInvalid", "spec.parallelism"),
        ("FieldValueRequired", "spec.completions"),
    ]


def test_an_update_keeps_what_is_fixed(api):
    stored = api.post(JOBS, job()).json()
    patched = api.patch(f"{JOBS}/pi", {"spec": {"parallelism": 3}})
    assert patched.json()["spec"]["parallelism"] == 3
    assert patched.json()["metadata"]["generation"] == 2
    refused = api.patch(f"{JOBS}/pi", {"spec": {"completions": 3}})
    assert refused.status_code == 422
    assert refused.json()["details"]["causes"][0]["field"] == "spec.completions"
    assert stored["spec"]["completions"] == 1


def test_a_job_that_nothing_succeeded_of_is_selected_as_such(api):
    api.post(JOBS, job())
    assert len(api.get(f"{JOBS}?fieldSelector=status.successful=0").json()["items"]) == 1
    assert api.get(f"{JOBS}?fieldSelector=status.successful!=0").json()["items"] == []


def test_a_status_keeps_its_rules(api):
    api.post(JOBS, job())
    begun = {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1, "failed": 1}}
    assert api.patch(f"{JOBS}/pi/status", begun).status_code == 200
    refused = api.patch(f"{JOBS}/pi/status", {"status": {"failed": 0}})
    assert refused.status_code == 422
    assert "cannot decrease the failed counter" in refused.json()["message"]


def test_deleting_a_job_without_a_policy_leaves_its_pods_and_warns(api):
    api.post(JOBS, job())
    deleted = api.delete(f"{JOBS}/pi")
    assert deleted.json()["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in deleted.headers["warning"]


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_deleting_a_job_with_a_policy_does_not_warn(api, policy):
    api.post(JOBS, job())
    deleted = api.delete(f"{JOBS}/pi?propagationPolicy={policy}")
    assert deleted.status_code == 200
    assert "warning" not in deleted.headers


def test_a_pod_is_forbidden_in_kubernetes_words(api):
    refused = api.post(PODS, pod(priorityClassName="none"))
    assert refused.status_code == 403
    assert refused.json()["message"] == 'pods "p" is forbidden: no PriorityClass with name none was found'
    assert refused.json()["reason"] == "Forbidden"


def test_a_pod_comes_back_with_its_defaults(api):
    stored = api.post(PODS, pod()).json()
    assert stored["status"]["phase"] == "Pending"
    assert stored["spec"]["serviceAccountName"] == "default"
    assert api.get(f"{PODS}?fieldSelector=status.phase=Pending").json()["items"][0]["metadata"]["name"] == "p"


def test_a_namespace_goes_with_its_content(api):
    assert api.post(SPACES, {"metadata": {"name": "work"}}).json()["status"]["phase"] == "Active"
    api.post(f"{SPACES}/work/configmaps", {"metadata": {"name": "a"}})
    gone = api.delete(f"{SPACES}/work")
    assert gone.json()["status"]["phase"] == "Terminating"
    refused = api.post(f"{SPACES}/work/configmaps", {"metadata": {"name": "b"}})
    assert refused.status_code == 403
    assert refused.json()["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    runner = Runner(registry.get("namespaces"), 0, namespaces.NamespaceController())
    while runner.step():
        pass
    assert api.get(f"{SPACES}/work").status_code == 404


def test_a_namespace_is_finalized(api):
    held = {"metadata": {"name": "work"}, "spec": {"finalizers": ["example.com/mine"]}}
    stored = api.post(SPACES, held).json()
    assert stored["spec"]["finalizers"] == ["example.com/mine", "kubernetes"]
    stored["spec"]["finalizers"] = ["kubernetes"]
    finalized = api.put(f"{SPACES}/work/finalize", stored)
    assert finalized.status_code == 200
    assert finalized.json()["spec"]["finalizers"] == ["kubernetes"]
    assert api.put(f"{SPACES}/work/finalize", {"metadata": {"name": "other"}}).status_code == 400


@pytest.mark.parametrize("metadata", [["a"], "a", 1, True], ids=str)
@pytest.mark.parametrize("part", ["", "/status", "/finalize"])
def test_metadata_of_a_replacement_is_a_mapping(api, part, metadata):
    refused = api.put(f"{SPACES}/default{part}", {"metadata": metadata})
    assert refused.status_code in (400, 422), refused.text
    assert "metadata" in refused.json()["message"]


def test_a_kept_namespace_is_not_deleted(api):
    refused = api.delete(f"{SPACES}/default")
    assert refused.status_code == 403
    assert refused.json()["message"] == 'namespaces "default" is forbidden: this namespace may not be deleted'
