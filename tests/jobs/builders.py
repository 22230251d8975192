"""Jobs for tests, a cluster that admission may ask, and what the job controller remembers of stored objects."""

from __future__ import annotations

import copy

import msgspec

from jobs.controller import facts
from jobs.rules import admission
from kube.resources import HYPER_NODES
from tests import builders
from tests.builders import container as container

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
UID = "5a1f7f2e-0000-4000-8000-000000000001"
OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "demo", "uid": UID,
    "controller": True, "blockOwnerDeletion": True,
}  # fmt: skip


class Cluster:
    """What admission sees: queues by name, priority classes, HyperNodes, no claims, Secrets or ConfigMaps, no machines."""

    hyper_nodes = ()

    def __init__(self, **queues):
        self.queues = {"default": {}, "root": {}, **queues}

    def listed(self, resource, namespace):
        assert (resource, namespace) == (HYPER_NODES, "")
        return list(self.hyper_nodes)

    def queue(self, name):
        if name not in self.queues:
            return None
        return {"metadata": {"name": name}, "status": {"state": "Open"}, **self.queues[name]}

    def queue_children(self, name):
        of_name = {child: queue for child, queue in self.queues.items() if queue.get("spec", {}).get("parent") == name}
        return [{"metadata": {"name": child}, **queue} for child, queue in of_name.items()]

    def priority_class(self, name):
        return {"metadata": {"name": name}} if name == "master-pri" else None

    def get(self, resource, namespace, name):
        return None

    def claim(self, namespace, name):
        return None

    def machines(self):
        return []

    def runs_images(self):
        return False

    def needs_commands(self):
        return True


CLUSTER = Cluster()


def task(name="main", replicas=1, pod=None, **fields):
    return builders.task(name, replicas, pod=pod, **fields)


def job(*tasks, name="demo", **spec):
    """A job as a person writes it."""
    return builders.job(name, *tasks, **spec)


def defaulted(obj, cluster=CLUSTER, old=None):
    """The job with its defaults, as a new one or as a change of an old one."""
    result = copy.deepcopy(obj)
    admission.default(result, old, cluster)
    return result


def refusals(obj, cluster=CLUSTER, old=None):
    """What is wrong with the job: field → message."""
    return {cause.field: cause.message for cause in admission.validate(defaulted(obj, cluster, old), old, cluster)}


def warnings(obj, cluster=CLUSTER, old=None):
    """What is said of a job that is accepted: field → sentence."""
    said = admission.warn(defaulted(obj, cluster, old), old, cluster)
    return dict(text.split(": ", 1) for text in said)


def listed(said):
    """What is said, a line for each field."""
    return "\n".join(f"{path}: {text}" for path, text in said.items())


def job_fact(obj, *, phase=None, **status):
    """What the controller remembers of a job."""
    made = defaulted(obj)
    written = {"namespace": "default", "uid": UID, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    made["metadata"] |= written
    if phase is not None:
        made["status"] = {"state": {"phase": phase}, **status}
    return facts.read_job(msgspec.json.encode(made))


def pod_fact(task_name="main", index=0, phase="Running", *, version=0, marked=False, metadata=None, **status):
    """What the controller remembers of a pod of the job; `marked` is one that the controller itself ends."""
    notes = {facts.TASK_SPEC: task_name, facts.TASK_INDEX: str(index), facts.JOB_VERSION: str(version)}
    if marked:
        notes[facts.OUT_OF_SYNC] = "true"
    name = f"{task_name}-{index}"
    about = {"name": f"demo-{name}", "uid": name, "annotations": notes, "ownerReferences": [OWNER], **(metadata or {})}
    return facts.read_pod(msgspec.json.encode({"metadata": about, "status": {"phase": phase, **status}}))[1]


def group_fact(obj=None, phase="Running"):
    """What the controller remembers of the pod group of the job."""
    group = {"metadata": {"name": f"demo-{UID}"}, "spec": {}, **(obj or {}), "status": {"phase": phase}}
    return facts.read_group(msgspec.json.encode(group))


def terminated(*codes):
    """The statuses of containers that ended."""
    return [{"name": str(n), "state": {"terminated": {"exitCode": code}}} for n, code in enumerate(codes)]
