"""The input of a round of work on a job: the stored objects, what else pods depend on, and what follows from both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from cluster.rules.quota_accounts import Account
from jobs.controller import plugin_objects, pod_diff
from jobs.controller.facts import GroupFact, JobFact, PodFact
from jobs.controller.plugin_objects import Id, PluginObjectFact
from jobs.controller.pod_diff import PodDiff
from jobs.controller.requests import Request
from jobs.lifecycle import phases, requester
from jobs.lifecycle.phases import Step
from jobs.lifecycle.requester import Requester
from kube.kinds.batch import Action, JobPhase
from kube.meta import Object
from kube.priorities import PriorityClasses


class ObservedJob(Struct):
    """The stored versions of one job and of what was made for it, as last read."""

    job: JobFact
    pods: dict[str, PodFact] = field(default_factory=dict)
    group: GroupFact | None = None
    plugin_objects: dict[Id, PluginObjectFact] = field(default_factory=dict)  # what plugins made, see there
    # Whether the pod group and plugin objects, with the writes that are on their way, match this version of the job.
    in_step: bool = False


class World(NamedTuple):
    """What a job's pods depend on besides the job."""

    priorities: PriorityClasses
    claims: Mapping[str, Collection[str]]  # namespace → names
    ranges: Mapping[str, Sequence[Object]] = {}  # namespace → limit ranges
    accounts: Mapping[str, Account] = {}  # namespace → what its quotas leave, where it has some, see `plan.lacks_pods`


class Reading(NamedTuple):
    """The input of one round; nothing in it changes during the round, except `diff.counts`, which follow its writes.

    `step` is what to do now, for the requests or else for the spec. `diff` is how the pods differ from the spec, `own`
    are the pods that this job owns. `blocked` describes the objects that keep plugins from working. `by` is who requested
    what the job does now, None for nobody.
    """

    observed: ObservedJob
    world: World
    requests: Sequence[Request]
    step: Step
    diff: PodDiff
    own: Sequence[PodFact]
    is_admitted: bool
    blocked: tuple[str, ...]
    by: Requester | None

    @classmethod
    def of(cls, observed: ObservedJob, world: World, requests: Sequence[Request]) -> Reading:
        """Return the input of a round for these requests, which one step carries out together."""
        job, group = observed.job, observed.group
        return cls(
            observed,
            world,
            requests,
            step=phases.step_for(job.phase, (requests and requests[0].action) or Action.SYNC_JOB),
            diff=pod_diff.compare(job, observed.pods.values()),
            own=[pod for pod in observed.pods.values() if pod.owner == job.uid],
            is_admitted=group is not None and group.is_admitted,
            blocked=plugin_objects.blocking(job, observed.plugin_objects),
            by=_requester(job, requests),
        )

    @property
    def job(self) -> JobFact:
        """The job itself."""
        return self.observed.job


def _requester(job: JobFact, requests: Sequence[Request]) -> Requester | None:
    """Return who requested what the job does now; while the job ends its pods, its status holds that."""
    if requests and job.phase is not JobPhase.RESTARTING:
        request = requests[0]
        # A SyncJob only asks to look at the job, so it is not what makes the job act.
        if request.action in phases.STEPS[job.phase] and request.action is not Action.SYNC_JOB:
            return request.by
    return requester.of_status(job.status) if job.phase in phases.STOPPING else None
