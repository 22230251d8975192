"""Flows and templates, as people write them and as the controller finds them."""

from __future__ import annotations

import copy

from cluster.store import Create, store
from jobs.flows import admission
from kube.resources import JOB_FLOWS, JOB_TEMPLATES
from tests.jobs import builders
from tests.jobs.made import PLACE, spec


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


def status(name="f"):
    return store.get(JOB_FLOWS, PLACE, name).object.get("status") or {}


def state(name="f"):
    found = status(name)["state"]
    return found["phase"], found["reason"]


def refusals(obj, cluster=CLUSTER, old=None):
    """What is wrong with the flow: field → message."""
    written = copy.deepcopy(obj)
    admission.default(written, old, cluster)
    return {cause.field: cause.message for cause in admission.validate(written, old, cluster)}
