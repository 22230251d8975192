"""Jobs for tests, a cluster that admission may ask, and what the job controller remembers of stored objects."""

import copy
import functools

import msgspec
from hypothesis import strategies as st

from jobs.controller import facts
from jobs.rules import admission
from kube.resources import PRIORITY_CLASSES
from tests import builders
from tests.builders import container as container
from tests.cluster.rules.known import ClusterStub

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
UID = "5a1f7f2e-0000-4000-8000-000000000001"
OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "demo", "uid": UID,
    "controller": True, "blockOwnerDeletion": True,
}  # fmt: skip


class Cluster(ClusterStub):
    """What admission sees: two open queues, a priority class and these objects."""

    def __init__(self, *objects):
        master = builders.of(PRIORITY_CLASSES, "master-pri")
        super().__init__(builders.queue("default"), builders.queue("root"), master, *objects)

    def get(self, resource, namespace, name):
        return self.objects.get((resource.kind, namespace, name))

    def listed(self, resource, namespace):
        return self._all(resource.kind)

    def machines(self):
        return copy.deepcopy(self._all("Node"))


CLUSTER = Cluster()


def task(name="main", replicas=1, pod=None, **fields):
    return builders.task(name, replicas, pod=pod, **fields)


def job(*tasks, name="demo", **spec):
    return builders.job(name, *tasks, **spec)


def defaulted(obj, cluster=CLUSTER, old=None, rules=admission):
    """An object with its defaults, as a new one or as a change of an old one."""
    result = copy.deepcopy(obj)
    rules.default(result, old, cluster)
    return result


def refusals(obj, cluster=CLUSTER, old=None, rules=admission):
    made = defaulted(obj, cluster, old, rules)
    return {cause.field: cause.message for cause in rules.validate(made, old, cluster)}


def warnings(obj, cluster=CLUSTER, old=None):
    messages = admission.warn(defaulted(obj, cluster, old), old, cluster)
    return dict(text.split(": ", 1) for text in messages)


def listed(messages):
    return "\n".join(f"{path}: {text}" for path, text in messages.items())


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
    return [{"name": str(n), "state": {"terminated": {"exitCode": code}}} for n, code in enumerate(codes)]


def nested(values, keys, leaves=8):
    """Values by chance, and lists and mappings of them."""
    mappings = functools.partial(st.dictionaries, keys, max_size=3)
    return st.recursive(values, lambda inner: st.lists(inner, max_size=3) | mappings(inner), max_leaves=leaves)
