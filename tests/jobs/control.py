"""The job controller run by hand against the real store, and what people, the scheduler and nodes do meanwhile."""

from __future__ import annotations

from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from jobs.controller.job_controller import JobConsumer
from kube.resources import COMMANDS, CREATOR_ANNOTATION, EVENTS, JOBS, POD_GROUPS, PODS
from proof.modes.mode import Runner
from tests import builders
from tests.jobs.builders import defaulted

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class Controller(Runner):
    """The job controller with its garbage collector, run by hand."""

    def __init__(self):
        super().__init__(registry.get("jobs"), 0, JobConsumer())

    def settle(self):
        while self.step():
            pass


def task(name, replicas, **fields):
    return builders.task(name, replicas, **fields)


def job(name="demo", *, tasks=(), replicas=2, **spec):
    """A job with its defaults."""
    return defaulted(builders.job(name, *(tasks or [task("main", replicas)]), **spec), None)


# ---- people


def submit(controller, obj):
    stored = store.write(Create(JOBS, obj))[0]
    controller.settle()
    return stored


def change(controller, **spec):
    """Change fields of the job."""
    store.write(Patch(JOBS, "default", "demo", {"spec": spec}))
    controller.settle()


def resize(replicas, **fields):
    """Change the replicas and other fields of the job's first task."""
    first, *others = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    tasks = [{**first, "replicas": replicas, **fields}, *others]
    numbers = {key: fields[key] for key in ("minAvailable",) if key in fields}
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": tasks, **numbers}}))


def command(action, name="demo", *, uid=None, by="", **metadata):
    """Store a Command; by default to the job that has the name now."""
    if uid is None:
        uid = store.get(JOBS, "default", name).uid
    target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": uid}
    notes = {CREATOR_ANNOTATION: by} if by else {}
    about = {"generateName": f"{name}-", "namespace": "default", "annotations": notes, **metadata}
    return store.write(Create(COMMANDS, {"metadata": about, "action": action, "target": target}))[0]


# ---- the scheduler and nodes


def admit(controller):
    for group in store.find(POD_GROUPS):
        if not group.object.get("status", {}).get("phase"):
            store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"phase": "Inqueue"}}))
    controller.settle()


def group_is(controller, phase, *conditions):
    (group,) = store.find(POD_GROUPS)
    status = {"phase": phase, "conditions": list(conditions)}
    store.write(Patch(POD_GROUPS, "default", group.name, {"status": status}, "status"))
    controller.settle()


def bind():
    """Give every pod a node."""
    for pod in store.find(PODS):
        if not pod.object["spec"].get("nodeName"):
            store.write(Patch(PODS, "default", pod.name, {"spec": {"nodeName": "n"}}, "binding"))


def report(phase, *names, code=None, **status):
    """Let a node say how pods are, all of them unless some are named."""
    if code is not None:
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": code}}}]
    for name in names or pods():
        store.write(Patch(PODS, "default", name, {"status": {"phase": phase, **status}}, "status"))


def become(controller, phase, *names, **status):
    report(phase, *names, **status)
    controller.settle()


def run(controller, *, bound=False):
    """Bring the job to Running; pods that are bound end only when their node says so."""
    admit(controller)
    if bound:
        bind()
    become(controller, "Running")


def start(controller, *, bound=False, **spec):
    stored = submit(controller, job(**spec))
    run(controller, bound=bound)
    return stored


def remove(*names):
    """Have pods gone at once."""
    store.write(*(Delete(PODS, "default", name, grace=0) for name in names))


def sweep(controller):
    """Let the pods that are being deleted go, until nothing changes."""
    while going := [each.name for each in store.find(PODS) if each.object["metadata"].get("deletionTimestamp")]:
        remove(*going)
        controller.settle()


# ---- what became of it


def state(name="demo"):
    return store.get(JOBS, "default", name).object["status"]


def phase(name="demo"):
    return state(name)["state"]["phase"]


def pods():
    return [pod.name for pod in store.find(PODS)]


def uids():
    return {pod.name: pod.uid for pod in store.find(PODS)}


def is_being_deleted(name="demo"):
    return "deletionTimestamp" in store.get(JOBS, "default", name).object["metadata"]


def messages(*reasons):
    """What events say, in the order in which they came; with reasons, those events alone."""
    found = [event.object for event in store.find(EVENTS, order="created")]
    return [each["message"] for each in found if not reasons or each["reason"] in reasons]
