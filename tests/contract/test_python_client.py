"""The official Python client, as people's programs use it."""

from __future__ import annotations

import contextlib
from itertools import islice

import pytest
from kubernetes import client, config, watch
from kubernetes.dynamic import DynamicClient
from kubernetes.stream import portforward, stream

from proof.harness.waiting import HANG_S
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
    asked = {"stdout": True, "stderr": True, "stdin": False, "tty": False, "_preload_content": False}
    shell = stream(core.connect_get_namespaced_pod_exec, "patient", "default", command=script, **asked)
    shell.run_forever(timeout=HANG_S)
    assert (shell.read_stdout(), shell.read_stderr()) == ("out\n", "err\n")
    assert shell.returncode == 3
    shell.sock.shutdown()  # close() leaves it open once the server has closed
    core.delete_namespaced_pod("patient", "default", grace_period_seconds=0)


def test_ports_are_forwarded(core, web_pod):
    ports = f"{web_pod.port},1"
    forwarded = portforward(core.connect_get_namespaced_pod_portforward, web_pod.name, "default", ports=ports)
    with contextlib.ExitStack() as stack:
        stack.callback(forwarded.close)
        stack.callback(forwarded.websocket.shutdown)  # which that leaves open
        connected = forwarded.socket(web_pod.port)
        connected.setblocking(True)
        connected.sendall(b"GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connected.recv(4096), b""))
    assert answer.endswith(b"from the pod")
    assert "connection refused" in forwarded.error(1)
