"""The pod group of a job: what must be placed together (reference: volcano-job §4.4, §4.5)."""

from __future__ import annotations

from typing import Any

from jobs.controller.facts import JobFact
from jobs.controller.pods import owner_of, priority_class
from kube import amounts
from kube.amounts import Amounts
from kube.meta import Object
from kube.priorities import PriorityClasses
from kube.usage import ESTIMATE_ANNOTATION
from kube.volcano.intake_times import JOB_CREATED
from kube.volcano.reserved_room import RELEASED

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
SYNCED_FIELDS = ("minMember", "minTaskMember", "minResources", "priorityClassName", "subGroupPolicy")


def pod_group(job: JobFact, whole: Object, priorities: PriorityClasses) -> Object:
    """Return the pod group that a job should have when it has none."""
    spec = spec_in_step(job, whole, priorities)
    spec["queue"] = job.queue
    topology = _topology(whole["spec"].get("networkTopology"))
    if topology:
        spec["networkTopology"] = topology
    metadata: Object = {"name": job.group_name, "namespace": job.namespace, "ownerReferences": [owner_of(job)]}
    if whole["metadata"].get("labels"):
        metadata["labels"] = whole["metadata"]["labels"]
    notes = {JOB_CREATED: whole["metadata"].get("creationTimestamp")}
    notes[ESTIMATE_ANNOTATION] = whole["spec"].get("runningEstimate")
    # RELEASED is about one pod group, not about the job's later ones.
    written = whole["metadata"].get("annotations") or {}
    annotations = {name: value for name, value in written.items() if name != RELEASED}
    metadata["annotations"] = {**annotations, **{name: value for name, value in notes.items() if value}}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def spec_in_step(job: JobFact, whole: Object, priorities: PriorityClasses) -> dict[str, Any]:
    """Return the part of the pod group's spec that is updated when the job's spec changes."""
    tasks = whole["spec"].get("tasks") or []
    spec: dict[str, Any] = {
        "minMember": job.min_available,
        "minTaskMember": {task["name"]: _minimum(task) for task in tasks},
        "minResources": amounts.resource_list(min_resources(whole["spec"], job.min_available, priorities)),
    }
    if whole["spec"].get("priorityClassName"):
        spec["priorityClassName"] = whole["spec"]["priorityClassName"]
    sub_groups = [_sub_group(task) for task in tasks if task.get("partitionPolicy")]
    if sub_groups:
        spec["subGroupPolicy"] = sub_groups
    return spec


def spec_changes(job: JobFact, whole: Object, spec: Object, priorities: PriorityClasses) -> dict[str, Any]:
    """Return the merge patch that brings a pod group's spec in step with the job's, {} if it already is."""
    wanted = spec_in_step(job, whole, priorities)
    changes = {}
    for name in SYNCED_FIELDS:
        old, new = spec.get(name), wanted.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):  # a merge patch takes away what it sets to null
            new = {**dict.fromkeys(old.keys() - new.keys()), **new}
        changes[name] = new
    return changes


def min_resources(job_spec: Object, min_available: int, priorities: PriorityClasses) -> Amounts:
    """Return what the `min_available` pods use, taken from tasks of higher priority first."""

    def priority(task: Object) -> int:
        return priorities.value(priority_class((task.get("template") or {}).get("spec") or {}, job_spec))

    ordered = sorted(job_spec.get("tasks") or [], key=priority, reverse=True)
    total: Amounts = {}
    for task, number in zip(ordered, _members(ordered, min_available), strict=True):
        if not number:
            continue
        for name, amount in usage((task.get("template") or {}).get("spec") or {}).items():
            total[name] = total.get(name, 0) + amount * number
    return total


def usage(pod_spec: Object) -> Amounts:
    """Return what Kubernetes' quota evaluator charges for a pod, and extended resources by their plain names too."""
    requested = amounts.pod_request(pod_spec)
    limited = amounts.pod_limits(pod_spec)
    charged: Amounts = {"count/pods": 1}
    for name, amount in requested.items():
        charged[name] = amount
        if name != "pods":
            charged[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if limited.get(name):
            charged[f"limits.{name}"] = limited[name]
    return charged


def _members(tasks: list[Object], min_available: int) -> list[int]:
    """Return how many pods of each task belong to the job's minimum."""
    minimums = [_minimum(task) for task in tasks]
    left = min_available
    if min_available < sum(minimums):
        return _take([int(task.get("replicas") or 0) for task in tasks], left)
    members = _take(minimums, left)
    left -= sum(members)
    rest = _take(
        [int(task.get("replicas") or 0) - member_count for task, member_count in zip(tasks, members, strict=True)], left
    )
    return [first + second for first, second in zip(members, rest, strict=True)]


def _take(available: list[int], wanted: int) -> list[int]:
    counts = []
    for number in available:
        counts.append(max(0, min(number, wanted)))
        wanted -= counts[-1]
    return counts


def _minimum(task: Object) -> int:
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    partitions = task.get("partitionPolicy") or {}
    product = int(partitions.get("minPartitions") or 0) * int(partitions.get("partitionSize") or 0)
    return product or int(task.get("replicas") or 0)


def _sub_group(task: Object) -> dict[str, Any]:
    policy = task["partitionPolicy"]
    sub_group = {
        "name": task["name"],
        "subGroupSize": policy["partitionSize"],
        "minSubGroups": policy.get("minPartitions", 0),
        "labelSelector": {"matchLabels": {"volcano.sh/task-spec": task["name"]}},
        "matchLabelKeys": ["volcano.sh/partition-id"],
    }
    topology = _topology(policy.get("networkTopology"))
    return sub_group | ({"networkTopology": topology} if topology else {})


def _topology(wanted: Object | None) -> dict[str, Any]:
    if not wanted:
        return {}
    topology: dict[str, Any] = {"mode": wanted.get("mode") or "hard"}
    for field in ("highestTierAllowed", "highestTierName"):
        if wanted.get(field) is not None:
            return topology | {field: wanted[field]}
    return topology
