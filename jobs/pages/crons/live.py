"""The topics of the cron job pages."""

from __future__ import annotations

from django.template.loader import render_to_string

from cluster import clock
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.parts.buttons import no_buttons
from jobs.pages.crons import listing
from jobs.pages.crons.listing import Detail
from kube.errors import NotFound
from kube.resources import CRON_JOBS


@live.topic(listing.SPEC.name)
def cron_list(request: TopicRequest) -> Parts:
    """The list of cron jobs."""
    view = listing.SPEC.read(request.params)
    return listing.table(request.actor, view, clock.milliseconds()).parts()


@live.topic("cronjobs:detail")
def cron_detail(request: TopicRequest) -> Parts:
    """One cron job: what may be done with it, its facts and its calendar."""
    try:
        return _shown(request).parts(request.actor)
    except NotFound:
        place, name = (request.params.get(each, "") for each in ("namespace", "name"))
        gone = render_to_string("crons/_gone.html", {"namespace": place, "name": name})
        return Parts(
            {"cron-head": gone, "cron-actions": no_buttons("cron-actions")}, watches=[Watch(CRON_JOBS.id, place, name)]
        )


@live.topic(listing.JOBS_SPEC.name)
def cron_jobs(request: TopicRequest) -> Parts:
    """The jobs that were made for one cron job."""
    return _shown(request).job_table(listing.JOBS_SPEC.read(request.params)).parts()


def _shown(request: TopicRequest) -> Detail:
    place, name = (request.params.get(each, "") for each in ("namespace", "name"))
    return Detail.of(request.actor, place, name, clock.milliseconds())
