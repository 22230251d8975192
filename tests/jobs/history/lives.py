"""Lives of jobs with the real job controller and the real recorder."""

from __future__ import annotations

from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, records, store
from jobs.history import record
from jobs.history.controller import HistoryConsumer
from kube.events import event
from kube.kinds.batch import Action
from kube.meta import now_text
from kube.resources import EVENTS, JOBS, PODS
from tests.jobs import control


class Recorder(Runner):
    """The consumer that keeps records, run by hand."""

    def __init__(self):
        super().__init__(registry.get("history"), 0, HistoryConsumer())

    def settle(self):
        while self.step():
            pass


class Life:
    """One job, what is done to it, and its record."""

    def __init__(self, clock, name="demo", **spec):
        self.clock = clock
        self.jobs = control.Controller()
        self.jobs.settle()
        self.recorder = Recorder()
        self.recorder.settle()
        self.job = self.jobs.submit(control.job(name, **spec))
        self.name = name

    def passes(self, seconds):
        self.clock.move(seconds)
        return self

    def admit(self):
        self.jobs.admit()
        return self

    def place(self, node="node-1"):
        for pod in store.find(PODS):
            if pod.object["spec"].get("nodeName"):
                continue
            told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self.now()}
            binding = {"spec": {"nodeName": node}, "status": {"conditions": [told]}}
            store.write(Patch(PODS, pod.namespace, pod.name, binding, "binding"))
        return self

    def now(self):
        return now_text(self.clock.microseconds() // 1000)

    def status(self, pod, phase, *, state, last=None, restarts=0):
        """Let a node say how a pod's only container does."""
        container = {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
        self.jobs.become(phase, pod, containerStatuses=[container])

    def run(self):
        for pod in store.find(PODS):
            self.status(pod.name, "Running", state={"running": {"startedAt": self.now()}})
        return self

    def end(self, pod, code, *, began):
        state = {"terminated": {"exitCode": code, "startedAt": began, "finishedAt": self.now()}}
        self.status(pod, "Failed" if code else "Succeeded", state=state)
        return self

    def ask(self, action):
        self.jobs.issue(action, name=self.name)
        return self

    def suspend(self):
        return self.ask(Action.ABORT_JOB).bury()

    def resume(self):
        return self.ask(Action.RESUME_JOB)

    def bury(self, code=None):
        """Let nodes end the pods that are to go; with a code they say first how their containers ended."""
        for pod in store.find(PODS):
            if pod.object["metadata"].get("deletionTimestamp"):
                if code is not None and pod.object["status"]["phase"] == "Running":
                    self.end(pod.name, code, began=self.now())
                store.write(Delete(PODS, pod.namespace, pod.name, grace=0))
        self.jobs.settle()
        return self

    def tell(self, reason, message):
        about = {**store.get(JOBS, "default", self.name).object, "apiVersion": JOBS.api_version, "kind": "Job"}
        now = self.clock.microseconds() // 1000
        store.write(Create(EVENTS, event(about, reason, message, now, component="test")))
        return self

    def delete(self):
        store.write(Delete(JOBS, "default", self.name))
        for pod in store.find(PODS, owner=self.job.uid):
            store.write(Delete(PODS, pod.namespace, pod.name, grace=0))
        return self

    def record(self):
        self.recorder.settle()
        return records.by_uid(JOBS, [self.job.uid]).get(self.job.uid)

    def history(self):
        return record.read(self.record().history)
