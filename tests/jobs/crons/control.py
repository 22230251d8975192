"""Cron jobs, as people write them and as the controller finds them, and their stories."""

from __future__ import annotations

import copy

from cluster.store import Create, Patch, store
from jobs.crons import admission
from kube import meta
from kube.resources import CRON_JOBS
from tests.jobs import made
from tests.jobs.builders import CLUSTER
from tests.jobs.made import PLACE, end, job_names, settle, spec

NIGHT = "2026-03-01T00:00:30Z"  # when the clock of tests begins


def cron(schedule="*/10 * * * *", name="c", **fields):
    """A cron job with its defaults."""
    template = fields.pop("jobTemplate", {"spec": spec()})
    obj = {
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {"schedule": schedule, "jobTemplate": template, **fields},
    }
    admission.default(obj, None, CLUSTER)
    return obj


def submit(obj):
    return store.write(Create(CRON_JOBS, obj))[0]


def status(name="c"):
    return store.get(CRON_JOBS, PLACE, name).object.get("status") or {}


def name_at(moment):
    """How the job of a time of the first night is called, such as `00:10`."""
    return f"c-{meta.parse_time(f'2026-03-01T{moment}:00Z') // 60_000}"


def refusals(obj, old=None):
    """What is wrong with a cron job: field → message."""
    written = copy.deepcopy(obj)
    admission.default(written, old, CLUSTER)
    return {cause.field: cause.message for cause in admission.validate(written, old, CLUSTER)}


class Story(made.Story):
    """A cron job and its jobs, each by its time; a number is how many minutes pass, `00:10 Running` a job that comes to a phase."""

    consumer, kind, name = "cronjobs", CRON_JOBS, "c"

    def called(self, job):
        return name_at(job)

    def does(self, step):
        verb, *words = step.split()
        if verb.lstrip("-").isdigit():
            self.clock.move(int(verb) * 60)
            settle(self.controller)
        elif verb[0].isdigit():
            end(name_at(verb), *words)
        else:
            super().does(step)

    def seen(self):
        names = {
            name_at(f"{hour:02}:{minute:02}"): f"{hour:02}:{minute:02}" for hour in range(6) for minute in range(60)
        }
        return {
            "jobs": " ".join(names[name] for name in job_names()),
            "active": " ".join(names[each["name"]] for each in status().get("active", ())),
            "last": status().get("lastScheduleTime", "")[11:16],
            "completed": status().get("lastSuccessfulTime", ""),
            **self.reasons(),
        }

    def resume(self):
        store.write(Patch(CRON_JOBS, PLACE, "c", {"spec": {"suspend": False}}))
