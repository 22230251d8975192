"""Views of the job list, one job, its YAML and its log, and the actions on a job's page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_GET, require_http_methods

from cluster import access, clock
from cluster.access import Actor
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.parts.table import Table
from jobs.lifecycle.reading import Job
from jobs.operations import allowed_actions, single
from jobs.pages import live, objects
from jobs.pages.job import buttons, head, pod_table, timeline_parts
from jobs.pages.job.detail import Detail
from jobs.pages.job_list import kubernetes_jobs, listing
from jobs.pages.logs import download
from jobs.pages.logs import tab as log_tab
from jobs.pages.logs.pods import LogQuery
from jobs.pages.logs.window import Mark
from jobs.rules import actions, yaml_write
from kube.errors import ApiError, NotFound
from kube.resources import BATCH_JOBS, JOBS

TABS = ("overview", "logs", "decisions", "events", "yaml")


@require_GET
@login_required
@explained
def job_list(request: HttpRequest) -> HttpResponse:
    with store.reading() as revision:
        table = listing.table(access.of(request), listing.SPEC.read(request.GET))
    table.revision = revision
    context = {
        "mine": table.view.url(owner=request.user.get_username()),
        "may_submit": allowed_actions.home(access.of(request)) is not None,
    }
    return responses.listing(request, "jobs/list.html", table, **context)


@require_GET
@login_required
@explained
def job_detail(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    actor = access.of(request)
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else "overview"
    try:
        with store.reading() as revision:
            run, uid = live.run_of(request.GET), request.GET.get("of", "")
            try:
                detail = Detail.of(actor, namespace, name, run) if not uid else None
            except NotFound:
                detail = None
            detail = detail or Detail.of_deleted(actor, namespace, name, uid, run)
            context = {**_parts(request, actor, detail, tab), "tab": tab, "tabs": TABS, "revision": revision}
            context["actions_html"] = buttons.html(detail, actor)
    except NotFound:
        return _of_kubernetes(request, actor, namespace, name) or render(
            request, "jobs/gone.html", {"namespace": namespace, "name": name}, status=404
        )
    table = context.pop("table", None)
    if isinstance(table, Table):
        table.revision = revision
        return responses.listing(request, "jobs/detail.html", table, **context)
    return render(request, "jobs/detail.html", context)


@require_GET
@login_required
@explained
def kubernetes_list(request: HttpRequest) -> HttpResponse:
    table = kubernetes_jobs.table(access.of(request), kubernetes_jobs.SPEC.read(request.GET))
    return responses.listing(request, "jobs/kubernetes_list.html", table)


def _of_kubernetes(request: HttpRequest, actor: Actor, namespace: str, name: str) -> HttpResponse | None:
    """Return the page of the Job of batch/v1 with this name, None if there is none or the actor may not see it."""
    if not access.allowed(actor, "get", BATCH_JOBS, namespace):
        return None
    jobs = store.find(BATCH_JOBS, namespace=namespace, name=name, limit=1)
    if not jobs:
        return None
    context = {
        "stored": jobs[0],
        "yaml": yaml_write.dump(jobs[0].object),
        "may_submit": access.allowed(actor, "create", JOBS, namespace),
    }
    return render(request, "jobs/kubernetes.html", context)


def _parts(request: HttpRequest, actor: Actor, detail: Detail, tab: str) -> dict[str, object]:
    context: dict[str, object] = {"stored": detail.stored, "job": detail.job, "shown": detail}
    for part in ("detail", "timeline", "logs", "decisions", "events", "yaml"):
        context[f"{part}_topic"] = detail.topic(f"jobs:{part}")
    context["base"] = urlencode(detail.query)
    action, _ = buttons.outcome(detail, clock.milliseconds())
    context["head"] = _joined({"asked": action, **head.parts(detail)})
    if tab == "overview":
        context["timeline"] = _joined(timeline_parts.parts(detail))
        context["table"] = pod_table.table(detail, pod_table.spec(detail).read(request.GET))
    elif tab == "logs":
        context["log"] = log_tab.show(actor, detail, request.GET.dict())
        context["log_pods"] = log_tab.options_html(detail)
    elif tab == "decisions":
        context["decisions"] = live.decision_rows(detail)
    elif tab == "events":
        context["events"] = live.event_rows(detail)
    else:
        context["yaml"] = _joined(live.yaml_parts(detail))
    return context


def _joined(parts: Mapping[str, str]) -> SafeString:
    return mark_safe("".join(parts.values()))  # noqa: S308  the parts are rendered templates


@require_GET
@login_required
@explained
def job_yaml(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    text = yaml_write.dump(objects.read(access.of(request), JOBS, namespace, name).object)
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
    return response


@require_GET
@login_required
@explained  # type: ignore[arg-type]  # a streamed answer is no HttpResponse
def job_log(request: HttpRequest, namespace: str, name: str) -> HttpResponseBase:
    query = LogQuery.read(namespace, name, request.GET)
    if line := Mark.read(request.GET.get("line", "")):
        return download.states(access.of(request), query, line)
    return download.respond(access.of(request), query, times=request.GET.get("times") == "1")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def act(request: HttpRequest, namespace: str, name: str, action: str) -> HttpResponse:
    """Ask to confirm an action, with its effect; a POST performs it."""
    actor, chosen = access.of(request), actions.BY_NAME[action]
    stored = objects.read(actor, JOBS, namespace, name)
    if request.method != "POST":
        job = stored.read(Job)
        effect = actions.effect(chosen, actions.extent([job]), single.retention())
        context = {"stored": stored, "action": chosen, "effect": effect}
        return render(request, "jobs/confirm.html", {**context, "problem": actions.problem(chosen, job)})
    try:
        single.send(actor, chosen, stored, request.POST.get("uid", ""))
    except ApiError as error:
        responses.refuse(request, error)
        return redirect("jobs:detail", namespace, name)
    if chosen is actions.DELETE:
        is_there = bool(store.find(JOBS, namespace=namespace, uid=stored.uid, limit=1))
        how = "is being deleted; it goes when its pods have ended" if is_there else "is deleted, and its pods with it"
        responses.say(request, f"Job {name} {how}.")
        return redirect("jobs:list")
    return redirect("jobs:detail", namespace, name)
