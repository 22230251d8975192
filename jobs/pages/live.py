"""The topics of the job pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.template.loader import render_to_string

from cluster import clock
from cluster.store import decisions as decision_store
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.parts import decisions
from dashboard.parts.buttons import no_buttons
from jobs.lifecycle import progress
from jobs.pages.job import buttons, effective, event_list, head, pod_table, timeline_parts
from jobs.pages.job.detail import Detail
from jobs.pages.job_list import kubernetes_jobs, listing
from jobs.pages.logs import tab
from jobs.rules import yaml_write
from kube.errors import NotFound
from kube.resources import COMMANDS, EVENTS, JOBS, PODS

MAX_DECISIONS = 200
SOON_MS = 1000  # the delayed action has happened by then, after its due time


@live.topic("jobs:list")
def job_list(request: TopicRequest) -> Parts:
    """The list of jobs."""
    return listing.table(request.actor, listing.SPEC.read(request.params)).parts()


@live.topic("jobs:kubernetes")
def kubernetes_list(request: TopicRequest) -> Parts:
    """The list of Jobs of `batch/v1`."""
    return kubernetes_jobs.table(request.actor, kubernetes_jobs.SPEC.read(request.params)).parts()


def _of_job(show: Callable[[Detail, TopicRequest], Parts]) -> Callable[[TopicRequest], Parts]:
    """Let a topic read its job; if that is deleted while somebody views it, the page says so."""

    def render(request: TopicRequest) -> Parts:
        namespace, name = request.params.get("namespace", ""), request.params.get("name", "")
        try:
            run = run_of(request.params)
            return show(Detail.of(request.actor, namespace, name, run), request)
        except NotFound:
            watches = [Watch(JOBS.id, namespace=namespace, name=name)]
        # A deleted job is shown from its record; without a record it is shown as gone.
        try:
            detail = Detail.of_deleted(request.actor, namespace, name, run=run_of(request.params))
        except NotFound:
            html = render_to_string("jobs/_why.html", {"gone": True, "namespace": namespace, "name": name})
            return Parts({"job-why": html, "job-actions": no_buttons("job-actions")}, watches=watches)
        shown = {**head.parts(detail, was_alive=True), "job-actions": buttons.html(detail, request.actor)}
        return Parts(shown, watches=watches)

    render.__module__ = __name__
    return render


@live.topic("jobs:detail")
@_of_job
def job_head(detail: Detail, request: TopicRequest) -> Parts:
    """Phase, gang, why the job waits, its steps, its buttons and the result of the last action."""
    action, again = buttons.outcome(detail, clock.milliseconds())
    more = {"job-actions": buttons.html(detail, request.actor), "job-asked": action}
    again = min(
        (due for due in (again, detail.waiting.again, detail.evictions.left_alone_until) if due is not None),
        default=None,
    )
    watches = [*detail.watches, Watch(COMMANDS.id, namespace=detail.stored.namespace, owner=detail.stored.uid)]
    if detail.group is not None and not detail.job.status.state.message:
        # Only the pod group's events say why the job waits.
        watches.append(Watch(EVENTS.id, namespace=detail.stored.namespace, owner=detail.group.metadata.uid))
    return Parts({**head.parts(detail), **more}, watches=watches, again=again)


@live.topic("jobs:timeline")
@_of_job
def job_timeline(detail: Detail, request: TopicRequest) -> Parts:
    """The tasks, the timeline of the pods and of actions on the job, its policies and plugins."""
    about = Watch(EVENTS.id, namespace=detail.stored.namespace, owner=detail.stored.uid)
    again = detail.delayed_actions[0].due + SOON_MS if detail.delayed_actions else None
    return Parts(timeline_parts.parts(detail), watches=[*detail.watches, about], again=again)


@live.topic("jobs:pods")
@_of_job
def job_pods(detail: Detail, request: TopicRequest) -> Parts:
    """The table of the job's pods."""
    return pod_table.table(detail, pod_table.spec(detail).read(request.params)).parts()


@live.topic("jobs:events")
@_of_job
def job_events(detail: Detail, request: TopicRequest) -> Parts:
    """What happened to the job, its group and its pods."""
    rows = event_rows(detail)
    empty = render_to_string("jobs/_events_empty.html", {"rows": rows})
    watches = [*detail.watches[:1], Watch(EVENTS.id, namespace=detail.stored.namespace)]
    return Parts({**rows, "events-empty": empty}, list(rows), watches)


@live.topic("jobs:decisions")
@_of_job
def job_decisions(detail: Detail, request: TopicRequest) -> Parts:
    """What the scheduler decided about the job."""
    rows = decision_rows(detail)
    empty = render_to_string("jobs/_decisions_empty.html", {"rows": rows})
    return Parts({**rows, "decisions-empty": empty}, list(rows), watches=detail.watches)


@live.topic("jobs:logs")
@_of_job
def job_logs(detail: Detail, request: TopicRequest) -> Parts:
    """The pods with logs to read."""
    return Parts({"log-pods": tab.options_html(detail)}, watches=detail.watches)


@live.topic("jobs:yaml")
@_of_job
def job_yaml(detail: Detail, request: TopicRequest) -> Parts:
    """The job as YAML."""
    namespace = detail.stored.namespace
    pods = [Watch(PODS.id, namespace=namespace, name=name) for name in effective.first_pods(detail.stored)]
    return Parts(yaml_parts(detail), watches=[*detail.watches[:1], *pods])


def run_of(params: Mapping[str, str]) -> int:
    """Return the number of the requested run, 0 for the newest."""
    text = params.get("run", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def event_rows(detail: Detail) -> dict[str, str]:
    """Return the rows of the job's events, newest first."""
    if not detail.sees.events:
        return {}
    tasks = [name for name, _ in progress.of_tasks(detail.job)]
    every = event_list.everything(detail.stored, detail.history, tasks, is_deleted=bool(detail.deleted))
    return {
        f"event-{event.metadata.name}": render_to_string("jobs/_event_row.html", {"event": event}) for event in every
    }


def decision_rows(detail: Detail) -> dict[str, str]:
    """Return the rows of what the scheduler decided about the job, newest first."""
    group = f"{detail.stored.name}-{detail.stored.uid}"
    about = decision_store.Filters(namespaces=detail.stored.namespace, name=group)
    return decisions.rows(decision_store.find(about, limit=MAX_DECISIONS), names_group=False)


def yaml_parts(detail: Detail) -> dict[str, str]:
    """Return the job's YAML, and what the system added to it and its pods."""
    pods = effective.pods(detail.stored, is_there=bool(detail.counts))
    hidden = len(detail.job.spec.tasks) - len(pods)
    context = {"author": effective.author(detail.stored), "pods": pods, "hidden_tasks": hidden}
    return {
        "job-yaml": render_to_string("jobs/_yaml.html", {"text": yaml_write.dump(detail.stored.object)}),
        "job-effective": render_to_string("jobs/_effective.html", context),
    }
