"""Which writes run the jobs of a flow in their order (reference: volcano-queue-podgroup-cli §7.1).

`reconcile` looks at a flow, its jobs and its templates, and returns groups of writes; called again after they were
carried out, it returns nothing. A job's name is made of the flow's and the template's names, so it is made only once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from cluster.writes import Create, Delete, Group, Update
from jobs.flows import status, steps
from jobs.lifecycle.phases import phase_of
from jobs.made import jobs
from jobs.made.jobs import OwnedJob
from jobs.rules.admission import JobRulesView
from kube import events
from kube.kinds.batch import JobPhase
from kube.kinds.flow import Flow, FlowPhase, JobFlow, RetainPolicy
from kube.meta import Object
from kube.patch import PatchError
from kube.resources import EVENTS, JOB_FLOWS, JOBS

COMPONENT = jobs.COMPONENT
IN_PROGRESS = "InProgress"  # the reason of a flow that goes on without problems
FINISHED = (FlowPhase.SUCCEED, FlowPhase.FAILED)
_BAD = (JobPhase.FAILED, JobPhase.TERMINATED)
_BEGUN = (JobPhase.RUNNING, JobPhase.RESTARTING, JobPhase.COMPLETING, JobPhase.COMPLETED)


class ObservedFlow(NamedTuple):
    """A flow and the objects that belong to it.

    `jobs` are the existing jobs that were made for it, `deleted` those deleted since the last plan, both by name.
    `templates` are those it names, by name. `occupied` are the names of its jobs that jobs of another owner have.
    """

    flow: JobFlow
    status: Object  # as it is stored
    jobs: Mapping[str, OwnedJob]
    deleted: Mapping[str, OwnedJob]
    templates: Mapping[str, Object]
    occupied: Collection[str]


class Outcome(NamedTuple):
    """Groups of writes, independent of each other; `waits`: a job cannot be made now; `refused`: a job was refused.

    A refused job is to be tried again, since whatever refuses it may change.
    """

    groups: list[Group]
    waits: bool = False
    refused: bool = False


class Problem(NamedTuple):
    """Why a job that should be made is not."""

    reason: str
    message: str


def reconcile(observed: ObservedFlow, view: JobRulesView, now: int) -> Outcome:
    """Return the outcome that takes a flow one step further."""
    if observed.flow.metadata.deletion_timestamp:
        state = {"phase": str(FlowPhase.TERMINATING), "reason": "Deleted", "message": "The flow is being deleted."}
        return Outcome(_status_group(observed, {**observed.status, "state": state}, now))
    ended = {name: job for name, job in observed.deleted.items() if job.is_finished and name not in observed.jobs}
    counted = {**ended, **observed.jobs}
    entries = status.entries(observed.flow, observed.status, counted, now)
    phases = {step: phase_of(entry["state"]) for step, entry in entries.items()}
    phase = _phase(observed.flow, phases)
    problems: list[Problem] = []
    groups: list[Group] = []
    if phase not in FINISHED:
        groups = _make(observed, phases, problems, view, now)
    before, flow = observed.flow.status.state, observed.flow
    reason, message = before.reason, before.message
    if phase not in FINISHED or before.phase != phase:  # a finished flow keeps its reason and message
        reason, message = _reason(flow, phase, phases, problems)
    state = {"phase": str(phase), "reason": reason, "message": message}
    after = status.status_after(observed.status, entries, counted, state)
    groups = [*_status_group(observed, after, now), *groups]
    if phase is FlowPhase.SUCCEED and flow.spec.job_retain_policy == RetainPolicy.DELETE:
        deletions = [
            Delete(JOBS, flow.metadata.namespace, job.name, uid=job.uid)
            for job in observed.jobs.values()
            if not job.is_deleted
        ]
        groups += [Group([each], key_of(flow)) for each in deletions]
    return Outcome(groups, bool(problems), any(problem.reason == "JobRefused" for problem in problems))


def about(flow: JobFlow) -> dict[str, Any]:
    """Return the part of a flow that events and status writes need."""
    return jobs.about(JOB_FLOWS, flow.metadata)


def key_of(flow: JobFlow) -> str:
    """Return `namespace/name`."""
    return f"{flow.metadata.namespace}/{flow.metadata.name}"


def _phase(flow: JobFlow, phases: Mapping[str, JobPhase]) -> FlowPhase:
    """Return the phase of a flow whose jobs are in `phases`; a finished flow keeps its phase."""
    before = flow.status.state.phase
    if before in FINISHED:
        return FlowPhase(before)
    if any(phase in _BAD for phase in phases.values()):
        return FlowPhase.FAILED
    if all(phases.get(template) is JobPhase.COMPLETED for template in steps.templates(flow)):
        return FlowPhase.SUCCEED
    has_begun = any(phase in _BEGUN for phase in phases.values())
    return FlowPhase.RUNNING if has_begun or before == FlowPhase.RUNNING else FlowPhase.PENDING


def _make(
    observed: ObservedFlow, phases: Mapping[str, JobPhase], problems: list[Problem], view: JobRulesView, now: int
) -> list[Group]:
    """Return the groups that make the jobs that may start; add to `problems` why one cannot be made."""
    flow = observed.flow
    existing = {
        step.name: observed.jobs[name]
        for step in flow.spec.flows
        if (name := steps.job_name(flow.metadata.name, step.name)) in observed.jobs
    }
    groups = []
    begun = set(phases)
    for step in flow.spec.flows:
        if step.name in begun or not steps.may_start(step, existing, phases):
            continue
        begun.add(step.name)
        job = _job(observed, step, view)
        if isinstance(job, Problem):
            problems.append(job)
        else:
            text = f"Created job {job['metadata']['name']} from template {step.name}."
            groups.append(Group([Create(JOBS, job), _event(flow, "Created", text, now)], key_of(flow)))
    return groups


def _job(observed: ObservedFlow, step: Flow, view: JobRulesView) -> Object | Problem:
    """Return the job of a step, or why it cannot be made now."""
    name, template = steps.job_name(observed.flow.metadata.name, step.name), observed.templates.get(step.name)
    if name in observed.occupied:
        text = f"A job named {name} exists that is not of this flow; delete it, or make the flow under another name."
        return Problem("NameTaken", text)
    if template is None:
        text = f"There is no job template {step.name} in namespace {observed.flow.metadata.namespace}; create it."
        return Problem("TemplateNotFound", text)
    try:
        job = steps.job_for(observed.flow, step, template)
    except PatchError as error:
        return Problem("JobRefused", f"The patch of {step.name} does not fit its template: {error}")
    causes = jobs.complete(job, view)
    if causes:
        return Problem("JobRefused", f"Job {name} is refused: {'; '.join(map(str, causes[:3]))}")
    return job


def _reason(
    flow: JobFlow, phase: FlowPhase, phases: Mapping[str, JobPhase], problems: list[Problem]
) -> tuple[str, str]:
    total = len(steps.templates(flow))
    if phase is FlowPhase.FAILED:
        bad = [f"{steps.job_name(flow.metadata.name, step)} ({each})" for step, each in phases.items() if each in _BAD]
        return "JobFailed", f"No more jobs are made, because of {', '.join(bad)}."
    if phase is FlowPhase.SUCCEED:
        return "AllCompleted", f"All jobs have completed: {total} of {total}."
    if problems:
        return problems[0].reason, problems[0].message
    aborted = [step for step, each in phases.items() if each in (JobPhase.ABORTED, JobPhase.ABORTING)]
    if aborted:
        names = ", ".join(steps.job_name(flow.metadata.name, step) for step in aborted)
        return "JobAborted", f"Waiting for {names}, which was aborted; resume it."
    completed = sum(each is JobPhase.COMPLETED for each in phases.values())
    return IN_PROGRESS, f"{completed} of {total} jobs have completed."


def _status_group(observed: ObservedFlow, after: dict[str, Any], now: int) -> list[Group]:
    """Return the group that writes a changed status, with an event if phase or reason changed; [] for no change."""
    if after == observed.status:
        return []
    flow, state, before = observed.flow, after["state"], observed.flow.status.state
    writes: list[Update | Create] = [Update(JOB_FLOWS, {**about(flow), "status": after}, "status")]
    is_change = (state["phase"], state["reason"]) != (before.phase, before.reason)
    if is_change and state["reason"] != IN_PROGRESS:
        kind = events.NORMAL if state["phase"] == FlowPhase.SUCCEED else events.WARNING
        writes.append(_event(flow, state["reason"], state["message"], now, kind))
    return [Group(writes, key_of(flow))]


def _event(flow: JobFlow, reason: str, message: str, now: int, kind: str = events.NORMAL) -> Create:
    return Create(EVENTS, events.event(about(flow), reason, message, now, component=COMPONENT, kind=kind))
