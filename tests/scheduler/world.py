"""Objects for the scheduler's tests, and a world in which its decisions come true."""

from __future__ import annotations

import json
from typing import Any

from cluster.store import Delete, strategy
from kube import resources, usage
from proof.harness.change import Change
from scheduler.cycle.cycle import schedule
from scheduler.snapshot.snapshot import Snapshot
from scheduler.writes import groups_of

START = 1_767_225_600_000  # 2026-01-01T00:00:00Z, when most objects are made: nobody has waited long


def node(name, cpu="4", memory="8Gi", pods=10, *, labels=None, taints=None, ready=True, unschedulable=False, **more):
    return resources.NODES, {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods), **more},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def queue(name="default", capability=None, parent="", state="Open", **spec):
    return resources.QUEUES, {
        "metadata": {"name": name},
        "spec": {"capability": capability or {}, "parent": parent, **spec},
        "status": {"state": state},
    }


def keeping(cpu):
    """Return the part of a queue's spec by which so much is kept for it."""
    return {"guarantee": {"resource": {"cpu": str(cpu)}}, "deserved": {"cpu": str(cpu)}}


def group(name="g", minimum=1, *, queue="default", phase="Inqueue", created="2026-01-01T00:00:00Z", **spec):
    return resources.POD_GROUPS, {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": created},
        "spec": {"minMember": minimum, "queue": queue, **spec},
        "status": {"phase": phase} if phase else {},
    }


def pod(name, group="g", cpu="1", *, phase="Pending", node="", role="", requests=None, scheduler="volcano", **spec):
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    if role:
        annotations["volcano.sh/task-spec"] = role
    wanted = {"cpu": cpu, **(requests or {})} if cpu else dict(requests or {})
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "annotations": annotations,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if labels := spec.pop("labels", None):
        metadata["labels"] = labels
    if (deleted := spec.pop("deleted", "")) != "":
        metadata["deletionTimestamp"] = deleted
    inner = {"schedulerName": scheduler, "containers": [{"name": "c", "resources": {"requests": wanted}}], **spec}
    if node:
        inner["nodeName"] = node
    return resources.PODS, {"metadata": metadata, "spec": inner, "status": {"phase": phase} if phase else {}}


OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "g", "uid": "u-job", "controller": True}


def made(name, *arguments, **spec):
    """A pod that its controller would make again."""
    kind, found = pod(name, *arguments, **spec)
    found["metadata"]["ownerReferences"] = [OWNER]
    return kind, found


def namespace(name="ns", **labels):
    return resources.NAMESPACES, {"metadata": {"name": name, "labels": labels}}


def priority_class(name, value, **more):
    return resources.PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **more}


def configuration(text, *, key="volcano-scheduler.conf"):
    """The ConfigMap by which the scheduler is configured."""
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    return resources.CONFIGMAPS, {"metadata": metadata, "data": {key: text}}


class World:
    """Objects, a snapshot that follows them, and a clock. Writes are done by the store's own rules."""

    def __init__(self, *objects, schedulers=usage.VOLCANO_ALONE, heeds_claims=False) -> None:
        self.now = START
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.snapshot = Snapshot(schedulers, heeds_claims=heeds_claims)
        self.events: list[dict[str, Any]] = []
        self.writes = 0
        self.put(*objects)

    def put(self, *objects) -> World:
        for resource, obj in objects:
            metadata = obj["metadata"]
            key = (resource.id, metadata.get("namespace", ""), metadata["name"])
            verb = "MODIFIED" if key in self.objects else "ADDED"
            self.objects[key] = obj
            self.snapshot.apply(self._change(key, verb, obj))
        return self

    def remove(self, resource, name, namespace="ns") -> None:
        key = (resource.id, namespace if resource.namespaced else "", name)
        self.snapshot.apply(self._change(key, "DELETED", self.objects.pop(key)))

    def cycle(self, seconds=0):
        """Schedule once and do what was decided; return the decisions."""
        self.now += int(seconds * 1000)
        decisions = schedule(self.snapshot, self.now)
        self.snapshot.settled(decisions.said)
        for some in groups_of(decisions, self.now):
            for write in some.writes:
                self.writes += 1
                self._do(write)
        return decisions

    def end(self, name):
        """Ask a pod to end; one on a node stays until `gone`."""
        obj = json.loads(json.dumps(self.get(resources.PODS, name)))
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
        self.put((resources.PODS, obj))

    def going(self):
        """Return the names of pods that were asked to end."""
        return sorted(key[2] for key, obj in self.objects.items() if "deletionTimestamp" in obj["metadata"])

    def gone(self, *names):
        """Let pods end that were asked to; without names all of them."""
        for name in names or self.going():
            self.remove(resources.PODS, name)

    def get(self, resource, name):
        return self.objects[resource.id, "ns" if resource.namespaced else "", name]

    def status(self, name="g"):
        return self.get(resources.POD_GROUPS, name).get("status", {})

    def condition(self, name="g", kind="Unschedulable"):
        return next((c for c in self.status(name).get("conditions", ()) if c["type"] == kind), None)

    def where(self):
        """Return the node of each bound pod."""
        return {
            key[2]: obj["spec"]["nodeName"]
            for key, obj in self.objects.items()
            if key[0] == "pods" and isinstance(obj.get("spec"), dict) and obj["spec"].get("nodeName")
        }

    def rebuilt(self) -> Snapshot:
        fresh = Snapshot()
        for key, obj in reversed(self.objects.items()):
            fresh.apply(self._change(key, "ADDED", obj))
        return fresh

    def _do(self, write) -> None:
        resource = write.resource
        if isinstance(write, Delete):
            self.end(write.name)
            return
        if not hasattr(write, "patch"):
            if resource is resources.EVENTS:
                self.events.append(write.object)
            else:
                made = dict(write.object)
                made["metadata"] = {**made["metadata"], "uid": f"uid-{made['metadata']['name']}"}
                self.put((resource, made))
            return
        old = self.objects[resource.id, write.namespace, write.name]
        old["metadata"].setdefault("resourceVersion", "1")
        self.put((resource, strategy.patched(write, old, self.now)))

    def _change(self, key, verb, obj):
        return Change(*key, verb, self.now, json.dumps(obj).encode())
