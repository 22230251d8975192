"""Flows and templates, as people write them and as the controller finds them, and their stories."""

from __future__ import annotations

import copy

from cluster.store import Create, Patch, store
from jobs.flows import admission
from kube.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.jobs import builders, made
from tests.jobs.made import PLACE, end, job_names, spec


class Cluster(builders.Cluster):
    """What admission sees: templates by name besides queues."""

    def __init__(self, *templates, **queues):
        super().__init__(**queues)
        self.templates = {each["metadata"]["name"]: each for each in templates}

    def get(self, resource, namespace, name):
        return self.templates.get(name)


CLUSTER = Cluster()


def template(name="a", *tasks, **fields):
    obj = {"metadata": {"name": name, "namespace": PLACE}, "spec": spec(*tasks, **fields)}
    admission.default_template(obj, None, CLUSTER)
    return obj


def step(name, *targets, probe=None, **fields):
    """A job of a flow; with a probe of (task, phase) pairs."""
    after = {"targets": list(targets)} if targets else {}
    if probe is not None:
        after["probe"] = {"taskStatusList": [{"taskName": task, "phase": phase} for task, phase in probe]}
    return {"name": name, **({"dependsOn": after} if after else {}), **fields}


def flow(*steps, name="f", **fields):
    obj = {"metadata": {"name": name, "namespace": PLACE}, "spec": {"flows": list(steps), **fields}}
    admission.default(obj, None, CLUSTER)
    return obj


def submit(obj, *templates):
    for each in templates:
        store.write(Create(JOB_TEMPLATES, template(each) if isinstance(each, str) else each))
    return store.write(Create(JOB_FLOWS, obj))[0]


def state():
    return store.get(JOB_FLOWS, PLACE, "f").object["status"]["state"]


def refusals(obj, cluster=CLUSTER, old=None):
    """What is wrong with the flow: field → message."""
    written = copy.deepcopy(obj)
    admission.default(written, old, cluster)
    return {cause.field: cause.message for cause in admission.validate(written, old, cluster)}


class Story(made.Story):
    """A flow and its jobs, each by the name of its template; what is no verb is a job that comes to a phase: `a Running`."""

    consumer, kind, name, prefix = "jobflows", JOB_FLOWS, "f", "f-"

    def begins(self):
        self.uids = {job.uid for job in store.find(JOBS)}

    def does(self, step):
        verb, *words = step.split()
        act = getattr(self, verb, None)
        act(*words) if act else end(f"f-{verb}", *words)

    def seen(self):
        return {
            "jobs": " ".join(name.removeprefix("f-") for name in job_names()),
            "anew": " ".join(job.name.removeprefix("f-") for job in store.find(JOBS) if job.uid not in self.uids),
            "state": f"{state()['phase']} {state()['reason']}",
        }

    def message(self):
        return state()["message"]

    def wait(self, seconds):
        self.clock.move(int(seconds))

    def template(self, name):
        store.write(Create(JOB_TEMPLATES, template(name)))

    def retain(self, policy):
        store.write(Patch(JOB_FLOWS, PLACE, "f", {"spec": {"jobRetainPolicy": policy}}))

    def serve(self, number):
        """So many of the two servers of the first job run."""
        phases = {"Running": int(number), "Pending": 2 - int(number)}
        end("f-a", "Running", taskStatusCount={"server": {"phase": phases}})
