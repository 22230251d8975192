"""The head of a job's page: its phase and gang, why it waits or has failed, its steps and its runs."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.template.loader import render_to_string

from cluster.rules import simulation
from jobs.lifecycle import causes, phases
from jobs.pages.job import chapters, evictions, fired_policies, milestones, why_waiting
from jobs.pages.job.detail import Detail
from jobs.pages.job.evictions import Notice, Summary
from jobs.sweeps.record import sweep_of
from kube import pod_health
from scheduler.engine.cause import ExclusionKind


def parts(detail: Detail, *, was_alive: bool = False) -> dict[str, str]:
    """Return the parts "head" (phase, gang, why pods failed or wait, steps) and "runs" by their ids.

    was_alive: the reader saw the job alive, and is told that it is gone.
    """
    images = [] if detail.deleted else why_waiting.images_of(pod for _, pod in detail.pods)
    summed_up, notice = causes.summed_up(detail.failures), _notice(detail)
    context = {
        "gone": was_alive,
        "namespace": detail.stored.namespace,
        "name": detail.stored.name,
        "job": detail.job,
        "stored": detail.stored,
        "deleted": detail.deleted,
        "stuck": () if detail.is_past else detail.health.words,
        "phase": detail.phase,
        "now": detail.job.phase if detail.is_past else "",
        "progress": detail.gang,
        "base": urlencode(detail.query),
        "otherwise": summed_up.others,
        "causes": [(each, [(pod, detail.log_url(pod.name)) for pod in each.pods]) for each in summed_up.groups],
        "message": _message(detail),
        "why": detail.reasons,
        "waiting": detail.waiting,
        "images": images,
        "told_of_images": bool(images)
        and detail.waiting.reason == pod_health.Cause.IMAGE
        and len(detail.health.troubled) < 2,
        "wish": _wish(detail),
        "notice": notice,
        "evictions": _eviction_summary(detail, notice),
        "steps": milestones.steps(detail.chapter),
        "chapters": detail.chapters,
        "chapter": detail.chapter,
        "of": detail.stored.uid if detail.deleted else "",
        "kept_days": settings.JOB_HISTORY_DAYS,
        "ran": detail.ran,
        "restarts": chapters.restarts(detail.job.status.retry_count, detail.job.spec.max_retry, detail.chapters),
        "evicted": detail.evictions.times,
        "simulated": detail.simulated,
        "pods": detail.total,
        "sweep": sweep_of(detail.stored.object),
    }
    return {f"job-{part}": render_to_string(f"jobs/_{part}.html", context) for part in ("head", "runs")}


def _message(detail: Detail) -> str:
    """Return the controller's message on a job that is over or ending, without the causes shown beside it."""
    if detail.is_past or detail.job.phase in phases.RUNS:  # the progress is beside the phase already
        return ""
    state = detail.job.status.state
    message = (state.summary if detail.failures else "") or state.message
    return message if detail.deleted else f"{message} {state.next}".rstrip()


def _wish(detail: Detail) -> str:
    """Return what to write to run pods on simulated nodes, if their taint is among the reasons; else ""."""
    cause = detail.group.cause if detail.group and detail.waiting.why else None
    taints = [each.display for _, each in cause.excluded if each.kind == ExclusionKind.TAINT] if cause else []
    return simulation.WISH if any(each.startswith(f"{simulation.SIMULATED}=") for each in taints) else ""


def _notice(detail: Detail) -> Notice | None:
    """Return the last evictions while the job is affected by them."""
    every = detail.evictions.every
    if detail.deleted or not every:
        return None
    here = detail.chapters[-1].number
    fired = [row for row in fired_policies.rows(detail.all_marks, detail.chapters) if row.run == here]
    # Evicted pods may still be ending, or wait for a node again.
    misses = any(pod.evicted is not None for _, pod in detail.pods)
    if not misses and detail.waiting.pods:
        evicted = {bar.pod.metadata.name for bar in detail.evictions.bars}
        lacking = [pod for _, pod in detail.pods if not pod.spec.node_name and pod.metadata.name in evicted]
        misses = bool(lacking) or not detail.reads_all
    return evictions.notice(detail.job, every, fired, misses=misses)


def _eviction_summary(detail: Detail, notice: Notice | None) -> Summary | None:
    """Return how often the job was evicted in all of its runs, and for whom; None if once, as the notice says that."""
    if detail.is_past:
        return None
    summary = evictions.summary(detail.evictions.every, detail.evictions.left_alone_until)
    return None if summary is not None and summary.times == 1 and notice else summary
