"""A program that uses the official Python client: typed and dynamic, over Kubernetes' kinds and Volcano's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from kubernetes import client, dynamic, watch

from proof.traffic.sessions.objects import CORE, VOLCANO, job, node, object_, pod, queue
from proof.traffic.stage import Stage

CLIENT = "python"
PODS = "/api/v1/namespaces/default/pods"


def play(stage: Stage) -> None:
    """Do all of it."""
    stage.play("POST", "/api/v1/nodes", node("node-0"))
    stage.play("POST", "/api/v1/namespaces/default/serviceaccounts", object_(CORE, "ServiceAccount", "default"))
    with client.ApiClient(client.Configuration(host=stage.recorder.url)) as api:
        for part in (config_maps, others, pods, custom, dynamic_kinds, watches, reviews):
            with stage.doing(CLIENT, part.__name__):
                part(stage, api)


@contextlib.contextmanager
def tolerated() -> Iterator[None]:
    """Go on after a refusal, which is recorded as well."""
    with contextlib.suppress(client.ApiException, dynamic.exceptions.DynamicApiError):
        yield


def tried(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Call, and go on after a refusal."""
    with tolerated():
        call(*arguments, **options)


def config_maps(_stage: Stage, api: Any) -> None:
    """Create, read, patch in each way, replace and delete."""
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(
        "default", {"metadata": {"name": "a", "labels": {"of": "us"}}, "data": {"a": "1"}}
    )
    core.create_namespaced_config_map("default", {"metadata": {"generateName": "made-"}})
    tried(core.create_namespaced_config_map, "default", {"metadata": {"name": "a"}})
    core.read_namespaced_config_map("a", "default")
    tried(core.read_namespaced_config_map, "none", "default")
    core.list_namespaced_config_map("default", label_selector="of=us")
    core.list_namespaced_config_map("default", limit=1)
    core.list_config_map_for_all_namespaces(label_selector="of=us")
    core.patch_namespaced_config_map("a", "default", {"data": {"b": "2"}})
    core.patch_namespaced_config_map("a", "default", [{"op": "add", "path": "/data/c", "value": "3"}])
    core.patch_namespaced_config_map(
        "a", "default", {"data": {"b": None}}, _content_type="application/merge-patch+json"
    )
    core.patch_namespaced_config_map("a", "default", {"data": {"d": "4"}}, _content_type="application/strategic-merge-patch+json")  # fmt: skip
    core.patch_namespaced_config_map("b", "default", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"a": "1"}}, field_manager="robot", _content_type="application/apply-patch+yaml")  # fmt: skip
    core.patch_namespaced_config_map("a", "default", {"data": {"d": "5"}}, dry_run="All")
    tried(core.replace_namespaced_config_map, "a", "default", made)
    now = core.read_namespaced_config_map("a", "default")
    now.data = {"whole": "new"}
    core.replace_namespaced_config_map("a", "default", now)
    core.delete_namespaced_config_map("a", "default", body=client.V1DeleteOptions(propagation_policy="Background"))
    tried(core.delete_namespaced_config_map, "a", "default")
    core.delete_collection_namespaced_config_map("default", label_selector="of=us")


def others(_stage: Stage, api: Any) -> None:
    """Use one object of each other kind that programs make."""
    core, batch = client.CoreV1Api(api), client.BatchV1Api(api)
    core.list_namespace()
    core.create_namespace({"metadata": {"name": "team"}})
    tried(core.create_namespaced_secret, "default", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    core.read_namespaced_secret("s", "default")
    core.create_namespaced_service("default", {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}], "clusterIP": "None"}})  # fmt: skip
    core.patch_namespaced_service("s", "default", {"spec": {"selector": {"a": "c"}}})
    core.create_namespaced_persistent_volume_claim("default", {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})  # fmt: skip
    batch.create_namespaced_job("default", {"metadata": {"name": "j"}, "spec": {"backoffLimit": 2, "template": {"spec": {**pod("j")["spec"], "restartPolicy": "Never"}}}})  # fmt: skip
    batch.read_namespaced_job_status("j", "default")
    batch.delete_namespaced_job("j", "default", propagation_policy="Background")
    leases = client.CoordinationV1Api(api)
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-11-27T12:00:00.000001Z", "renewTime": "2026-11-27T12:00:00.000001Z"}}  # fmt: skip
    made = leases.create_namespaced_lease("default", lease)
    made.spec.holder_identity = "you"
    leases.replace_namespaced_lease("l", "default", made)
    tried(leases.replace_namespaced_lease, "l", "default", made)
    core.create_namespaced_event("default", {"metadata": {"name": "e"}, "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a"}, "reason": "Seen", "message": "It was seen.", "type": "Normal"})  # fmt: skip
    core.list_namespaced_event("default", field_selector="involvedObject.name=a")
    client.EventsV1Api(api).list_namespaced_event("default", _preload_content=False)  # it refuses eventTime: null
    client.SchedulingV1Api(api).create_priority_class({"metadata": {"name": "urgent"}, "value": 10})
    client.PolicyV1Api(api).create_namespaced_pod_disruption_budget("default", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}})  # fmt: skip
    client.VersionApi(api).get_code()
    client.ApisApi(api).get_api_versions()
    core.get_api_resources()
    core.list_node()
    core.patch_node("node-0", {"metadata": {"labels": {"disk": "ssd"}}})
    core.patch_node_status("node-0", {"status": {"conditions": [{"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": "2026-11-27T12:00:00Z", "lastTransitionTime": "2026-11-27T12:00:00Z"}]}})  # fmt: skip


def pods(stage: Stage, api: Any) -> None:
    """Make pods, see them start, evict and delete them."""
    core = client.CoreV1Api(api)
    core.create_namespaced_pod("default", pod("p"))
    tried(core.read_namespaced_pod_log, "p", "default")
    stage.start_pod(f"{PODS}/p", "node-0")
    core.read_namespaced_pod_status("p", "default")
    core.list_namespaced_pod("default", field_selector="status.phase=Running")
    core.list_pod_for_all_namespaces(field_selector="spec.nodeName=node-0")
    tried(core.patch_namespaced_pod, "p", "default", {"spec": {"hostname": "other"}})
    core.patch_namespaced_pod("p", "default", {"metadata": {"annotations": {"a": "b"}}})
    tried(core.create_namespaced_pod_eviction, "p", "default", {"metadata": {"name": "p"}})
    core.create_namespaced_pod("default", pod("q"))
    core.create_namespaced_binding("default", {"metadata": {"name": "q"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"}}, _preload_content=False)  # fmt: skip
    core.delete_namespaced_pod("q", "default", grace_period_seconds=0)
    core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
    tried(core.delete_namespaced_pod, "p", "default", grace_period_seconds=0)


def custom(_stage: Stage, api: Any) -> None:
    """Use Volcano's kinds as custom objects, as most programs do."""
    objects = client.CustomObjectsApi(api)
    group, version = VOLCANO.split("/")
    at = {"group": group, "version": version, "namespace": "default", "plural": "jobs"}
    objects.create_namespaced_custom_object(**at, body=job("train"))
    tried(objects.create_namespaced_custom_object, **at, body=job("wrong", minAvailable=9))
    objects.get_namespaced_custom_object(**at, name="train")
    objects.list_namespaced_custom_object(**at)
    objects.list_cluster_custom_object(group, version, "jobs", label_selector="a=b")
    tried(objects.patch_namespaced_custom_object, **at, name="train", body={"metadata": {"labels": {"a": "b"}}})
    tried(objects.patch_namespaced_custom_object, **at, name="train", body=[{"op": "replace", "path": "/spec/minAvailable", "value": 2}])  # fmt: skip
    tried(objects.patch_namespaced_custom_object_status, **at, name="train", body={"status": {"running": 1}})
    now = objects.get_namespaced_custom_object(**at, name="train")
    now["metadata"]["annotations"] = {"note": "first"}
    objects.replace_namespaced_custom_object(**at, name="train", body=now)
    objects.create_namespaced_custom_object("bus.volcano.sh", "v1alpha1", "default", "commands", {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "train-"}, "action": "AbortJob", "target": {"apiVersion": VOLCANO, "kind": "Job", "name": "train", "uid": now["metadata"]["uid"]}})  # fmt: skip
    objects.delete_namespaced_custom_object(**at, name="train", body={"propagationPolicy": "Background"})
    objects.create_cluster_custom_object("scheduling.volcano.sh", "v1beta1", "queues", queue("research"))
    objects.list_cluster_custom_object("scheduling.volcano.sh", "v1beta1", "queues")
    tried(objects.delete_cluster_custom_object, "scheduling.volcano.sh", "v1beta1", "queues", "research")
    objects.get_api_resources(group, version)


def dynamic_kinds(_stage: Stage, api: Any) -> None:
    """Use the dynamic client, which asks what is served."""
    found = dynamic.DynamicClient(api)
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(object_(CORE, "ConfigMap", "d", data={"a": "1"}), namespace="default")
    maps.get(name="d", namespace="default")
    maps.patch(object_(CORE, "ConfigMap", "d", data={"b": "1"}), namespace="default", content_type="application/merge-patch+json")  # fmt: skip
    maps.server_side_apply(object_(CORE, "ConfigMap", "d", data={"c": "1"}), namespace="default", field_manager="robot")
    maps.delete(name="d", namespace="default")
    jobs = found.resources.get(api_version=VOLCANO, kind="Job")
    jobs.create(job("dynamic"), namespace="default")
    tried(jobs.server_side_apply, {**job("dynamic"), "metadata": {"name": "dynamic", "labels": {"a": "b"}}, "spec": {"maxRetry": 9}}, namespace="default", field_manager="robot")  # fmt: skip
    jobs.delete(name="dynamic", namespace="default")


def watches(stage: Stage, api: Any) -> None:
    """Watch from what a list has said, and from nothing."""
    core = client.CoreV1Api(api)
    maps = "/api/v1/namespaces/default/configmaps"
    now = core.list_namespaced_config_map("default").metadata.resource_version
    stage.play("POST", maps, object_(CORE, "ConfigMap", "w", data={"a": "1"}))
    stage.play("PATCH", f"{maps}/w", {"data": {"a": "2"}}, "application/merge-patch+json")
    stage.play("DELETE", f"{maps}/w")
    seen = watch.Watch()
    for number, _ in enumerate(seen.stream(core.list_namespaced_config_map, "default", resource_version=now, timeout_seconds=20)):  # fmt: skip
        if number == 2:
            seen.stop()
    stage.play("POST", maps, object_(CORE, "ConfigMap", "w"))
    selecting = watch.Watch()
    for event in selecting.stream(core.list_namespaced_config_map, "default", field_selector="metadata.name=w", timeout_seconds=20):  # fmt: skip
        if event["type"] == "ADDED":
            stage.play("DELETE", f"{maps}/w")
        else:
            selecting.stop()
    jobs = client.CustomObjectsApi(api).list_namespaced_custom_object
    stage.play("POST", f"/apis/{VOLCANO}/namespaces/default/jobs", job("seen"))
    for _ in (of_jobs := watch.Watch()).stream(jobs, *VOLCANO.split("/"), "default", "jobs", timeout_seconds=20):
        of_jobs.stop()


def reviews(_stage: Stage, api: Any) -> None:
    """Ask what one may do, and for a token."""
    wanted = {"spec": {"resourceAttributes": {"verb": "create", "group": "batch.volcano.sh", "resource": "jobs", "namespace": "default"}}}  # fmt: skip
    client.AuthorizationV1Api(api).create_self_subject_access_review(wanted)
    client.AuthenticationV1Api(api).create_self_subject_review({})
    client.CoreV1Api(api).create_namespaced_service_account_token("default", "default", {"spec": {"expirationSeconds": 3600, "audiences": []}})  # fmt: skip
