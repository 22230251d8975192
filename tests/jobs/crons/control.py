"""Cron jobs, as people write them and as the controller finds them."""

from __future__ import annotations

import copy

from cluster.store import Create, store
from jobs.crons import admission
from kube import meta
from kube.resources import CRON_JOBS
from tests.jobs.builders import CLUSTER
from tests.jobs.made import PLACE, spec

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


def name_at(moment, name="c"):
    """How the job of a time of the first night is called, such as `00:10`."""
    return f"{name}-{meta.parse_time(f'2026-03-01T{moment}:00Z') // 60_000}"


def refusals(obj, old=None):
    """What is wrong with a cron job: field → message."""
    written = copy.deepcopy(obj)
    admission.default(written, old, CLUSTER)
    return {cause.field: cause.message for cause in admission.validate(written, old, CLUSTER)}
