"""The topics of the queue pages."""

from __future__ import annotations

from cluster import access
from dashboard import cluster_usage, live
from dashboard.live import Parts, TopicRequest
from dashboard.parts import scope
from kube.resources import CONFIGMAPS, JOBS, PRIORITY_CLASSES
from kube.volcano.scheduler_configuration import NAME, NAMESPACE
from queues import listing
from queues.scheduler import decisions
from queues.scheduler import parts as scheduler


@live.topic(listing.SPEC.name)
def queue_list(request: TopicRequest) -> Parts:
    """The list of queues."""
    return listing.table(request.actor, listing.SPEC.read(request.params)).parts()


@live.topic("queues:detail")
def queue_detail(request: TopicRequest) -> Parts:
    """One queue: its actions, facts and use, and the waiting jobs in their order."""
    jobs = scope.watches(JOBS.id, "", access.namespaces(request.actor, JOBS))
    order = [live.Watch(PRIORITY_CLASSES.id), live.Watch(CONFIGMAPS.id, NAMESPACE, NAME)]
    watches = [*cluster_usage.WATCHES, *jobs, *order]
    return Parts(listing.parts(request.actor, request.params.get("name", ""))[1], watches=watches)


@live.topic(scheduler.TOPIC)
def scheduler_page(request: TopicRequest) -> Parts:
    """The scheduler's configuration as it is in force, and its versions."""
    return Parts(scheduler.read_parts(request.actor)[1], watches=[live.Watch(CONFIGMAPS.id, NAMESPACE, NAME)])


@live.topic(decisions.SPEC.name)
def scheduler_decisions(request: TopicRequest) -> Parts:
    """The decisions of the scheduler."""
    return decisions.table(request.actor, decisions.SPEC.read(request.params)).parts()


@live.topic(listing.JOBS_SPEC.name)
def queue_jobs(request: TopicRequest) -> Parts:
    """The jobs in one queue."""
    view = listing.JOBS_SPEC.read(request.params)
    return listing.job_table(request.actor, request.params.get("name", ""), view).parts()
