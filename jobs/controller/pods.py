"""The pods of a task (reference: volcano-job §4.1).

Everything that the pods of one task have in common is made once; each pod adds its own name, index and, where a plugin
asks for it, containers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from cluster.rules import disruption_annotations, simulation
from cluster.rules import ranges as ranging
from cluster.rules.pod import pod_defaults
from jobs.controller import facts
from jobs.controller.facts import JobFact
from jobs.plugins import table
from jobs.plugins.contract import Draft, PodIdentity
from kube.kinds.core import PodPhase
from kube.meta import Object
from kube.owners import controller_reference
from kube.priorities import PriorityClasses
from kube.resources import CREATOR_ANNOTATION, JOBS

GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "volcano.sh/queue-name"
COPIED_ANNOTATIONS = ("volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone")
COPIED_LABELS = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")


class Blueprint:
    """Makes the pods of one task of a job.

    `claims` are the names of the claims that exist in the job's namespace; a volume whose claim does not exist becomes
    an `emptyDir` (seed: Job API, Job Input/Output). `ranges` are the namespace's limit ranges. The pods share nested
    values, which must not be changed.
    """

    def __init__(
        self,
        job: JobFact,
        whole: Object,
        task: int,
        priorities: PriorityClasses,
        claims: Collection[str],
        ranges: Sequence[Object] = (),
    ) -> None:
        spec = whole["spec"]["tasks"][task]
        template = spec.get("template") or {}
        self.job = job
        self.task: str = spec.get("name") or "default"
        self.partition_size: int = (spec.get("partitionPolicy") or {}).get("partitionSize", 0)
        self.is_partitioned = bool(spec.get("partitionPolicy"))
        self.labels = {
            **((template.get("metadata") or {}).get("labels") or {}),
            facts.JOB_NAME: job.name,
            "volcano.sh/job-namespace": job.namespace,
            facts.TASK_SPEC: self.task,
            QUEUE_NAME: job.queue,
            **_present(whole["metadata"].get("labels"), COPIED_LABELS),
        }
        self.annotations = self._annotations(template, whole["metadata"], spec)
        self.owners = [owner_of(job)]
        self.spec = self._spec(template, whole["spec"], priorities, claims)
        if ranges:
            common: Object = {"metadata": {"annotations": self.annotations}, "spec": self.spec}
            ranging.fill(common, ranges)
            self.annotations = common["metadata"]["annotations"]
        self.hooks = [(plugin.name, plugin.pods(context)) for plugin, context in table.of_job(whole)]

    def pod(self, index: int) -> Object:
        """Return the pod with an index of the task."""
        number = str(index)
        name = f"{self.job.name}-{self.task}-{number}"
        labels = {**self.labels, facts.TASK_INDEX: number}
        if self.is_partitioned:
            labels["volcano.sh/partition-id"] = str(index // self.partition_size if self.partition_size > 0 else 0)
        *_, (_, draft) = self.drafts(index)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.job.namespace,
                "labels": labels,
                "annotations": {**draft.annotations, facts.TASK_INDEX: number},
                "ownerReferences": self.owners,
            },
            "spec": draft.spec,
            "status": {"phase": PodPhase.PENDING},
        }

    def drafts(self, index: int) -> Iterator[tuple[str, Draft]]:
        """Yield the stages of the pod with an index: ("", draft) without plugins, then (name, draft) after each plugin."""
        draft = Draft(self.spec, self.annotations)
        identity = PodIdentity(self.task, index, f"{self.job.name}-{self.task}-{index}")
        yield "", draft
        for name, hook in self.hooks:
            draft = hook(draft, identity)
            yield name, draft

    def _annotations(self, template: Object, job_metadata: Object, task: Object) -> dict[str, str]:
        of_job = job_metadata.get("annotations") or {}
        job = self.job
        annotations = {
            **_without_creator((template.get("metadata") or {}).get("annotations") or {}),
            **noted_creator(job_metadata),
            facts.TASK_SPEC: self.task,
            GROUP_NAME: job.group_name,
            facts.JOB_NAME: job.name,
            QUEUE_NAME: job.queue,
            facts.JOB_VERSION: str(job.status.get("version", 0)),
            "volcano.sh/template-uid": f"{job.name}-{self.task}",
            "volcano.sh/job-retry-count": str(job.status.get("retryCount", 0)),
            **_present(of_job, COPIED_ANNOTATIONS),
            **_present(of_job, [name for name in disruption_annotations.KEYS if name in of_job][:1]),
        }
        if task.get("topologyPolicy"):
            annotations["volcano.sh/numa-topology-policy"] = task["topologyPolicy"]
        return annotations

    def _spec(
        self, template: Object, job_spec: Object, priorities: PriorityClasses, claims: Collection[str]
    ) -> dict[str, Any]:
        spec = dict(template.get("spec") or {})
        spec.setdefault("restartPolicy", "Always")
        spec["schedulerName"] = spec.get("schedulerName") or job_spec.get("schedulerName") or "volcano"
        class_name = priority_class(spec, job_spec)
        if class_name:
            spec["priorityClassName"] = class_name
        spec.setdefault("priority", priorities.value(class_name))
        _mount(spec, self.job.name, job_spec.get("volumes") or [], claims)
        simulation.tolerate(spec)
        pod_defaults.fill_host_ports(spec)
        return spec


def noted_creator(job_metadata: Object) -> dict[str, str]:
    """Return the annotation with a job's creator, {} if it has none; the job's objects keep it when the job is gone."""
    return _present(job_metadata.get("annotations"), (CREATOR_ANNOTATION,))


def _without_creator(annotations: Mapping[str, str]) -> dict[str, str]:
    """Drop the creator from a template's annotations: only the server sets it."""
    return {name: value for name, value in annotations.items() if name != CREATOR_ANNOTATION}


def owner_of(job: JobFact) -> dict[str, Any]:
    """Return the owner reference that everything made for a job carries."""
    return controller_reference(JOBS, job.name, job.uid)


def priority_class(template_spec: Object, job_spec: Object) -> str:
    """Return the priority class that the pods of a task name: the template's, or else the job's."""
    return template_spec.get("priorityClassName") or job_spec.get("priorityClassName") or ""


def claim_name(job: JobFact, index: int) -> str:
    """Return the name of the claim made for a volume that describes one (`<job>-pvc-<12>`).

    It is derived from the job's uid, so that creating it twice gives one claim.
    """
    return f"{job.name}-pvc-{_digest(f'{job.uid}/{index}')}"


def _mount(spec: dict[str, Any], job_name: str, volumes: list[dict[str, Any]], claims: Collection[str]) -> None:
    """Add a job's volumes to a pod spec; two volumes may name one claim."""
    if not volumes:
        return
    added, mounts = [], []
    for volume in volumes:
        # A volume's name is a DNS label, which a job's name need not be.
        name = f"{job_name.replace('.', '-')[:50]}-{_digest(volume['mountPath'])}"
        claim = volume.get("volumeClaimName")
        source = {"persistentVolumeClaim": {"claimName": claim}} if claim in claims else {"emptyDir": {}}
        added.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": volume["mountPath"]})
    spec["volumes"] = [*(spec.get("volumes") or ()), *added]
    spec["containers"] = [
        {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}
        for container in spec.get("containers") or ()
    ]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _present(source: Mapping[str, str] | None, names: Collection[str]) -> dict[str, str]:
    return {name: source[name] for name in names if name in source} if source else {}
