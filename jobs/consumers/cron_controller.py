"""The cron job controller: makes jobs at their times, and keeps the status of cron jobs.

Reads cron jobs and the jobs that were made for them, and sets a timer for the next scheduled time of each cron job.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from cluster.api.cluster_view import ClusterView
from cluster.store import Create, Group, store
from cluster.writes import Timer
from jobs.consumers import maker
from jobs.consumers.maker import AGAIN, AGAIN_MS, DUE, Family, Maker, MakerState
from jobs.crons import plan
from jobs.crons.plan import ObservedCronJob, Run
from kube import events
from kube.kinds.batch import CronJob
from kube.resources import CRON_JOBS, EVENTS

NAME = "cronjobs"
log = logging.getLogger(__name__)


class CronConsumer(Maker):
    name = NAME
    kind = CRON_JOBS

    def unfinished(self) -> list[str]:
        """Return the keys of all cron jobs: none is ever over."""
        return list(store.names(CRON_JOBS).values())

    def plan_families(self, state: MakerState, families: Sequence[Family], now: int) -> Iterator[Group | Timer]:
        """Make the jobs whose time has come, and keep the status."""
        observed: dict[str, ObservedCronJob] = {}
        runs: dict[str, Run | None] = {}
        for family, cron in maker.readable(families, CronJob):
            key = family.owner.key
            try:
                runs[key] = plan.wanted(cron, now)
            except Exception:
                log.exception("cron job %s cannot be planned; it waits until something about it changes", key)
                continue
            status = family.owner.object.get("status") or {}
            observed[key] = ObservedCronJob(cron, status, [*family.jobs.values()], [*family.deleted.values()])
        wanted = {f"{observed[key].cron.metadata.namespace}/{run.name}": key for key, run in runs.items() if run}
        existing = {f"{each.cron.metadata.namespace}/{job.name}" for each in observed.values() for job in each.jobs}
        occupied = maker.holders([key for key in wanted if key not in existing], state, wanted)
        names = {wanted[key] for key in occupied}
        view = ClusterView()
        for key, each in observed.items():
            yield from _plan_one(state, each, runs[key], view, now, is_occupied=key in names)


def _plan_one(
    state: MakerState, observed: ObservedCronJob, run: Run | None, view: ClusterView, now: int, *, is_occupied: bool
) -> Iterator[Group | Timer]:
    """Plan one cron job; if that raises, it is left as it is and the others are planned all the same."""
    cron = observed.cron
    key = f"{cron.metadata.namespace}/{cron.metadata.name}"
    try:
        outcome = plan.reconcile(observed, run, view, now, is_occupied=is_occupied)
    except Exception:
        log.exception("cron job %s cannot be planned; it waits until something about it changes", key)
        return
    if outcome.writes:
        yield Group(outcome.writes, key)
    # The event that says why no job was made is sent once for each scheduled time and reason.
    notice = outcome.notice
    if notice is not None and run is not None and state.last_notices.get(key) != f"{run.at} {notice.reason}":
        state.last_notices[key] = f"{run.at} {notice.reason}"
        about = plan.about(cron)
        event = events.event(about, notice.reason, notice.message, now, component=plan.COMPONENT, kind=events.WARNING)
        yield Group([Create(EVENTS, event)])
    if outcome.due is not None:
        yield Timer(DUE, key, outcome.due)
    if outcome.refused:
        yield Timer(AGAIN, key, now + AGAIN_MS)
