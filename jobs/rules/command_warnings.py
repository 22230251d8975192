"""Warnings for a client whose Command the job will ignore, such as one to suspend a finished job.

Such Commands are still accepted, as in Volcano; the pages do not offer them.
"""

from __future__ import annotations

import msgspec

from jobs.lifecycle.reading import Job
from jobs.rules import actions
from jobs.rules.admission import JobRulesView
from kube import lenient
from kube.meta import Object
from kube.resources import JOBS


def warn(command: Object, _old: Object | None, view: JobRulesView) -> list[str]:
    """Return why a Command has no effect, if its target is a job that now ignores the action; else []."""
    target = lenient.mapping(command, "target")
    action = next((each for order, each in actions.BY_ORDER.items() if order == command.get("action")), None)
    if action is None or (target.get("apiVersion"), target.get("kind")) != (JOBS.api_version, JOBS.kind):
        return []
    name = lenient.text(target, "name")
    job = view.get(JOBS, lenient.text(command, "metadata", "namespace"), name)
    problem = actions.problem(action, msgspec.convert(job, Job)) if job else ""
    return [f"target: The job {name} stays as it is. {problem}"] if problem else []
