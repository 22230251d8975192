"""What is accepted in a job but can never work, or is surely not meant: the fact and the remedy, at its field.

Each is one line of text, `path: sentence`, like the API's warnings. It must be true of the controller and
the scheduler as they are: tests/jobs/test_warnings.py checks that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from cluster.rules import mentions
from cluster.rules.pod import templates
from jobs.lifecycle import dependencies
from jobs.lifecycle.dependencies import Dependency
from jobs.lifecycle.situation import Task
from jobs.plugins import table
from jobs.rules import policy_warnings
from kube import lenient
from kube.kinds.batch import Action
from kube.meta import Object
from kube.resource import Resource
from kube.resources import CONFIGMAPS, HYPER_NODES, SECRETS
from kube.volcano import task_topology, topology
from kube.volcano.task_topology import AFFINITY, ANTI_AFFINITY, TASK_ORDER
from kube.volcano.topology import HyperNode


class ThingsView(Protocol):
    """What these rules query of objects."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None: ...
    def claim(self, namespace: str, name: str) -> Object | None: ...
    def runs_images(self) -> bool: ...
    def listed(self, resource: Resource, namespace: str) -> list[Object]: ...


ITERATIONS = ("any", "all")
WHOLE_TIER = 1  # of the whole cluster if there is no HyperNode (`scheduler.engine.hyper_nodes`)


def of_job(job: Object, view: ThingsView) -> Iterator[str]:
    """Yield the warnings about a job with its defaults."""
    spec = lenient.mapping(job, "spec")
    yield from _dependencies(spec)
    total = sum(task.replicas for task in _tasks(spec))
    wanted = lenient.whole(spec, "minSuccess")
    if wanted is not None and wanted > total:
        yield (
            f"spec.minSuccess: {wanted} pods can never succeed, as the tasks have {total} together, so the job ends "
            f"as Failed; lower it to {total} or less."
            if total
            else "spec.minSuccess: no pod can succeed, as every task has 0 replicas; add replicas."
        )
    if lenient.whole(spec, "ttlSecondsAfterFinished") == 0:
        yield (
            "spec.ttlSecondsAfterFinished: with 0 the job and its pods are deleted as soon as it ends, and nobody "
            "can look at the result; give it some time, such as 3600."
        )
    yield from _runs_forever(spec)
    namespace = lenient.text(job, "metadata", "namespace")
    yield from _missing_claims(spec, namespace, view)
    if not view.runs_images():  # not all Secrets and ConfigMaps of another cluster are known here
        yield from _missing_sources(job, namespace, view)
    yield from _network(spec, view)
    yield from _task_topology(job)
    yield from policy_warnings.of_job(spec)


def _dependencies(spec: dict[str, Any]) -> Iterator[str]:
    tasks = _tasks(spec)
    # What each task that depends on others waits for, as the controller reads it.
    waits: dict[str, Dependency] = {}
    for task in lenient.sequence(spec, "tasks"):
        if names := tuple(lenient.texts(task, "dependsOn", "name")):
            is_any = lenient.text(task, "dependsOn", "iteration") == "any" and len(names) > 1
            waits[lenient.text(task, "name")] = Dependency(names, is_any)
    deadlock = None
    if not dependencies.cycle({name: each.names for name, each in waits.items()}):
        deadlock = dependencies.deadlock(tasks, waits, lenient.whole(spec, "minAvailable") or 0)
    if deadlock is not None:
        number = next(at for at, each in enumerate(tasks) if each.name == deadlock.task)
        yield (
            f"spec.tasks[{number}].dependsOn: the job can never start: {deadlock.why}; "
            f"set spec.minAvailable to {deadlock.enough}."
        )
    empty = {each.name for each in tasks if each.replicas == 0}
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        path, name = f"spec.tasks[{number}].dependsOn", lenient.text(task, "name")
        for other in waits[name].names if name in waits else ():
            if other in empty:
                yield f"{path}.name: {other} has 0 replicas, so {name} does not wait for it; give {other} replicas or remove it here."
        iteration = lenient.text(task, "dependsOn", "iteration")
        if iteration and iteration not in ITERATIONS:
            yield f"{path}.iteration: {iteration} is not known and means all; write any or all."


def _runs_forever(spec: dict[str, Any]) -> Iterator[str]:
    """Yield the tasks whose pods never end, unless something else ends the job."""
    tasks = lenient.sequence(spec, "tasks")
    forever = [templates.forever(lenient.mapping(task, "template")) for task in tasks]
    ends = sum(task.replicas for task, stays in zip(_tasks(spec), forever, strict=True) if not stays)
    enough = lenient.whole(spec, "minSuccess")
    if policy_warnings.asks(spec, Action.COMPLETE_JOB) or (enough is not None and enough <= ends):
        return
    for number, stays in enumerate(forever):
        if stays:
            yield (
                f"spec.tasks[{number}].template.spec.restartPolicy: containers start again whenever they end (Always), "
                "so the job cannot complete; choose OnFailure or Never."
            )


def _missing_claims(spec: dict[str, Any], namespace: str, view: ThingsView) -> Iterator[str]:
    for number, volume in enumerate(lenient.sequence(spec, "volumes")):
        if not isinstance(volume, dict) or "volumeClaimName" not in volume or volume.get("volumeClaim"):
            continue
        name, where = lenient.text(volume, "volumeClaimName"), lenient.text(volume, "mountPath")
        path = f"spec.volumes[{number}].volumeClaimName"
        if not name:
            yield f"{path}: this names no claim, so each pod gets an empty directory of its own at {where}; name a claim, or leave it out."
        elif view.claim(namespace, name) is None:
            yield (
                f"{path}: there is no claim {name} in namespace {namespace}; until there is, "
                f"each pod gets an empty directory of its own at {where}. Create the claim first, or describe one with volumeClaim."
            )
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        for at, volume in enumerate(lenient.sequence(task, "template", "spec", "volumes")):
            name = lenient.text(volume, "persistentVolumeClaim", "claimName")
            if name and view.claim(namespace, name) is None:
                yield (
                    f"spec.tasks[{number}].template.spec.volumes[{at}].persistentVolumeClaim.claimName: there is no claim {name} "
                    f"in namespace {namespace}, so the pods wait until there is one. Create the claim first."
                )


def _missing_sources(job: Object, namespace: str, view: ThingsView) -> Iterator[str]:
    """Yield the missing Secrets and ConfigMaps that containers need to start, except those that plugins make."""
    covered = {
        (product.resource, f"{context.job}{product.suffix}")
        for plugin, context in table.of_job(job)
        for product in plugin.objects
    }
    for number, task in enumerate(lenient.sequence(job, "spec", "tasks")):
        for each in mentions.of(lenient.mapping(task, "template", "spec"), f"spec.tasks[{number}].template.spec"):
            thing = each.resource, each.name
            if each.resource not in (CONFIGMAPS, SECRETS) or each.optional or not each.name or thing in covered:
                continue
            covered.add(thing)
            if view.get(each.resource, namespace, each.name) is None:
                yield (
                    f"{each.path}: there is no {each.resource.kind} {each.name} in namespace {namespace}, so the "
                    "containers do not start until there is one. Create it first, or say that it is optional."
                )


def _tasks(spec: dict[str, Any]) -> list[Task]:
    return [
        Task(
            lenient.text(task, "name"),
            max(lenient.whole(task, "replicas") or 0, 0),
            lenient.whole(task, "minAvailable"),
        )
        for task in lenient.sequence(spec, "tasks")
    ]


def _joined(names: Sequence[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _network(spec: dict[str, Any], view: ThingsView) -> Iterator[str]:
    """Yield the tiers that a job or a task's partitions require and no HyperNode has: it would wait (`scheduler.engine.arrange`)."""
    owners = {"spec": spec}
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        owners[f"spec.tasks[{number}].partitionPolicy"] = lenient.mapping(task, "partitionPolicy")
    topologies = {path: lenient.mapping(owner, "networkTopology") for path, owner in owners.items()}
    topologies = {path: each for path, each in topologies.items() if each and lenient.text(each, "mode") != "soft"}
    if not topologies:
        return
    hyper_nodes = [topology.read(each) for each in view.listed(HYPER_NODES, "")]
    for path, each in topologies.items():
        if problem := _missing_tier(each, hyper_nodes):
            yield f"{path}.networkTopology.{problem}"


def _missing_tier(topology: dict[str, Any], hyper_nodes: list[HyperNode]) -> str:
    """Return the field that no HyperNode satisfies, and why; "" if one does or none is required."""
    name, highest = lenient.text(topology, "highestTierName"), lenient.whole(topology, "highestTierAllowed")
    wait = "so the pods wait until there is one"
    if name and all(each.tier_name != name for each in hyper_nodes):
        tier_names = sorted({each.tier_name for each in hyper_nodes if each.tier_name})
        remedy = f"choose {' or '.join(tier_names)}" if tier_names else "give highestTierAllowed, or leave both out"
        return f"highestTierName: no HyperNode has the tier {name}, {wait}; {remedy}."
    lowest = min((each.tier for each in hyper_nodes), default=WHOLE_TIER)
    if highest is not None and highest < lowest:
        return (
            f"highestTierAllowed: no HyperNode has tier {highest} or a lower one, {wait}; set it to {lowest} or more."
        )
    return ""


def _task_topology(job: Object) -> Iterator[str]:
    """Yield the tasks in topology annotations that do not exist, or are wanted both on one node and apart.

    If the scheduler's plugin task-topology is listed, it ignores what is named here; the rest of the annotations holds.
    """
    notes = lenient.mapping(job, "metadata", "annotations")
    texts = {name: lenient.text(notes, name) for name in (AFFINITY, ANTI_AFFINITY, TASK_ORDER)}
    if not any(texts.values()):
        return
    tasks = [lenient.text(task, "name") for task in lenient.sequence(job, "spec", "tasks")]
    for name, text in texts.items():
        named = dict.fromkeys(task for clause in task_topology.clauses(text) for task in clause)
        unknown = [task for task in named if task not in tasks]
        if unknown:
            yield (
                f"metadata.annotations[{name}]: there is no task {' or '.join(unknown)}, so this has no effect; "
                f"name tasks of the job ({', '.join(filter(None, tasks))}), as in ps,worker;worker."
            )
    for pair in task_topology.both(texts[AFFINITY], texts[ANTI_AFFINITY]):
        wanted = f"{' and '.join(sorted(pair))} are wanted" if len(pair) > 1 else f"pods of {min(pair)} are wanted"
        yield (
            f"metadata.annotations[{ANTI_AFFINITY}]: {wanted} on one node and apart, so neither has an effect; "
            "remove them from one of the two annotations."
        )
