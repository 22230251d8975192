"""What makes jobs: templates and flows of them, and cron jobs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from kube.meta import Object
from kube.resources import CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES
from proof.simulation.people.desk import Desk, wish
from proof.simulation.people.request import Request, create, delete, name_of, patch
from proof.simulation.people.wishes.jobs import job, task

MAX_FLOWS, MAX_CRONS = 8, 4
MAX_PARTS = 4
AHEAD = 6  # minutes with runs of a new cron job; the next are a year later, so that a world comes to rest
POLICIES = {"Allow": 2, "Forbid": 2, "Replace": 1}


def _spec(desk: Desk) -> Object:
    """Return the spec of a small job; one that has a time to live may be gone before anybody looks."""
    spec: Object = job(desk, [task(desk, replicas=desk.random.randint(1, 2))])["spec"]
    return spec


# ---- templates and flows


@wish(2)
def make_a_template(desk: Desk) -> Request:
    """Where flows may name it."""
    who, name, namespace = desk.submitter(), desk.name("t"), desk.namespace()
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": _spec(desk)}
    return create(who, JOB_TEMPLATES, body, f"{who} makes the job template {name}")


@wish(2, submits=True)
def run_a_flow(desk: Desk) -> Request | None:
    """Of templates that there are, and sometimes of one that is made later, or never."""
    if len(desk.all(JOB_FLOWS)) >= MAX_FLOWS:
        return None
    template = desk.any(JOB_TEMPLATES)
    namespace = desk.namespace() if template is None else template["metadata"]["namespace"]
    names = [name_of(each) for each in desk.all(JOB_TEMPLATES) if each["metadata"]["namespace"] == namespace]
    chosen = desk.random.sample(names, min(len(names), desk.random.randint(1, MAX_PARTS)))
    if not chosen or desk.chance(0.1):
        chosen.append(desk.name("t"))
    parts = [_part(desk, name, chosen[:number]) for number, name in enumerate(chosen)]
    spec = {"flows": parts, "jobRetainPolicy": "delete" if desk.chance(0.3) else "retain"}
    who, name = desk.submitter(), desk.name("f")
    words = f"{who} runs the flow {name} of {', '.join(chosen)}"
    return create(who, JOB_FLOWS, {"metadata": {"name": name, "namespace": namespace}, "spec": spec}, words)


def _part(desk: Desk, name: str, earlier: Iterable[str]) -> Object:
    part: Object = {"name": name}
    targets = [each for each in earlier if desk.chance(0.6)]
    if targets:
        part["dependsOn"] = {"targets": targets}
        if desk.chance(0.2):
            task_statuses = [{"taskName": "main", "phase": desk.one(("Running", "Succeeded"))}]
            part["dependsOn"]["probe"] = {"taskStatusList": task_statuses}
    if desk.chance(0.2):
        part["patch"] = {"jobSpec": {"maxRetry": desk.random.randint(1, 3)}}
    return part


# ---- cron jobs


@wish(1.5, submits=True)
def make_a_cron_job(desk: Desk) -> Request | None:
    """With a few runs in the next minutes."""
    if len(desk.all(CRON_JOBS)) >= MAX_CRONS:
        return None
    spec: Object = {
        "schedule": _schedule(desk),
        "concurrencyPolicy": desk.weighed(POLICIES),
        "jobTemplate": {"spec": _spec(desk)},
    }
    if desk.chance(0.3):
        spec["startingDeadlineSeconds"] = desk.random.randint(10, 300)
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if desk.chance(0.3):
            spec[field] = desk.random.randint(0, 2)
    who, name, namespace = desk.submitter(), desk.name("c"), desk.namespace()
    words = f"{who} makes the cron job {name} ({spec['schedule']}, {spec['concurrencyPolicy']})"
    return create(who, CRON_JOBS, {"metadata": {"name": name, "namespace": namespace}, "spec": spec}, words)


def _schedule(desk: Desk) -> str:
    """Return some of the next minutes of this hour, on this day of the year."""
    soon = datetime.fromtimestamp(desk.picture.now // 1000, UTC) + timedelta(minutes=1)
    minutes = range(soon.minute, min(soon.minute + AHEAD, 60), desk.random.randint(1, 2))
    return f"{','.join(map(str, minutes))} {soon.hour} {soon.day} {soon.month} *"


@wish(0.8)
def suspend_or_resume_a_cron_job(desk: Desk) -> Request | None:
    """As its page does."""
    cron = desk.any(CRON_JOBS)
    if cron is None:
        return None
    who, wanted = desk.whose(cron), not cron["spec"].get("suspend")
    words = f"{who} {'suspends' if wanted else 'resumes'} the cron job {name_of(cron)}"
    return patch(who, CRON_JOBS, cron, {"spec": {"suspend": wanted}}, words)


@wish(0.6)
def change_a_cron_job(desk: Desk) -> Request | None:
    """Its policy, or its times."""
    cron = desk.any(CRON_JOBS)
    if cron is None:
        return None
    who = desk.whose(cron)
    change = (
        {"schedule": _schedule(desk)}
        if desk.chance(0.5)
        else {"concurrencyPolicy": desk.weighed(POLICIES), "failedJobsHistoryLimit": desk.random.randint(0, 2)}
    )
    summary = ", ".join(f"{field} {value}" for field, value in change.items())
    return patch(who, CRON_JOBS, cron, {"spec": change}, f"{who} changes the cron job {name_of(cron)}: {summary}")


@wish(1)
def delete_what_makes_jobs(desk: Desk) -> Request | None:
    """Its jobs go with it, unless they are to be left."""
    resource = desk.one((JOB_FLOWS, CRON_JOBS, JOB_TEMPLATES))
    found = desk.any(resource)
    if found is None:
        return None
    who = desk.whose(found)
    how = {"propagationPolicy": "Orphan"} if desk.chance(0.1) else {}
    words = f"{who} deletes the {resource.kind} {name_of(found)}{' and leaves its jobs' if how else ''}"
    return delete(who, resource, found, words, **how)
