"""What a round of work on a job starts from: the stored objects, what pods depend on beside them, and what follows from both."""

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
    # The pod group and the plugin objects are as this version of the job wants them, once they are seen.
    in_step: bool = False


class World(NamedTuple):
    """What a job's pods depend on beside the job."""

    priorities: PriorityClasses
    claims: Mapping[str, Collection[str]]  # namespace → names
    ranges: Mapping[str, Sequence[Object]] = {}  # namespace → limit ranges
    accounts: Mapping[str, Account] = {}  # namespace → what its quotas leave, where it has some, see `plan.lacks_pods`


class Reading(NamedTuple):
    """What one round knows before it decides: nothing of it changes in the round.

    `step` is what is done now, for the requests or else for the spec. `diff` is how the pods differ from the spec, `own` are those of this job.
    `blocked` are the objects that keep plugins from working, in words. `by` is who requested what the job does now.
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
        """Return what a round for these requests starts from, which are all carried out by one step."""
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
    """Return who requested what the job does now; while it ends its pods its status says that."""
    if requests and job.phase is not JobPhase.RESTARTING:
        request = requests[0]
        # Who asks to look at a job asks for none of what it does.
        if request.action in phases.STEPS[job.phase] and request.action is not Action.SYNC_JOB:
            return request.by
    return requester.of_status(job.status) if job.phase in phases.STOPPING else None
