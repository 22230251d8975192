"""Reports of this cluster's state for the pages of the other clusters, for as long as its `up` runs."""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings
from django.db import connection

from cluster import clock
from cluster.remote import freshness
from cluster.remote.door import server
from cluster.remote.freshness import Freshness, State
from cluster.runtime.outage import AWAY, Outage
from cluster.several import reports
from cluster.several.entries import EMBEDDED
from cluster.several.reports import Report

log = logging.getLogger(__name__)


async def report_forever() -> None:
    """Report every few seconds. Without reports the other pages soon show this cluster as not running."""
    outage = Outage("reporting how this cluster is", log)
    while True:
        try:
            await asyncio.to_thread(_report_from_thread)
            outage.over()
        except (*AWAY, OSError) as error:
            outage.lasts(error)
        await asyncio.sleep(reports.EVERY_S)


def report() -> None:
    """Write the present state of this cluster to its report file."""
    current = freshness.current() or Freshness(settings.CLUSTER_NAME, State.LIVE)
    way: str = EMBEDDED
    if settings.TARGET is not None:
        permits = server.permits()
        way = permits.way if permits.has_answered else ""
    written = Report(current.word, way, current.since, current.why, clock.milliseconds())
    reports.write(reports.folder(settings.STATE), settings.CLUSTER_NAME, written)


def _report_from_thread() -> None:
    try:
        report()
    finally:
        connection.close()
