"""The job controller run by hand against the real store, and what people, the scheduler and nodes do meanwhile."""

from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from jobs.consumers.job_controller import JobConsumer
from kube.resources import COMMANDS, CREATOR_ANNOTATION, EVENTS, JOBS, POD_GROUPS, PODS
from proof.modes.mode import Runner
from tests import builders
from tests.builders import task as task
from tests.jobs.builders import defaulted

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class Controller(Runner):
    """The job controller with its garbage collector, run by hand: it settles after what people, scheduler and nodes do."""

    def __init__(self):
        super().__init__(registry.get("jobs"), 0, JobConsumer())

    def settle(self):
        while self.step():
            pass

    # ---- people

    def submit(self, obj):
        stored = store.write(Create(JOBS, obj))[0]
        self.settle()
        return stored

    def start(self, *, bound=False, **spec):
        """Submit a job and bring it to Running."""
        stored = self.submit(job(**spec))
        self.run(bound=bound)
        return stored

    def resize(self, replicas, **fields):
        resize(replicas, **fields)
        self.settle()

    def issue(self, *actions, **fields):
        for action in actions:
            command(action, **fields)
        self.settle()

    # ---- the scheduler and nodes

    def run(self, *, bound=False):
        """Bring the job to Running; pods that are bound end only when their node says so."""
        self.admit()
        if bound:
            bind()
        self.become("Running")

    def admit(self):
        for group in store.find(POD_GROUPS):
            if not group.object.get("status", {}).get("phase"):
                store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"phase": "Inqueue"}}))
        self.settle()

    def become(self, phase, *names, **status):
        report(phase, *names, **status)
        self.settle()

    def sweep(self):
        """Let the pods that are being deleted go, until nothing changes."""
        while going := [each.name for each in store.find(PODS) if each.object["metadata"].get("deletionTimestamp")]:
            remove(*going)
            self.settle()


def submit(controller, obj):
    return controller.submit(obj)


def admit(controller):
    controller.admit()


def job(name="demo", *, tasks=(), replicas=2, **spec):
    return defaulted(builders.job(name, *(tasks or [builders.task("main", replicas)]), **spec), None)


def resize(replicas, **fields):
    """Change the replicas and other fields of the job's first task."""
    first, *others = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    tasks = [{**first, "replicas": replicas, **fields}, *others]
    numbers = {key: fields[key] for key in ("minAvailable",) if key in fields}
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": tasks, **numbers}}))


def command(action, name="demo", *, kind=JOBS, uid=None, by="alice", **metadata):
    """Store a Command; by default to who has the name now."""
    if uid is None:
        uid = store.get(kind, "default" if kind.namespaced else "", name).uid
    target = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid}
    notes = {CREATOR_ANNOTATION: by} if by else {}
    about = {"generateName": f"{name}-", "namespace": "default", "annotations": notes, **metadata}
    return store.write(Create(COMMANDS, {"metadata": about, "action": action, "target": target}))[0]


def group_is(phase, *conditions):
    (group,) = store.find(POD_GROUPS)
    status = {"phase": phase, "conditions": [*conditions]}
    store.write(Patch(POD_GROUPS, "default", group.name, {"status": status}, "status"))


def bind():
    for pod in store.find(PODS):
        if not pod.object["spec"].get("nodeName"):
            store.write(Patch(PODS, "default", pod.name, {"spec": {"nodeName": "n"}}, "binding"))


def report(phase, *names, code=None, **status):
    """Let a node say how pods are, all of them unless some are named."""
    if code is not None:
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": code}}}]
    for name in names or pods():
        store.write(Patch(PODS, "default", name, {"status": {"phase": phase, **status}}, "status"))


def remove(*names):
    store.write(*(Delete(PODS, "default", name, grace=0) for name in names))


def state(name="demo"):
    return store.get(JOBS, "default", name).object["status"]


def phase(name="demo"):
    return state(name)["state"]["phase"]


def pods():
    return [pod.name for pod in store.find(PODS)]


def uids():
    return {pod.name: pod.uid for pod in store.find(PODS)}


def messages(*reasons):
    """What events say, in the order in which they came; with reasons, those events alone."""
    found = [event.object for event in store.find(EVENTS, order="created")]
    return [each["message"] for each in found if not reasons or each["reason"] in reasons]
