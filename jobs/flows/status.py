"""The status of a flow (reference: volcano-queue-podgroup-cli §7.1).

`jobStatusList` is also the controller's memory: a job that has ended stays in it, so that it is not made again after it
is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from jobs.flows.steps import job_name
from jobs.lifecycle.phases import FINISHED, phase_of
from jobs.made.jobs import OwnedJob
from kube import lenient, meta
from kube.kinds.batch import JobPhase
from kube.kinds.flow import JobFlow
from kube.meta import Object

MAX_HISTORIES = 100  # phases kept in the history of one job
# Each job is in one list: as in Volcano's design, a job on its way to a phase is in the list of that phase.
LIST_OF = {
    JobPhase.PENDING: "pendingJobs",
    JobPhase.RUNNING: "runningJobs",
    JobPhase.RESTARTING: "runningJobs",
    JobPhase.COMPLETING: "completedJobs",
    JobPhase.COMPLETED: "completedJobs",
    JobPhase.FAILED: "failedJobs",
    JobPhase.TERMINATING: "terminatedJobs",
    JobPhase.TERMINATED: "terminatedJobs",
    JobPhase.ABORTING: "unKnowJobs",
    JobPhase.ABORTED: "unKnowJobs",
}


def entries(flow: JobFlow, before: Object, jobs: Mapping[str, OwnedJob], now: int) -> dict[str, dict[str, Any]]:
    """Return the jobStatusList entries of the jobs that were made and count, by the name of the template.

    `jobs` are the existing jobs and those just deleted after they ended, by name. A job that was deleted before it
    ended does not count: it is made again.
    """
    previous = {lenient.text(each, "name"): each for each in lenient.sequence(before, "jobStatusList")}
    current = {}
    for step in flow.spec.flows:
        name = job_name(flow.metadata.name, step.name)
        if name in jobs:
            current[step.name] = _entry(jobs[name], previous.get(name), now)
        elif name in previous and phase_of(lenient.text(previous[name], "state")) in FINISHED:
            current[step.name] = previous[name]
    return current


def status_after(
    before: Object, current: Mapping[str, dict[str, Any]], jobs: Mapping[str, OwnedJob], state: Mapping[str, str]
) -> dict[str, Any]:
    """Return the status of a flow with the entries `current` and this state; other fields of `before` are kept."""
    ours = {*LIST_OF.values(), "jobStatusList", "conditions", "state"}
    status: dict[str, Any] = {key: value for key, value in before.items() if key not in ours}
    for entry in current.values():
        status.setdefault(LIST_OF[phase_of(entry["state"])], []).append(entry["name"])
    conditions = dict(lenient.mapping(before, "conditions"))
    for name in {entry["name"] for entry in current.values()} & jobs.keys():
        job = jobs[name]
        conditions[name] = {"phase": str(job.phase), "createTime": job.metadata.creation_timestamp}
        if job.status.running_duration:
            conditions[name]["runningDuration"] = job.status.running_duration
        if job.status.task_status_count:
            conditions[name]["taskStatusCount"] = msgspec.to_builtins(job.status.task_status_count)
    if current:
        status["jobStatusList"] = list(current.values())
        names = [entry["name"] for entry in current.values()]
        status["conditions"] = {name: conditions[name] for name in names if conditions.get(name)}
    return {**status, "state": dict(state)}


def _entry(job: OwnedJob, before: Object | None, now: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": job.name,
        "state": str(job.phase),
        "startTimestamp": job.metadata.creation_timestamp,
        "restartCount": job.status.retry_count,
    }
    if job.ended:
        entry["endTimestamp"] = job.ended
    is_the_same = lenient.text(before, "startTimestamp") == job.metadata.creation_timestamp
    histories = lenient.sequence(before, "runningHistories") if is_the_same else []
    if not histories or histories[-1].get("state") != str(job.phase):
        moment = meta.timestamp(now)
        ended = [*histories[:-1], {**histories[-1], "endTimestamp": moment}] if histories else []
        histories = [*ended, {"state": str(job.phase), "startTimestamp": moment}][-MAX_HISTORIES:]
    entry["runningHistories"] = histories
    return entry
