"""Which cron jobs are accepted, and their defaults (reference: volcano-queue-podgroup-cli §7.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.rules.pod import templates
from jobs.crons import schedule
from jobs.crons.schedule import ScheduleError
from jobs.made import jobs
from jobs.rules.admission import JobRulesView
from kube import lenient
from kube.errors import Cause, invalid, required
from kube.meta import Object

DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}
LONGEST_NAME = 52  # a job's name adds a dash and the minute, and must fit in a label
_SUFFIX = "-00000000"
_TEMPLATE = "spec.jobTemplate.spec"


def default(cron: Object, old: Object | None, _view: JobRulesView) -> None:
    """Fill in a cron job's defaults; those of its template are filled in when a job is made."""
    spec = cron.get("spec")
    if not isinstance(spec, dict):
        return
    for field, value in DEFAULTS.items():
        if spec.get(field) in (None, ""):
            spec[field] = value
    template = spec.get("jobTemplate")
    if isinstance(template, dict):
        jobs.default_spec(template, lenient.mapping(old, "spec", "jobTemplate"))


def validate(cron: Object, old: Object | None, view: JobRulesView) -> list[Cause]:
    """Return everything that is wrong with a cron job that is created or changed.

    A field that has not changed is not checked again: rules may have become stricter, and time zones may be gone.
    """
    spec = lenient.mapping(cron, "spec")
    before = lenient.mapping(old, "spec") if old else {}
    causes = []
    name = lenient.text(cron, "metadata", "name")
    if old is None and len(name) > LONGEST_NAME:
        detail = f"must be no more than {LONGEST_NAME} characters, as its jobs have the minute behind it; shorten it."
        causes.append(invalid("metadata.name", name, detail))
    when = ("schedule", "timeZone")
    if old is None or any(spec.get(field) != before.get(field) for field in when):
        causes += _check_times(spec)
    template = lenient.mapping(spec, "jobTemplate")
    if old is not None and spec.get("jobTemplate") == before.get("jobTemplate"):
        return causes
    if not lenient.mapping(template, "spec"):
        return [*causes, required(_TEMPLATE, "describe the jobs that are made: add tasks.")]
    namespace = lenient.text(cron, "metadata", "namespace")
    causes += templates.check_metadata(lenient.mapping(template, "metadata"), "spec.jobTemplate.metadata")
    return [*causes, *jobs.check_spec(_longest(cron), namespace, template["spec"], view, _TEMPLATE)]


def warn(cron: Object, old: Object | None, view: JobRulesView) -> list[str]:
    """Return warnings about a new cron job that is accepted; none for a change."""
    if old is not None:
        return []
    wanted = lenient.mapping(cron, "spec", "jobTemplate", "spec")
    return jobs.warnings(_longest(cron), lenient.text(cron, "metadata", "namespace"), wanted, view, _TEMPLATE)


def _check_times(spec: dict[str, Any]) -> Iterator[Cause]:
    text, name = lenient.text(spec, "schedule"), lenient.text(spec, "timeZone")
    if not text.strip():
        yield required("spec.schedule", "say when jobs are made, such as 0 2 * * * for each day at two.")
    where = schedule.zone("")
    try:
        where = schedule.zone(name)
    except ScheduleError as error:
        yield invalid("spec.timeZone", name, str(error))
    if spec.get("timeZone") == "":
        yield invalid("spec.timeZone", "", "must not be empty; name a time zone, or leave it out for UTC.")
    if text.strip():
        try:
            schedule.parse(text, where, created=0)
        except ScheduleError as error:
            yield invalid("spec.schedule", text, str(error))


def _longest(cron: Object) -> str:
    """Return a cron job's name with the suffix of a job's name, to check the length."""
    name = lenient.text(cron, "metadata", "name") or lenient.text(cron, "metadata", "generateName") + "x" * 5
    return name + _SUFFIX
