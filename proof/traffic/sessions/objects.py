"""Objects as people write them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
CORE, VOLCANO, QUEUES = "v1", "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"


def object_(api_version: str, kind: str, name: str, **fields: Any) -> Object:
    """Return an object of a kind."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def labelled(obj: Object, **labels: str) -> Object:
    """Return the object with labels."""
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def pod_spec(**fields: Any) -> Object:
    """Return the spec of a pod with one container."""
    container = {
        "name": "main",
        "image": "busybox:1",
        "command": ["sleep", "60"],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {"containers": [container], **fields}


def pod(name: str, **fields: Any) -> Object:
    """Return a pod."""
    return labelled(object_(CORE, "Pod", name, spec=pod_spec(**fields)), app="web")


def job(name: str, **fields: Any) -> Object:
    """Return a Volcano Job of two tasks."""
    tasks = [
        {"name": name, "replicas": count, "template": {"spec": pod_spec(restartPolicy="OnFailure")}}
        for name, count in (("master", 1), ("worker", 2))
    ]
    return object_(VOLCANO, "Job", name, spec={"schedulerName": "volcano", "queue": "default", "minAvailable": 3, "tasks": tasks, **fields})  # fmt: skip


def queue(name: str, **fields: Any) -> Object:
    """Return a queue."""
    return object_(QUEUES, "Queue", name, spec={"weight": 2, "reclaimable": True, **fields})


def node(name: str) -> Object:
    """Return a node as a kubelet registers it."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": "2026-11-27T12:00:00Z", "lastTransitionTime": "2026-11-27T12:00:00Z"}], "nodeInfo": dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"), "a")}  # fmt: skip
    return {**labelled(object_(CORE, "Node", name), **{"kubernetes.io/hostname": name}), "status": status}
