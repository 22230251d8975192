"""What is particular to a kind, as kubectl, vcctl and client libraries use it: defaults, refusals, warnings and parts."""

from __future__ import annotations

import pytest

from cluster.controllers import namespaces
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, store
from kube.resources import CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, NAMESPACES
from tests import builders
from tests.builders import container, of
from tests.cluster.rules.known import indexed, job, pod
from tests.jobs.made import runner, settle, spec
from tests.tables import cases

DEFAULT = "namespaces/default"
JOBS = f"/apis/batch/v1/{DEFAULT}/jobs"
PODS = f"/api/v1/{DEFAULT}/pods"
SPACES = "/api/v1/namespaces"
FLOWS, TEMPLATES = (f"/apis/flow.volcano.sh/v1alpha1/{DEFAULT}/{each}" for each in ("jobflows", "jobtemplates"))
VOLCANO, CRONS = (f"/apis/batch.volcano.sh/v1alpha1/{DEFAULT}/{each}" for each in ("jobs", "cronjobs"))


def fields(answer):
    assert answer.status_code == 422, answer.text
    return [cause["field"] for cause in answer.json()["details"]["causes"]]


def test_a_job_gets_its_selector_from_its_uid_and_keeps_what_is_fixed(api):
    shown = api.post(f"{JOBS}?dryRun=All", job()).json()
    assert shown["spec"]["selector"]["matchLabels"]
    assert api.get(f"{JOBS}/pi").status_code == 404
    created = api.post(JOBS, job())
    assert "no controller of this cluster runs them yet" in created.headers["warning"]
    stored = created.json()
    uid = stored["metadata"]["uid"]
    assert stored["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    assert stored["spec"]["template"]["metadata"]["labels"]["controller-uid"] == uid
    assert (stored["metadata"]["generation"], stored["status"]) == (1, {})
    assert len(api.get(f"{JOBS}?fieldSelector=status.successful=0").json()["items"]) == 1
    assert api.get(f"{JOBS}?fieldSelector=status.successful!=0").json()["items"] == []
    patched = api.patch(f"{JOBS}/pi", {"spec": {"parallelism": 3}}).json()
    assert (patched["spec"]["parallelism"], patched["metadata"]["generation"]) == (3, 2)
    assert fields(api.patch(f"{JOBS}/pi", {"spec": {"completions": 3}})) == ["spec.completions"]
    begun = {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1, "failed": 1}}
    assert api.patch(f"{JOBS}/pi/status", begun).status_code == 200
    refused = api.patch(f"{JOBS}/pi/status", {"status": {"failed": 0}})
    assert "cannot decrease the failed counter" in refused.json()["message"]
    stored = api.post(JOBS, {**job(), "metadata": {"generateName": "pi-"}}).json()
    assert stored["spec"]["template"]["metadata"]["labels"]["job-name"] == stored["metadata"]["name"]
    assert fields(api.post(JOBS, indexed(parallelism=-1, completions=None))) == ["spec.parallelism", "spec.completions"]


def test_deleting_a_job_without_a_policy_leaves_its_pods_and_warns(api):
    for policy in ("Background", "Foreground", "Orphan"):
        api.post(JOBS, job())
        deleted = api.delete(f"{JOBS}/pi?propagationPolicy={policy}")
        assert (deleted.status_code, "warning" in deleted.headers) == (200, False)
    api.post(JOBS, {**job(), "metadata": {"name": "other"}})
    deleted = api.delete(f"{JOBS}/other")
    assert deleted.json()["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in deleted.headers["warning"]


def test_a_pod_comes_back_with_its_defaults_or_is_forbidden_in_kubernetes_words(api):
    stored = api.post(PODS, pod()).json()
    assert (stored["status"]["phase"], stored["spec"]["serviceAccountName"]) == ("Pending", "default")
    (found,) = api.get(f"{PODS}?fieldSelector=status.phase=Pending").json()["items"]
    assert found["metadata"]["name"] == "p"
    refused = api.post(PODS, pod(priorityClassName="none")).json()
    assert (refused["code"], refused["reason"]) == (403, "Forbidden")
    assert refused["message"] == 'pods "p" is forbidden: no PriorityClass with name none was found'


def test_a_namespace_goes_with_its_content_and_some_stay(api):
    assert api.post(SPACES, {"metadata": {"name": "work"}}).json()["status"]["phase"] == "Active"
    api.post(f"{SPACES}/work/configmaps", {"metadata": {"name": "a"}})
    assert api.delete(f"{SPACES}/work").json()["status"]["phase"] == "Terminating"
    refused = api.post(f"{SPACES}/work/configmaps", {"metadata": {"name": "b"}})
    assert refused.status_code == 403
    assert refused.json()["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    controller = Runner(registry.get("namespaces"), 0, namespaces.NamespaceController())
    while controller.step():
        pass
    assert api.get(f"{SPACES}/work").status_code == 404
    refused = api.delete(f"{SPACES}/default").json()
    assert refused["message"] == 'namespaces "default" is forbidden: this namespace may not be deleted'


def test_a_namespace_is_finalized(api):
    held = {"metadata": {"name": "work"}, "spec": {"finalizers": ["example.com/mine"]}}
    stored = api.post(SPACES, held).json()
    assert stored["spec"]["finalizers"] == ["example.com/mine", "kubernetes"]
    finalized = api.put(f"{SPACES}/work/finalize", {**stored, "spec": {"finalizers": ["kubernetes"]}})
    assert (finalized.status_code, finalized.json()["spec"]["finalizers"]) == (200, ["kubernetes"])
    assert api.put(f"{SPACES}/work/finalize", {"metadata": {"name": "other"}}).status_code == 400


@pytest.mark.parametrize("metadata", [["a"], "a", 1, True], ids=str)
@pytest.mark.parametrize("part", ["", "/status", "/finalize"])
def test_metadata_of_a_replacement_is_a_mapping(api, part, metadata):
    refused = api.put(f"{SPACES}/default{part}", {"metadata": metadata})
    assert refused.status_code in (400, 422), refused.text
    assert "metadata" in refused.json()["message"]


def test_pods_beyond_the_quota_and_out_of_bounds_are_forbidden(api):
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    assert api.post(f"/api/v1/{DEFAULT}/resourcequotas", quota).status_code == 201
    limits = [{"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]
    bounds = {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    assert api.post(f"/api/v1/{DEFAULT}/limitranges", bounds).status_code == 201
    answer = api.post(PODS, builders.pod("p", container(limits={"cpu": "2"})))
    assert (answer.status_code, answer.json()["details"]["kind"]) == (403, "pods")
    assert answer.json()["message"].endswith("maximum cpu usage per Container is 1, but limit is 2")
    made = api.post(PODS, builders.pod("p")).json()
    assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
    answer = api.post(PODS, builders.pod("q")).json()
    said = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    assert (answer["code"], answer["message"]) == (403, f'pods "q" is forbidden: {said}')


def flow(*names, **more):
    return of(JOB_FLOWS, "f", flows=[{"name": name} for name in names], **more)


def template(**more):
    return of(JOB_TEMPLATES, "a", **spec(**more))


def cron(**more):
    return of(CRON_JOBS, "c", **{"schedule": "0 2 * * *", "jobTemplate": {"spec": spec()}, **more})


def test_vcctl_creates_lists_describes_and_deletes_flows_and_templates(api):
    """`vcctl jobflow create -f`, `list --all-namespaces`, `get`, `describe`, `delete` (reference: §5.5)."""
    assert api.post(TEMPLATES, template()).json()["spec"] == spec()
    created = api.post(FLOWS, flow("a"))
    assert (created.status_code, created.json()["spec"]["jobRetainPolicy"]) == (201, "retain")
    settle(runner("jobflows"))
    (found,) = api.get("/apis/flow.volcano.sh/v1alpha1/jobflows").json()["items"]
    assert (found["metadata"]["name"], found["status"]["state"]["phase"]) == ("f", "Pending")
    assert found["status"]["pendingJobs"] == ["f-a"]
    assert api.get(f"{VOLCANO}/f-a").json()["metadata"]["ownerReferences"][0]["kind"] == "JobFlow"
    for path in (f"{FLOWS}/f", f"{TEMPLATES}/a"):
        assert api.delete(path).status_code == 200
        assert api.get(path).status_code == 404


@cases("path, obj, columns, wrong", {
    "flows": (FLOWS, flow, ["Name", "Status", "Age"], {"jobRetainPolicy": "keep"}),
    "templates": (TEMPLATES, template, ["Name", "Age"], {"minAvailable": 9}),
    "cron jobs": (CRONS, cron, ["Name", "Age"], {"schedule": "at noon"}),
})  # fmt: skip
def test_kubectl_prints_the_columns_of_the_crd_and_is_told_what_is_wrong(api, path, obj, columns, wrong):
    assert fields(api.post(path, obj(**wrong))) == [f"spec.{name}" for name in wrong]
    unknown = api.post(f"{path}?fieldValidation=Strict", obj(colour=1))
    assert (unknown.status_code, 'unknown field "spec.colour"' in unknown.json()["message"]) == (400, True)
    api.post(path, obj())
    table = api.get(path, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    assert [column["name"] for column in table["columnDefinitions"]] == columns


def test_a_submitter_has_what_he_made_and_its_status_is_written_by_controllers(api, person):
    sam, tom = (api.as_(person(name, default="submitter")) for name in ("sam", "tom"))
    sam.post(CRONS, {**cron(), "status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}})
    assert "status" not in sam.get(f"{CRONS}/c").json()
    assert tom.patch(f"{CRONS}/c", {"spec": {"suspend": True}}).status_code == 403
    suspended = sam.patch(f"{CRONS}/c", {"spec": {"suspend": True}}).json()
    assert (suspended["spec"]["suspend"], suspended["metadata"]["generation"]) == (True, 2)


def test_what_the_scheduler_cannot_use_is_refused_and_what_has_no_effect_is_a_warning(api):
    store.write(Create(NAMESPACES, builders.namespace("volcano-system")))
    maps, name = "/api/v1/namespaces/volcano-system/configmaps", "volcano-scheduler-configmap"

    def configured(text):
        return builders.config_map(name, "volcano-system", **{"volcano-scheduler.conf": text})

    answer = api.post(maps, configured("actions: alocate\ntiers: 5"))
    assert fields(answer) == ["data[volcano-scheduler.conf]"] * 2
    assert [cause["message"] for cause in answer.json()["details"]["causes"]] == [
        "Line 1: There is no action alocate. Did you mean allocate?",
        "Line 2: tiers is a list, not a number.",
    ]
    strange = 'actions: allocate, shuffle\ntiers: [{plugins: [{name: "gang\\r\\nSet-Cookie: a"}]}]'
    answer = api.post(maps, configured(strange))
    told = answer.headers.get_list("warning")
    assert any("shuffle moves no pod without the plugin rescheduling." in each for each in told)
    assert any("There is no plugin gang" in each for each in told)
    assert "set-cookie" not in answer.headers
    patch = {"data": {"volcano-scheduler.conf": "actions: alocate"}}
    assert api.patch(f"{maps}/{name}", patch).status_code == 422
    assert api.get(f"{maps}/{name}").json()["data"] == {"volcano-scheduler.conf": strange}


def test_a_program_that_this_machine_lacks_is_a_warning_until_it_is_installed(node, api, monkeypatch):
    monkeypatch.setattr("node.agent.readings.SYSTEM_FOLDERS", [])
    monkeypatch.setenv("PATH", str(node.out))
    node.begin()
    ray = [builders.task(name, 1, container(name)) for name in ("head", "worker")]

    def about_programs(name, query=""):
        """Return the warnings about what nodes lack; others tell what the plugin overwrites."""
        answer = api.post(f"{VOLCANO}{query}", builders.job(name, *ray, plugins={"ray": []}))
        assert answer.status_code == 201, answer.text
        return [each for each in answer.headers.get_list("warning") if "has no ray" in each]

    for query in ("?dryRun=All", ""):
        (warning,) = about_programs("a", query)
        assert "spec.plugins[ray]: node here has no ray, " in warning
        assert "install the Python package ray[default] there." in warning
    (node.out / "ray").touch(0o755)
    node.agent.machine.due = 0
    node.agent.machine.beat()
    assert about_programs("b") == []
