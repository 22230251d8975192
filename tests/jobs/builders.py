"""Jobs for tests, and a cluster that admission may ask."""

from __future__ import annotations

import copy

from jobs.rules import admission
from kube.resources import HYPER_NODES


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
        return [
            {"metadata": {"name": child}, **queue}
            for child, queue in self.queues.items()
            if queue.get("spec", {}).get("parent") == name
        ]

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


def container(name="main", **fields):
    return {"name": name, "image": "img", "command": ["true"], **fields}


def task(name="main", replicas=1, pod=None, **fields):
    spec = {"restartPolicy": "Never", "containers": [container()], **(pod or {})}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **fields}


def job(*tasks, name="demo", **spec):
    """A job as a person writes it."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": list(tasks) or [task()], **spec},
    }


def defaulted(obj, cluster=CLUSTER):
    """The job with its defaults, as a new one."""
    result = copy.deepcopy(obj)
    admission.default(result, None, cluster)
    return result


def refusals(obj, cluster=CLUSTER, old=None):
    """What is wrong with the job: field → message."""
    result = copy.deepcopy(obj)
    admission.default(result, old, cluster)
    return {cause.field: cause.message for cause in admission.validate(result, old, cluster)}
