"""The overview of a job's page below its head: tasks, the timeline of the pods, policies and plugins."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.template.loader import render_to_string

from jobs.pages.job import chapters, evictions, fired_policies, plugin_sentences, policy_sentences, timeline
from jobs.pages.job.chapters import Wait
from jobs.pages.job.detail import Detail
from kube.kinds.core import PodPhase


def parts(detail: Detail) -> dict[str, str]:
    """Return the tasks with their gangs, the timeline, and what policies and plugins do, by their ids."""
    bars, marks, chapter = detail.drawn_bars, detail.marks, detail.chapter
    total = detail.total + len(detail.evictions.bars)
    waits = _waits(detail, bars, total)
    rows = [  # each with its named pods and the URLs of their logs in its run
        (row, [(pod, detail.log_url(pod, 0 if row.run == chapter.number else row.run)) for pod in row.named])
        for row in fired_policies.rows(detail.all_marks, detail.chapters)
    ]
    goes_on = detail.shows_living and detail.sees.pods and chapter.times.ended is None
    planned = {task.name: task.replicas for task in detail.job.spec.tasks} if goes_on else {}
    room = timeline.room(bars, waits, planned)
    context = {
        "job": detail.job,
        "sees_pods": detail.sees.pods,
        "tasks": detail.tasks if len(detail.tasks) > 1 or not detail.shows_living else [],
        "summaries": timeline.summaries(bars),
        "timeline": _drawn(detail, marks, waits, room),
        "room": room,
        "waits": waits,
        "marks": [mark for mark in marks if mark.firing is None],
        "base": urlencode(detail.query),
        "shown": len(bars),
        "pods": total,
        "legend": timeline.legend(bars),
        "fired": [each for each in rows if each[0].run == chapter.number],
        "elsewhere": [each for each in rows if each[0].run != chapter.number],
        "of": detail.stored.uid if detail.deleted else "",
        "delayed": detail.delayed_actions,
        "policies": policy_sentences.of_job(detail.stored.object),
        "restarts": policy_sentences.restarts(detail.stored.object),
        "plugins": plugin_sentences.of_job(detail.stored.object),
    }
    names = ("timeline", "tasks", "policies", "plugins")
    return {f"job-{name}": render_to_string(f"jobs/_{name}.html", context) for name in names}


def _waits(detail: Detail, bars: Sequence[timeline.Bar], total: int) -> Sequence[Wait]:
    """Return the waits of the run; if all pods have bars, also those between an eviction and the next start."""
    times, needed = detail.chapter.times, detail.job.spec.min_available
    if len(bars) != total or needed <= 0 or not any(bar.state == "evicted" for bar in bars):
        return chapters.waits(times)
    placed = chapters.stretches_with([(bar.scheduled, bar.left) for bar in bars if bar.scheduled is not None], needed)
    ran = chapters.stretches_with([(bar.started, bar.left) for bar in bars if bar.started is not None], needed)
    return chapters.waits_of_gang(times, placed, ran)


def _drawn(detail: Detail, marks: Sequence[timeline.Mark], waits: Sequence[Wait], room: int) -> str:
    """Return what the browser draws; if not all pods have bars, the lanes say how many there are."""
    job, times, bars, evicted = detail.job, detail.chapter.times, detail.drawn_bars, detail.evictions
    causes = {
        bar.pod.metadata.uid: evictions.cause_of(bar.pod, evicted.every) for bar in bars if bar.state == "evicted"
    }
    if len(bars) == detail.total + len(evicted.bars):
        met = chapters.nth([bar.started for bar in bars], job.spec.min_available)
        return timeline.data(job, bars, times.begun, marks, waits, met=met, causes=causes, room=room)
    totals = {name: each.total - each.failed for name, each in detail.tasks}
    totals[PodPhase.FAILED.value] = sum(each.failed for _, each in detail.tasks)
    return timeline.data(
        job, bars, times.begun, marks, waits, met=times.running, totals=totals, causes=causes, room=room
    )
