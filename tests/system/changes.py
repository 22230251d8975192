"""Every place of the pages that changes something in the cluster, and what is needed to do each of them once."""

from __future__ import annotations

import json
from typing import NamedTuple

from kube.resources import CONFIGMAPS, CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, JOBS, NAMESPACES, QUEUES
from proof.systems.work import job, shell
from tests.builders import of

LASTING = ("long", "paused", "to-restart", "to-suspend", "to-complete", "to-terminate", "to-delete")  # jobs


class Change(NamedTuple):
    """A place that changes the cluster: its address, what is sent there, and what the cluster's audit then has.

    A command is a deed done to its job or queue there. With `opened` the fields are those of the form that the page shows, and these are changed in it.
    """

    name: str
    path: str
    fields: dict[str, str]
    verb: str
    kind: object
    opened: bool = False


# In an order in which each can be done after those before it.
CHANGES = (
    Change("jobs:new", "/jobs/new/", {"text": json.dumps(job("made", shell("true")))}, "create", JOBS),
    Change("jobs:scale", "/jobs/default/long/scale/", {"tasks.0.replicas": "2"}, "update", JOBS, opened=True),
    Change("jobs:edit", "/jobs/default/long/edit/", {"labels": "team: vision"}, "update", JOBS, opened=True),
    Change("jobs:restart", "/jobs/default/to-restart/restart/", {}, "RestartJob", JOBS),
    Change("jobs:suspend", "/jobs/default/to-suspend/suspend/", {}, "AbortJob", JOBS),
    Change("jobs:resume", "/jobs/default/paused/resume/", {}, "ResumeJob", JOBS),
    Change("jobs:complete", "/jobs/default/to-complete/complete/", {}, "CompleteJob", JOBS),
    Change("jobs:terminate", "/jobs/default/to-terminate/terminate/", {}, "TerminateJob", JOBS),
    Change("jobs:delete", "/jobs/default/to-delete/delete/", {}, "delete", JOBS),
    Change("sweeps:new", "/sweeps/-/new/", {}, "create", CONFIGMAPS),
    Change("sweeps:delete", "/sweeps/default/old/delete/", {}, "delete", CONFIGMAPS),
    Change("jobs:template-new", "/jobs/-/templates/", {"do": "save"}, "create", JOB_TEMPLATES, opened=True),
    Change("flows:run", "/flows/-/templates/default/steps/run/", {}, "create", JOBS),
    Change("flows:delete", "/flows/default/flow/delete/", {}, "delete", JOB_FLOWS),
    Change("flows:delete-template", "/flows/-/templates/default/steps/delete/", {}, "delete", JOB_TEMPLATES),
    Change("cronjobs:suspend", "/cronjobs/default/nightly/suspend/", {}, "patch", CRON_JOBS),
    Change("cronjobs:resume", "/cronjobs/default/nightly/resume/", {}, "patch", CRON_JOBS),
    Change("cronjobs:run", "/cronjobs/default/nightly/run/", {}, "create", JOBS),
    Change("cronjobs:delete", "/cronjobs/default/nightly/delete/", {}, "delete", CRON_JOBS),
    Change("queues:new", "/queues/-/new/", {"name": "fresh", "weight": "1"}, "create", QUEUES),
    Change("queues:edit", "/queues/spare/edit/", {"weight": "3"}, "patch", QUEUES),
    Change("queues:set-state", "/queues/spare/close/", {}, "CloseQueue", QUEUES),
    Change("queues:delete", "/queues/closed/delete/", {}, "delete", QUEUES),
    Change("dashboard:create-namespace", "/access/namespaces/", {"name": "fresh"}, "create", NAMESPACES),
)


def objects():
    """Return the kinds and objects that are changed, beside a sweep named old."""
    spec = job("steps", shell("true"))["spec"]
    cron = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
    return [
        *((JOBS, job(name, shell("sleep 3600", cpu="10m", terminationGracePeriodSeconds=0))) for name in LASTING),
        (JOBS, job("ended", shell("true"))),
        (JOB_TEMPLATES, of(JOB_TEMPLATES, "steps", **spec)),
        (JOB_FLOWS, of(JOB_FLOWS, "flow", flows=[{"name": "steps"}])),
        (CRON_JOBS, of(CRON_JOBS, "nightly", **cron)),
        (CRON_JOBS, of(CRON_JOBS, "resting", **cron, suspend=True)),
        (QUEUES, of(QUEUES, "spare", weight=1)),
        (QUEUES, of(QUEUES, "closed", weight=1, state="Closed")),
    ]


def sweep(person, name):
    text = json.dumps(job(name, shell("echo {{number}}")))
    return person.post("/sweeps/-/new/", text=text, do="submit", **{"grid-number": "1, 2"})


def send(person, change):
    if change.name == "sweeps:new":
        return sweep(person, "young")
    return (person.fill if change.opened else person.post)(change.path, **change.fields)
