"""The cron job controller: makes jobs at their times, and keeps the status of cron jobs.

Reads cron jobs and the jobs that were made for them. For each cron job a
timer is set for the time that comes next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cluster.api.cluster_view import ClusterView
from cluster.store import Create, Group, store
from cluster.writes import Timer
from jobs.consumers import maker
from jobs.consumers.maker import AGAIN, AGAIN_MS, DUE, Family, Maker, MakerState
from jobs.crons import plan
from jobs.crons.plan import Known, Notice, Run
from kube import events
from kube.kinds.batch import CronJob
from kube.resources import CRON_JOBS, EVENTS

NAME = "cronjobs"
log = logging.getLogger(__name__)


class CronConsumer(Maker):
    """Makes the jobs of cron jobs."""

    name = NAME
    kind = CRON_JOBS

    def unfinished(self) -> list[str]:
        """Return the keys of all cron jobs: none is ever over."""
        return list(store.names(CRON_JOBS).values())

    def look(self, state: MakerState, families: Sequence[Family], now: int) -> Iterator[Group | Timer]:
        """Make the jobs whose time has come, and keep the status."""
        every = {family.owner.key: _known(family) for family in _readable(families)}
        runs = dict(_wanted(every, now))
        known = {key: every[key] for key in runs}
        wanted = {f"{known[key].cron.metadata.namespace}/{run.name}": key for key, run in runs.items() if run}
        made = {f"{each.cron.metadata.namespace}/{job.name}" for each in known.values() for job in each.jobs}
        taken = maker.holders([key for key in wanted if key not in made], state, wanted)
        names = {wanted[key] for key in taken}
        view = maker.view()
        for key, each in known.items():
            yield from _look_at(state, each, runs[key], view, now, is_taken=key in names)


def _wanted(known: Mapping[str, Known], now: int) -> Iterator[tuple[str, Run | None]]:
    """Yield by its key the run that each cron job wants now; one that cannot be planned never stops the others."""
    for key, each in known.items():
        try:
            yield key, plan.wanted(each.cron, now)
        except Exception:
            log.exception("cron job %s cannot be planned; it waits until something about it changes", key)


def _look_at(
    state: MakerState, known: Known, run: Run | None, view: ClusterView, now: int, *, is_taken: bool
) -> Iterator[Group | Timer]:
    """Look at one cron job; one that cannot be planned is left as it is, and never stops the others."""
    cron = known.cron
    key = f"{cron.metadata.namespace}/{cron.metadata.name}"
    try:
        outcome = plan.reconcile(known, run, view, now, is_taken=is_taken)
    except Exception:
        log.exception("cron job %s cannot be planned; it waits until something about it changes", key)
        return
    if outcome.writes:
        yield Group(outcome.writes, key)
    if outcome.notice is not None and run is not None:
        yield from _tell(state, known, run, outcome.notice, now)
    if outcome.due is not None:
        yield Timer(DUE, key, outcome.due)
    if outcome.refused:
        yield Timer(AGAIN, key, now + AGAIN_MS)


def _tell(state: MakerState, known: Known, run: Run, notice: Notice, now: int) -> Iterator[Group]:
    """Say why the job of a time is not made: once for each time and reason."""
    cron = known.cron
    key, told = f"{cron.metadata.namespace}/{cron.metadata.name}", f"{run.at} {notice.reason}"
    if state.told.get(key) != told:
        state.told[key] = told
        about = plan.about(cron)
        event = events.event(about, notice.reason, notice.message, now, component=plan.COMPONENT, kind=events.WARNING)
        yield Group([Create(EVENTS, event)])


def _known(family: Family) -> Known:
    return Known(
        family.owner.read(CronJob),
        family.owner.object.get("status") or {},
        list(family.jobs.values()),
        list(family.gone.values()),
    )


def _readable(families: Sequence[Family]) -> Iterator[Family]:
    """Yield the families whose cron job can be read."""
    for family in families:
        try:
            family.owner.read(CronJob)
        except msgspec.ValidationError as error:
            log.error("ignored cron job %s, which cannot be read: %s", family.owner.key, error)
        else:
            yield family
