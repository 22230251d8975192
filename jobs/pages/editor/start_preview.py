"""Whether a job could start on the cluster as it is: its pods and pod group are made as the controller makes them, and rehearsed."""

from __future__ import annotations

import msgspec

from cluster import clock
from cluster.store import store
from jobs.controller import facts
from jobs.controller.pod_group import pod_group
from jobs.controller.pods import Blueprint
from jobs.pages.job import effective
from jobs.rules import remedies
from kube import lenient
from kube.meta import Object
from scheduler import rehearsal
from scheduler.engine.cause import Reason

MAX_PODS = 300  # rehearsed while somebody types; a larger gang's total request is still checked as a whole
NAME = "rehearsed"
OF_QUEUES = (Reason.QUEUE_TOO_SMALL, Reason.PARENT_TOO_SMALL, Reason.NODE_GROUP)


def warnings(job: Object) -> list[str]:
    """Return why a job that would be accepted could not start even on empty nodes, as `path: sentence`."""
    namespace = lenient.text(job, "metadata", "namespace")
    whole = {**job, "metadata": {"name": NAME, **job["metadata"], "uid": NAME}, "status": {}}
    fact = facts.read_job(msgspec.json.encode(whole))
    with store.reading() as head, rehearsal.current(head) as world:
        priorities, ranges = effective.priority_classes(), effective.ranges(namespace)
        pods: list[Object] = []  # if too many, the first of each task
        for index, task in enumerate(fact.tasks):
            blueprint = Blueprint(fact, whole, index, priorities, (), ranges)
            pods += map(blueprint.pod, range(min(task.replicas, max(MAX_PODS // len(fact.tasks), 1))))
        del pods[MAX_PODS:]
        for pod in pods:
            pod["metadata"]["uid"] = pod["metadata"]["name"]
        group = pod_group(fact, whole, priorities)
        group["status"] = {"phase": "Pending"}
        if fact.min_available > len(pods):
            group["spec"]["minMember"] = len(pods)
            group["spec"].pop("minTaskMember")
        verdict = world.rehearse(group, pods, clock.milliseconds())
    if verdict is None:
        return []
    path = "spec.queue" if verdict.reason in OF_QUEUES else "spec.tasks"
    return [f"{path}: {verdict.sentence} {remedies.REASONS[verdict.reason].remedy}"]
