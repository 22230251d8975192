"""Prometheus metrics of jobs that wait for room that nobody uses, from the last check (`scheduler.idle_watch`)."""

from __future__ import annotations

from collections.abc import Iterator

from cluster import access
from cluster.access import Actor
from cluster.exposition import Family
from cluster.runtime import idle_room
from kube.resources import POD_GROUPS

PREFIX = "volcano_ui_idle_room"


def families(actor: Actor) -> Iterator[Family]:
    """Yield the metric families, counting only pod groups in namespaces that the actor may see."""
    visible = access.namespaces(actor, POD_GROUPS)
    if not visible or (check := idle_room.last()) is None:
        return
    waits = check.waits(None if isinstance(visible, access.Everywhere) else visible)
    longest = max(((check.at - each.since) / 1000 for each in waits), default=0)
    text = "The longest that a job has waited for which there is room that nobody uses; 0 where there is none"
    yield Family(f"{PREFIX}_wait_seconds", "gauge", text, [({}, longest)])
    text = "How many jobs wait for which there is room that nobody uses"
    yield Family(f"{PREFIX}_waiting_jobs", "gauge", text, [({}, len(waits))])
    text = "Of how many jobs that wait the last check could tell whether there is room"
    yield Family(f"{PREFIX}_judged_jobs", "gauge", text, [({}, check.judged)])
    text = "When that was checked last, in seconds since 1970"
    yield Family(f"{PREFIX}_last_check_timestamp_seconds", "gauge", text, [({}, check.at / 1000)])
