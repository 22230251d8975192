"""Which jobs are accepted, and what is filled in (reference: volcano-job §7; seed: Job API).

`default` turns what was written into what will be stored. `validate` returns
all errors at once, each at its field, whatever the input looks like.
`warn` says what is accepted but likely not meant, mostly from `jobs.rules.warnings`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Protocol

from cluster.rules import disruption_annotations, intake, simulation
from cluster.rules.pod import pods, templates
from jobs.lifecycle import dependencies
from jobs.plugins import arguments, table
from jobs.rules import overwritten, policies, program_warnings, updates, warnings
from kube import definitions, lenient, mount_paths, names, resources, schema
from kube.errors import Cause, duplicate, forbidden, invalid, required
from kube.meta import Object
from kube.resource import Resource
from kube.usage import DEFAULT_QUEUE
from scheduler.records import constraints

DEFAULT_SCHEDULER = "volcano"
DEFAULT_MAX_RETRY = 3
_DEFAULTS = {"queue": DEFAULT_QUEUE, "schedulerName": DEFAULT_SCHEDULER, "maxRetry": DEFAULT_MAX_RETRY}
MAX_PODS = 100_000  # of one job: what one batch of writes and one page can still cope with
LONGEST_POD_NAME = 63  # bytes: it is a host name and a label
SUFFIX_LENGTH = 5  # of a generated name
ALWAYS_WRITTEN = ("metadata", "resources")
NEEDS_SVC = ("tensorflow", "mpi", "pytorch", "ray")


class JobRulesView(intake.QueuesView, Protocol):
    """What admission queries of the cluster."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None: ...
    def priority_class(self, name: str) -> Object | None: ...
    def claim(self, namespace: str, name: str) -> Object | None: ...
    def machines(self) -> list[Object]: ...
    def runs_images(self) -> bool: ...
    def needs_commands(self) -> bool: ...
    def listed(self, resource: Resource, namespace: str) -> list[Object]: ...


def default(job: Object, old: Object | None, _view: JobRulesView) -> None:
    """Fill in what a job leaves open, and replace the seeds' spellings by today's.

    This is done on update too, because applying the same file again leaves the same fields open; but a written number
    stays: minAvailable lowered to 0 stays 0 (reference: volcano-job §1.6).
    """
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    respell(spec, lenient.mapping(old, "spec") if old else {})
    before = None if old is None else lenient.mapping(old, "spec")
    if before is not None:
        _keep_what_was_made(spec, before)
    tasks = lenient.sequence(spec, "tasks")
    old_tasks = tasks if before is None else lenient.sequence(before, "tasks")
    for number, (task, old_task) in enumerate(zip(tasks, old_tasks, strict=False)):
        if isinstance(task, dict):
            _default_task(task, number, None if before is None else lenient.mapping(old_task))
    _default_topology(spec, before)
    for field, value in _DEFAULTS.items():
        # A job that was stored without the field stays without it.
        if before is None or field in before:
            spec[field] = spec.get(field) or value
    if spec.get("minAvailable") is None or (old is None and not spec["minAvailable"]):
        spec["minAvailable"] = sum(lenient.whole(task, "minAvailable") or 0 for task in tasks)
    wanted = lenient.mapping(spec, "plugins")
    if any(name in wanted for name in NEEDS_SVC):
        wanted.setdefault("svc", [])
    if "mpi" in wanted:
        wanted.setdefault("ssh", [])


def _default_task(task: dict[str, Any], number: int, before: dict[str, Any] | None) -> None:
    task["name"] = task.get("name") or f"default{number}"
    if before is None or "maxRetry" in before:
        task["maxRetry"] = task.get("maxRetry") or DEFAULT_MAX_RETRY
    pod = lenient.mapping(task, "template", "spec")
    if pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    partitions = lenient.mapping(task, "partitionPolicy")
    if task.get("minAvailable") is None:
        product = (lenient.whole(partitions, "minPartitions") or 0) * (lenient.whole(partitions, "partitionSize") or 0)
        replicas = task.get("replicas")
        task["minAvailable"] = product or (0 if replicas is None else replicas)
    if isinstance(task.get("partitionPolicy"), dict):
        old = None if before is None else lenient.mapping(before, "partitionPolicy")
        if (old is None or "minPartitions" in old) and partitions.get("minPartitions") is None:
            partitions["minPartitions"] = 0
        _default_topology(partitions, old)


def _keep_what_was_made(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Keep stored values that the author of a change does not write.

    These are the names of claims that the controller made, and templates to which a client only added what its types
    always write, such as empty `resources`.
    """
    for volume, old in zip(lenient.sequence(spec, "volumes"), lenient.sequence(before, "volumes"), strict=False):
        claim = lenient.text(old, "volumeClaimName")
        if claim and lenient.mapping(volume, "volumeClaim") and "volumeClaimName" not in volume:
            volume["volumeClaimName"] = claim
    for task, old in zip(lenient.sequence(spec, "tasks"), lenient.sequence(before, "tasks"), strict=False):
        template, stored = lenient.mapping(task, "template"), lenient.mapping(old, "template")
        if stored and template != stored and _without_empty(template) == _without_empty(stored):
            task["template"] = copy.deepcopy(stored)


def _default_topology(owner: dict[str, Any], before: dict[str, Any] | None) -> None:
    topology = owner.get("networkTopology")
    has_mode = before is None or "mode" in lenient.mapping(before, "networkTopology")
    if has_mode and isinstance(topology, dict):
        topology["mode"] = topology.get("mode") or "hard"


def validate(job: Object, old: Object | None, view: JobRulesView) -> list[Cause]:
    """Return everything wrong with a job that is created (old is None) or updated."""
    shapes = schema.check(job, definitions.of(resources.JOBS))
    spec = lenient.mapping(job, "spec")
    if old is not None:
        rules = [*updates.check(job, old), *_check_numbers(spec)]
    else:
        rules = [
            *_check_tasks(spec, view),
            *disruption_annotations.check_job(job),
            *_check_names(job),
            *_check_numbers(spec),
            *_check_plugins(job),
            *_check_volumes(spec, view),
            *intake.check(lenient.text(spec, "queue"), "job", view),
            *_check_dependencies(spec),
        ]
    fields = {cause.field for cause in shapes}
    return [*shapes, *(cause for cause in rules if cause.field not in fields)]


def warn(job: Object, old: Object | None, view: JobRulesView) -> list[str]:
    """Return the warnings about an accepted job; of an update, only those that it adds."""
    spec = lenient.mapping(job, "spec")
    named = _with_likely_name(job)
    found: list[str] = []
    for plugin, context in table.of_job(named):
        problem = arguments.parse(lenient.texts(spec, "plugins", plugin.name), plugin.flags).problem
        texts = [*([problem] if problem else ()), *plugin.warnings(context)]
        found += [f"spec.plugins[{plugin.name}]: {text}" for text in texts]
    found += [*overwritten.of_job(named), *program_warnings.of_job(job, view), *warnings.of_job(job, view)]
    commanded = [command for plugin, context in table.of_job(job) for command in plugin.commands(context)]
    classes = {lenient.text(spec, "priorityClassName"): "spec.priorityClassName"}
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        path, pod = f"spec.tasks[{number}].template", lenient.mapping(task, "template", "spec")
        by_plugins = {container for name, container in commanded if name == lenient.text(task, "name")}
        if not view.runs_images():
            found += pods.command_warnings(pod, f"{path}.spec", view, by_plugins)
        if unknown := constraints.warning(pod, f"{path}.spec"):
            found.append(unknown)
        found += simulation.warnings(lenient.mapping(task, "template"), f"{path}.")
        classes.setdefault(lenient.text(pod, "priorityClassName"), f"{path}.spec.priorityClassName")
    for name, path in classes.items():
        if name and view.priority_class(name) is None:
            found.append(f"{path}: there is no priority class {name}; until it exists this counts as if it named none.")
    earlier = [] if old is None else warn(old, None, view)
    return [warning for warning in found if warning not in earlier]


def respell(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Store the Job seed's spellings (taskSpecs, claim, priorityClass) under today's names."""
    if "taskSpecs" in spec:
        written = spec.pop("taskSpecs")
        # Patched onto a stored job, the seed's spelling stands beside the tasks it is to replace.
        if "tasks" not in spec or spec["tasks"] == before.get("tasks"):
            spec["tasks"] = written
    for volume in lenient.sequence(spec, "volumes"):
        if isinstance(volume, dict) and "claim" in volume:
            claim = volume.pop("claim")
            inner = claim.get("spec", claim) if isinstance(claim, dict) else claim
            volume.setdefault("volumeClaim", inner)
    for task in lenient.sequence(spec, "tasks"):
        pod = lenient.mapping(task, "template", "spec")
        if "priorityClass" in pod:
            written = pod.pop("priorityClass")
            pod.setdefault("priorityClassName", written)
        # The seed's mpi-job writes one container as a mapping.
        if isinstance(pod.get("containers"), dict):
            pod["containers"] = [pod["containers"]]


def _without_empty(value: Any) -> Any:
    """Return a value without nulls, and without structures that Go's types write even when they are empty."""
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _without_empty(each) for key, each in value.items() if each is not None}
    return {key: each for key, each in found.items() if each != {} or key not in ALWAYS_WRITTEN}


def _check_tasks(spec: dict[str, Any], view: JobRulesView) -> Iterator[Cause]:
    tasks = lenient.sequence(spec, "tasks")
    if not tasks:
        yield required("spec.tasks", "No task specified in job spec; add a task with replicas and a pod template.")
    task_names: set[str] = set()
    for number, task in enumerate(tasks):
        path, name = f"spec.tasks[{number}]", lenient.text(task, "name")
        if name in task_names:
            cause = duplicate(f"{path}.name", name)
            yield cause._replace(message=f"{cause.message}: duplicated task name; give each task its own.")
        task_names.add(name)
        yield from policies.check(lenient.sequence(task, "policies"), f"{path}.policies")
        template = lenient.mapping(task, "template")
        yield from templates.check(template, f"{path}.template", elsewhere=view.runs_images())
        policy = lenient.text(task, "topologyPolicy")
        for container, is_whole in templates.whole_cpus(template) if policy not in ("", "none") else ():
            if not is_whole:
                detail = f"topologyPolicy {policy} needs a whole number of CPUs here, at least 1."
                yield required(f"{path}.template.{container}.resources.requests[cpu]", detail)
        yield from _check_network(lenient.mapping(task, "partitionPolicy"), f"{path}.partitionPolicy")
    yield from policies.check(lenient.sequence(spec, "policies"), "spec.policies")
    yield from _check_network(spec, "spec")


def _check_numbers(spec: dict[str, Any]) -> Iterator[Cause]:
    """Check replicas and minimums, of a new job and of a changed one."""
    total = 0
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        path, name = f"spec.tasks[{number}]", lenient.text(task, "name")
        replicas, minimum = lenient.whole(task, "replicas") or 0, lenient.whole(task, "minAvailable")
        total += replicas
        if minimum is not None and minimum > replicas:
            detail = f"'minAvailable' is greater than 'replicas' in task {name} ({replicas}); lower it or add replicas."
            yield invalid(f"{path}.minAvailable", minimum, detail)
        yield from _check_partitions(task, path)
    if total > MAX_PODS:
        detail = (
            f"a job may have {MAX_PODS:,} pods at most, and the tasks ask for {total:,}; split it into several jobs."
        )
        yield invalid("spec.tasks", total, detail)
    minimum = lenient.whole(spec, "minAvailable")
    if minimum is not None and minimum > total:
        detail = f"job 'minAvailable' should not be greater than total replicas in tasks ({total}); lower it or add replicas."
        yield invalid("spec.minAvailable", minimum, detail)


def _check_partitions(task: Any, path: str) -> Iterator[Cause]:
    policy = lenient.mapping(task, "partitionPolicy")
    count, size = lenient.whole(policy, "totalPartitions"), lenient.whole(policy, "partitionSize")
    if count is None or size is None:
        return
    replicas = lenient.whole(task, "replicas") or 0
    if replicas != count * size:
        detail = f"must be totalPartitions times partitionSize, {count * size}; change one of the three."
        yield invalid(f"{path}.replicas", replicas, detail)
    least = lenient.whole(policy, "minPartitions") or 0
    minimum = lenient.whole(task, "minAvailable")
    if least > 0 and minimum is not None and minimum != least * size:
        detail = f"must be minPartitions times partitionSize, {least * size}; leave it out to have that."
        yield invalid(f"{path}.minAvailable", minimum, detail)


def _check_network(owner: dict[str, Any], path: str) -> Iterator[Cause]:
    topology = lenient.mapping(owner, "networkTopology")
    if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        detail = "highestTierAllowed and highestTierName must not be specified at the same time; remove one."
        yield forbidden(f"{path}.networkTopology", detail)


def _check_names(job: Object) -> Iterator[Cause]:
    name = lenient.text(job, "metadata", "name")
    if not name and lenient.text(job, "metadata", "generateName"):
        name = lenient.text(job, "metadata", "generateName") + "x" * SUFFIX_LENGTH
    if not name:
        return  # a missing name is reported for objects of every kind
    problem = names.dns_subdomain(name)
    if problem:
        yield invalid("metadata.name", name, problem)
        return
    if len(name) > LONGEST_POD_NAME:
        detail = (
            f"the name of a job is a label of its pods and may have {LONGEST_POD_NAME} characters at most; shorten it."
        )
        yield invalid("metadata.name", name, detail)
        return
    for number, task in enumerate(lenient.sequence(job, "spec", "tasks")):
        # The last pod has the longest name (reference: volcano-job §10, Q-15).
        last = max((lenient.whole(task, "replicas") or 0) - 1, 0)
        pod = f"{name}-{lenient.text(task, 'name')}-{last}"
        if len(pod) > LONGEST_POD_NAME:
            detail = (
                f"makes the pod name {pod}, {len(pod)} characters long; "
                f"{LONGEST_POD_NAME} are allowed: shorten the name of the job or of the task."
            )
            yield invalid(f"spec.tasks[{number}].name", lenient.text(task, "name"), detail)


def _check_plugins(job: Object) -> Iterator[Cause]:
    wanted = lenient.mapping(job, "spec", "plugins")
    for name in wanted:
        if name not in table.PLUGINS:
            detail = f"unable to find job plugin {name}; known plugins are {', '.join(table.PLUGINS)}."
            yield invalid(f"spec.plugins[{name}]", name, detail)
    for plugin, context in table.of_job(_with_likely_name(job)):
        for detail in plugin.refusals(context):
            yield invalid(f"spec.plugins[{plugin.name}]", wanted[plugin.name], detail)


def _with_likely_name(job: Object) -> Object:
    """Return a job with a name as it will be generated, if it has only a generateName."""
    metadata = lenient.mapping(job, "metadata")
    if lenient.text(metadata, "name") or not lenient.text(metadata, "generateName"):
        return job
    return {**job, "metadata": {**metadata, "name": metadata["generateName"] + "x" * SUFFIX_LENGTH}}


def _check_volumes(spec: dict[str, Any], view: JobRulesView) -> Iterator[Cause]:
    taken: set[str] = set()
    for number, volume in enumerate(lenient.sequence(spec, "volumes")):
        path, where = f"spec.volumes[{number}]", lenient.text(volume, "mountPath")
        claim = lenient.text(volume, "volumeClaimName")
        if not where:
            yield required(
                f"{path}.mountPath", "mountPath is required: say where the pods see the volume, such as /data."
            )
        elif where in taken:
            cause = duplicate(f"{path}.mountPath", where)
            yield cause._replace(message=f"{cause.message}: duplicated mountPath; give each volume its own.")
        elif not view.runs_images() and (detail := mount_paths.problem(where)):
            yield invalid(f"{path}.mountPath", where, detail)
        taken.add(where)
        if claim and lenient.mapping(volume, "volumeClaim"):
            detail = "conflict: name a claim with volumeClaimName or describe a new one with volumeClaim, not both."
            yield forbidden(path, detail)
        problem = names.dns_subdomain(claim) if claim else None
        if problem:
            yield invalid(f"{path}.volumeClaimName", claim, problem)


def _check_dependencies(spec: dict[str, Any]) -> Iterator[Cause]:
    tasks = lenient.sequence(spec, "tasks")
    waits_for = {lenient.text(task, "name"): lenient.texts(task, "dependsOn", "name") for task in tasks}
    for number, task in enumerate(tasks):
        path, listed = f"spec.tasks[{number}].dependsOn", lenient.texts(task, "dependsOn", "name")
        for name in dict.fromkeys(listed):
            if name not in waits_for:
                yield invalid(f"{path}.name", name, f"job has dependencies between tasks, but no task is named {name}.")
            if listed.count(name) > 1:
                yield duplicate(f"{path}.name", name)
    circle = dependencies.cycle(waits_for)
    if circle:
        detail = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG); break the circle."
        yield invalid("spec.tasks", " → ".join(circle), detail)
