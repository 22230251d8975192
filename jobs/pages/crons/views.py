"""The cron job pages."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from cluster import access, api, clock
from cluster.store import store
from dashboard.pages import events
from dashboard.pages.errors import explained
from dashboard.parts import responses
from jobs.crons import plan
from jobs.pages import objects
from jobs.pages.crons import listing
from jobs.pages.crons.listing import Detail
from kube.errors import ApiError
from kube.kinds.batch import CronJob
from kube.resources import CRON_JOBS, JOBS


@require_GET
@login_required
@explained
def cron_list(request: HttpRequest) -> HttpResponse:
    view = listing.SPEC.read(request.GET)
    table = listing.table(access.of(request), view, clock.milliseconds())
    return responses.listing(request, "crons/list.html", table)


@require_GET
@login_required
@explained
def cron_detail(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    actor = access.of(request)
    with store.reading() as revision:
        detail = Detail.of(actor, namespace, name, clock.milliseconds())
        table = detail.job_table(listing.JOBS_SPEC.read(request.GET))
        table.revision = revision
        context = {
            "stored": detail.stored,
            "parts": detail.parts(actor).parts,
            "topic": detail.topic,
            **events.about(actor, detail.stored.uid, namespace),
        }
    return responses.listing(request, "crons/detail.html", table, **context)


@require_POST
@login_required
@explained
def set_suspended(request: HttpRequest, namespace: str, name: str, *, wish: bool) -> HttpResponse:
    """Suspend or resume a cron job."""
    try:
        api.patch(access.of(request), CRON_JOBS, namespace, name, {"spec": {"suspend": wish}})
    except ApiError as error:
        responses.refuse(request, error)
    else:
        effect = "makes no jobs until it is resumed; those that run go on." if wish else "makes jobs again."
        responses.say(request, f"Cron job {name} {effect}")
    return redirect("cronjobs:detail", namespace, name)


@require_POST
@login_required
@explained
def run_now(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Make a job of a cron job now, whatever its schedule says."""
    actor = access.of(request)
    cron = objects.read(actor, CRON_JOBS, namespace, name).read(CronJob)
    try:
        job = api.create(actor, JOBS, plan.by_hand(cron))
    except ApiError as error:
        responses.refuse(request, error)
        return redirect("cronjobs:detail", namespace, name)
    responses.say(request, f"Job {job.name} was made.")
    return redirect("jobs:detail", namespace, job.name)


@require_POST
@login_required
@explained
def cron_delete(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    text = f"Cron job {name} is deleted, and its jobs with it."
    key = namespace, name
    return responses.delete(request, CRON_JOBS, key, text, page="cronjobs:detail", listing="cronjobs:list")
