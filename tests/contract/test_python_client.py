"""Python clients, as people's programs use them: the official library, and at the end lightkube and kr8s."""

import contextlib
import subprocess
import sys
from itertools import islice

import lightkube
import pytest
from kubernetes import client, config, watch
from kubernetes.dynamic import DynamicClient
from kubernetes.stream import stream
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources import core_v1
from lightkube.types import PatchType

from proof.harness.waiting import HANG_S
from proof.systems.system import PROJECT
from tests import builders
from tests.tables import cases

pytestmark = pytest.mark.system


@pytest.fixture
def api(kubeconfig):
    """A client of the official library."""
    settings = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=settings)
    with client.ApiClient(settings) as made:
        yield made
        made.rest_client.pool_manager.clear()  # it leaves its connections open


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


def pod(name, script, **spec):
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def events(listing, *arguments, **options):
    """The events of a watch; ending the iteration closes it."""
    return contextlib.closing(watch.Watch().stream(listing, *arguments, timeout_seconds=int(HANG_S), **options))


def watched(core, name, until, **options):
    """Return the phases that a watch of one pod shows, up to one of them."""
    seen = []
    with events(core.list_namespaced_pod, "default", field_selector=f"metadata.name={name}", **options) as found:
        for event in found:
            seen.append(event["object"].status.phase)
            if seen[-1] in until:
                return seen
    raise AssertionError(f"{name} never was {until}, only {seen}")


def test_a_pod_runs_is_watched_and_its_log_followed(core, tmp_path):
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; for i in 1 2 3; do echo $i; done"
    counts = pod("counts", script)
    counts["spec"]["volumes"] = [{"name": "seen", "hostPath": {"path": str(tmp_path)}}]
    counts["spec"]["containers"][0]["volumeMounts"] = [{"name": "seen", "mountPath": str(tmp_path)}]
    made = core.create_namespaced_pod("default", counts)
    since = made.metadata.resource_version
    watched(core, "counts", {"Running"}, resource_version=since)
    (tmp_path / "go").touch()
    phases = watched(core, "counts", {"Succeeded"}, resource_version=since)
    assert list(dict.fromkeys(phases)) == ["Pending", "Running", "Succeeded"]
    lines = list(watch.Watch().stream(core.read_namespaced_pod_log, "counts", "default", follow=True))
    assert lines == ["1", "2", "3"]
    watched(core, "counts", {"Succeeded"})
    assert core.delete_namespaced_pod("counts", "default").metadata.name == "counts"


LISTS = [
    (client.CoreV1Api, "namespace"),
    (client.CoreV1Api, "node"),
    (client.CoreV1Api, "event_for_all_namespaces"),
    (client.CoreV1Api, "pod_for_all_namespaces"),
    (client.CoreV1Api, "service_account_for_all_namespaces"),
    (client.SchedulingV1Api, "priority_class"),
    (client.CoordinationV1Api, "lease_for_all_namespaces"),
    (client.BatchV1Api, "job_for_all_namespaces"),
    (client.PolicyV1Api, "pod_disruption_budget_for_all_namespaces"),
]


@pytest.mark.parametrize(("group", "name"), LISTS, ids=[name for _, name in LISTS])
def test_no_kind_lacks_a_field_that_the_library_requires(api, group, name):
    core = client.CoreV1Api(api)
    core.create_namespaced_pod("default", pod("listed", "true"))
    try:
        getattr(group(api), f"list_{name}")()  # raises ValueError for a field that is missing
    finally:
        core.delete_namespaced_pod("listed", "default", grace_period_seconds=0)


def test_a_watch_goes_on_from_where_another_ended(core):
    def create():
        return core.create_namespaced_config_map("default", {"metadata": {"name": "resumed"}, "data": {"n": "0"}})

    made = create()
    for number in (1, 2):
        core.patch_namespaced_config_map("resumed", "default", {"data": {"n": str(number)}})
    core.delete_namespaced_config_map("resumed", "default")
    create()
    since = {"field_selector": "metadata.name=resumed", "resource_version": made.metadata.resource_version}
    with events(core.list_namespaced_config_map, "default", **since) as found:
        seen = [(event["type"], event["object"].data["n"]) for event in islice(found, 4)]
    assert seen == [("MODIFIED", "1"), ("MODIFIED", "2"), ("DELETED", "2"), ("ADDED", "0")]
    core.delete_namespaced_config_map("resumed", "default")


@cases("call, status", {
    "missing": (lambda core: core.read_namespaced_pod("nope", "default"), 404),
    "no namespace": (lambda core: core.create_namespaced_pod("nope", pod("x", "true")), 404),
    "exists": (lambda core: core.create_namespace({"metadata": {"name": "default"}}), 409),
    "invalid": (lambda core: core.create_namespaced_pod("default", pod("UPPER", "true")), 422),
    "selector": (lambda core: core.list_namespaced_pod("default", label_selector="a in ("), 400),
    "future": (lambda core: core.list_namespaced_pod("default", resource_version="99999999"), 504),
})  # fmt: skip
def test_errors_have_the_codes_that_programs_branch_on(core, call, status):
    with pytest.raises(client.ApiException) as caught:
        call(core)
    assert caught.value.status == status
    assert '"kind":"Status"' in caught.value.body


def test_a_volcano_job_runs_as_a_custom_object(api):
    objects = client.CustomObjectsApi(api)
    where = ("batch.volcano.sh", "v1alpha1", "default", "jobs")
    made = builders.job("by-program", builders.task("work", 2), minAvailable=2)
    objects.create_namespaced_custom_object(*where, made)
    with events(objects.list_namespaced_custom_object, *where, field_selector="metadata.name=by-program") as found:
        phases = (event["object"].get("status", {}).get("state", {}).get("phase") for event in found)
        assert "Completed" in phases
    dynamic = DynamicClient(api).resources.get(api_version="batch.volcano.sh/v1alpha1", kind="Job")
    assert dynamic.get(name="by-program", namespace="default").status.succeeded == 2
    objects.delete_namespaced_custom_object(*where, "by-program")


def test_a_command_runs_in_a_container(core):
    core.create_namespaced_pod("default", pod("patient", "sleep 60"))
    watched(core, "patient", {"Running"})
    script = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    options = {"stdout": True, "stderr": True, "stdin": False, "tty": False, "_preload_content": False}
    shell = stream(core.connect_get_namespaced_pod_exec, "patient", "default", command=script, **options)
    shell.run_forever(timeout=HANG_S)
    assert (shell.read_stdout(), shell.read_stderr()) == ("out\n", "err\n")
    assert shell.returncode == 3
    shell.sock.shutdown()  # close() leaves it open once the server has closed
    core.delete_namespaced_pod("patient", "default", grace_period_seconds=0)


@pytest.fixture
def with_lightkube(kubeconfig):
    settings = lightkube.KubeConfig.from_file(str(kubeconfig))
    with lightkube.Client(config=settings, field_manager="tests", namespace="default") as client:
        yield client


def test_kr8s_creates_patches_reads_watches_deletes_and_forwards(kubeconfig, web_pod):
    program = [sys.executable, "-m", "tests.contract.programs.with_kr8s", str(kubeconfig)]
    program += [web_pod.name, str(web_pod.port)]
    done = subprocess.run(program, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lightkube_applies_finds_conflicts_patches_watches_from_a_list_and_reads_volcanos_kinds(with_lightkube):
    client = with_lightkube

    def wanted(value):
        return core_v1.ConfigMap(metadata=ObjectMeta(name="by-lightkube"), data={"a": value})

    made = client.apply(wanted("1"))
    with pytest.raises(ApiError) as caught:
        client.apply(wanted("2"), field_manager="other")
    assert (caught.value.status.code, caught.value.status.reason) == (409, "Conflict")
    client.patch(core_v1.ConfigMap, "by-lightkube", {"data": {"b": "3"}}, patch_type=PatchType.MERGE)
    client.delete(core_v1.ConfigMap, "by-lightkube")
    since = {"fields": {"metadata.name": "by-lightkube"}, "resource_version": made.metadata.resourceVersion}
    seen = islice(client.watch(core_v1.ConfigMap, **since), 2)
    both = {"a": "1", "b": "3"}
    assert [(kind, obj.data) for kind, obj in seen] == [("MODIFIED", both), ("DELETED", both)]
    job = create_namespaced_resource("batch.volcano.sh", "v1alpha1", "Job", "jobs")
    assert isinstance(list(client.list(job)), list)
