"""The job controller run by hand against the real store, and jobs for it."""

from __future__ import annotations

from cluster.runtime import registry
from cluster.store import Create, Patch, store
from jobs.controller.job_controller import JobConsumer
from jobs.rules import admission
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS
from proof.modes.mode import Runner

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class Controller(Runner):
    """The job controller with its garbage collector, run by hand."""

    def __init__(self):
        super().__init__(registry.get("jobs"), 0, JobConsumer())

    def settle(self):
        while self.step():
            pass


def job(name="demo", **spec):
    tasks = spec.pop("tasks", None) or [task("main", spec.pop("replicas", 2))]
    obj = {"metadata": {"name": name, "namespace": "default"}, "spec": {"tasks": tasks, **spec}}
    admission.default(obj, None, None)
    return obj


def task(name, replicas, **fields):
    containers = [{"name": "main", "image": "img", "command": ["true"]}]
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": containers}}, **fields}


def submit(controller, obj):
    stored = store.write(Create(JOBS, obj))[0]
    controller.settle()
    return stored


def admit(controller):
    for group in store.find(POD_GROUPS):
        if not group.object.get("status", {}).get("phase"):
            store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"phase": "Inqueue"}}))
    controller.settle()


def become(controller, phase, *names, code=None):
    for name in names or [pod.name for pod in store.find(PODS)]:
        status = {"phase": phase}
        if code is not None:
            status["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": code}}}]
        store.write(Patch(PODS, "default", name, {"status": status}, "status"))
    controller.settle()


def state(name="demo"):
    return store.get(JOBS, "default", name).object["status"]


def pods():
    return [pod.name for pod in store.find(PODS)]


def messages():
    return [event.object["message"] for event in store.find(EVENTS, order="created")]
