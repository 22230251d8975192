"""Flows and templates, as people write them and as the controller finds them."""

from __future__ import annotations

import copy

from jobs.flows import admission
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


def refusals(obj, cluster=CLUSTER, old=None):
    """What is wrong with the flow: field → message."""
    written = copy.deepcopy(obj)
    admission.default(written, old, cluster)
    return {cause.field: cause.message for cause in admission.validate(written, old, cluster)}
