"""The job pages."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cluster import access, clock
from cluster.access import hostpaths
from cluster.api import backend
from cluster.store import store
from dashboard.pages.errors import explained, logged_out
from dashboard.parts import responses
from dashboard.parts.table import Table
from jobs.editor import choices, converted, editor, samples, yaml_write
from jobs.editor.forms import JobForm
from jobs.logs import download
from jobs.logs import tab as log_tab
from jobs.logs.pods import Asked
from jobs.logs.window import Mark
from jobs.pages import buttons, kubernetes_jobs, listing, live, pod_table
from jobs.pages.detail import Detail
from jobs.parameterized.builtin import BUILTINS
from jobs.rules import allowed_actions, words
from kube.errors import ApiError, NotFound
from kube.resources import BATCH_JOBS, JOB_TEMPLATES, JOBS, QUEUES
from kube.yaml.problem import YamlError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

    from cluster.access import Actor
    from cluster.store import Stored
    from jobs.editor.samples import Sample

EMPTY_JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: my-job
  namespace: default
spec:
  minAvailable: 1
  queue: default
  tasks:
  - name: main
    replicas: 1
    template:
      metadata:
        annotations:
          ui.volcano.sh/runtime: process  # runs without its image
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo hello; sleep 5; echo done"]
          resources:
            requests:
              cpu: 100m
              memory: 64Mi
"""
DOUBLE_CLICK_S = 4
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


@require_http_methods(["GET", "HEAD", "POST"])
@explained
def job_new(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        # The way over the login page would lose what was written.
        return logged_out(request) if request.POST.get("text") else redirect_to_login(request.get_full_path())
    if request.method == "POST":
        return _submit(request)
    home = allowed_actions.home(access.of(request))
    if home is None:
        raise allowed_actions.nowhere("To submit jobs")
    text, source = _start(request, home)
    form = JobForm(initial={"text": text})
    return editor_page(request, form, source=source)


def _start(request: HttpRequest, home: str) -> tuple[str, str]:
    """Return the text that the editor begins with, and where it comes from; a new job lies in the namespace home."""
    sample = _samples().get(request.GET.get("sample", ""))
    if sample:
        return _at(home, sample.yaml), f"From the sample “{sample.title}”."
    namespace, _, name = request.GET.get("kept", "").partition("/")
    if name:
        access.require(access.of(request), "get", JOB_TEMPLATES, namespace, name)
        text = editor.template_text(store.get(JOB_TEMPLATES, namespace, name))
        return text, f"From the template {name}, which is kept in {namespace}."
    namespace, _, name = request.GET.get("batch", "").partition("/")
    if name:
        access.require(access.of(request), "get", BATCH_JOBS, namespace, name)
        text = converted.text(store.get(BATCH_JOBS, namespace, name).object)
        return text, f"The Job {namespace}/{name} of batch/v1, which stays as it is stored."
    namespace, _, name = request.GET.get("from", "").partition("/")
    if not name:
        return _in_queue(request, _at(home, EMPTY_JOB)), ""
    access.require(access.of(request), "get", JOBS, namespace, name)
    copied = editor.copy_text(namespace, name, request.GET.get("of", ""))
    if copied is None:
        raise Http404(f"There is no job {name} in {namespace}, and no record of one.")
    return copied, f"A copy of {namespace}/{name}; nothing is created before you submit."


def _samples() -> dict[str, Sample]:
    return samples.offered(elsewhere=backend.is_mirror)


def _at(home: str, text: str) -> str:
    return text.replace("  namespace: default\n", f"  namespace: {home}\n", 1)


def _in_queue(request: HttpRequest, text: str) -> str:
    """Return the text for the queue that is asked for, if there is one of that name."""
    name = request.GET.get("queue", "")
    if not name or not store.find(QUEUES, name=name):
        return text
    access.require(access.of(request), "get", QUEUES, "", name)
    return text.replace("  queue: default\n", f"  {yaml_write.dump({'queue': name})}", 1)


def _submit(request: HttpRequest) -> HttpResponse:
    form = JobForm(request.POST)
    if not form.is_valid():
        messages.error(
            request, "The form is damaged; copy your text, load the page again and submit once more."
        )
        return editor_page(request, form, status=400)
    try:
        job = editor.submit(access.of(request), form.cleaned_data["text"], form.cleaned_data["token"])
    except (YamlError, ApiError) as error:
        report = editor.check(access.of(request), form.cleaned_data["text"])
        if report.accepted and isinstance(error, ApiError):  # what refused it is not in the text
            return editor_page(request, form, report=editor.refused(report, error), status=error.code)
        return editor_page(request, form, report=report, status=422)
    responses.say(request, f"Job {job.name} was submitted.")
    return redirect("jobs:detail", job.namespace, job.name)


def editor_page(
    request: HttpRequest,
    form: JobForm,
    *,
    report: editor.Report | None = None,
    source: str = "",
    status: int = 200,
) -> HttpResponse:
    """Return the job editor with the text of a form; source says where that comes from."""
    context = {
        "form": form,
        "report": report,
        "source": source,
        "samples": _samples().values(),
        "templates": BUILTINS.values(),
        "kept_templates": choices.kept_templates(access.of(request)),
        "job_events": words.event_choices(of_task=False),
        "task_events": words.event_choices(of_task=True),
        "policy_actions": [each for each in words.ACTIONS if each.is_offered],
        "plugins": words.PLUGINS,
        "choices": choices.of(access.of(request)),
        "host_paths": hostpaths.may_mount_some(access.of(request)),
    }
    return render(request, "jobs/new.html", context, status=status)


@require_POST
@login_required
@explained
def job_validate(request: HttpRequest) -> HttpResponse:
    """Say what would become of a text; asked for `choices`, also what may be chosen for its fields."""
    actor = access.of(request)
    answer = editor.check(actor, request.POST.get("text", "")).json()
    if "choices" in request.POST:
        answer["choices"] = choices.of(actor)
    return JsonResponse(answer)


@require_POST
@login_required
@explained
def run_sample(request: HttpRequest, sample: str) -> HttpResponse:
    chosen = samples.run_at_once().get(sample)
    if chosen is None and sample in _samples():
        raise Http404(f"On this cluster no click runs the sample {sample}; New job opens it in the editor.")
    if chosen is None:
        raise Http404(f"There is no sample {sample}.")
    token = request.POST.get("token", "")[:32] or _moment_token(request, sample)
    actor = access.of(request)
    place = request.POST.get("namespace") or allowed_actions.home(actor) or allowed_actions.DEFAULT
    job = chosen.object(place)
    try:
        created = editor.create_once(actor, job, token)
    except ApiError as error:
        responses.refuse(request, error)
        return responses.back(request, "jobs:list")
    responses.say(request, f"{chosen.title}: job {created.name} was submitted.")
    return redirect("jobs:detail", created.namespace, created.name)


def _moment_token(request: HttpRequest, sample: str) -> str:
    """Return a token for a button that has none: two clicks of one reader within some seconds are one."""
    clicked = f"{request.session.session_key} {sample} {int(time.monotonic() // DOUBLE_CLICK_S)}"
    return hashlib.sha256(clicked.encode()).hexdigest()[:16]


@require_GET
@login_required
@explained
def job_detail(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    actor = access.of(request)
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else "overview"
    try:
        with store.reading() as revision:
            shown = _shown(request, actor, namespace, name)
            context = {**_parts(request, actor, shown, tab), "tab": tab, "tabs": TABS, "revision": revision}
            context["actions_html"] = buttons.html(shown, actor)
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
    """Return the page of the Job of batch/v1 that has the name, None where there is none or the actor may not see it."""
    if not access.allowed(actor, "get", BATCH_JOBS, namespace):
        return None
    found = store.find(BATCH_JOBS, namespace=namespace, name=name, limit=1)
    if not found:
        return None
    context = {
        "stored": found[0],
        "yaml": yaml_write.dump(found[0].object),
        "may_submit": access.allowed(actor, "create", JOBS, namespace),
    }
    return render(request, "jobs/kubernetes.html", context)


def _shown(request: HttpRequest, actor: Actor, namespace: str, name: str) -> Detail:
    """Return the job of the name, or the deleted one that is asked for or had the name last."""
    run, uid = live.run_of(request.GET), request.GET.get("of", "")
    if not uid:
        try:
            return Detail.of(actor, namespace, name, run)
        except NotFound:
            pass
    return Detail.of_deleted(actor, namespace, name, uid, run)


def _parts(request: HttpRequest, actor: Actor, shown: Detail, tab: str) -> dict[str, object]:
    context: dict[str, object] = {"stored": shown.stored, "job": shown.job, "shown": shown, **_topics(shown)}
    context["base"] = urlencode(shown.query)
    asked, _ = shown.asked_part(clock.milliseconds())
    context["head"] = asked + "".join(shown.head_parts().values())
    if tab == "overview":
        context["timeline"] = "".join(shown.timeline_parts().values())
        context["table"] = pod_table.table(shown, pod_table.spec(shown).read(request.GET))
    elif tab == "logs":
        context["log"] = log_tab.show(actor, shown, request.GET.dict())
        context["log_pods"] = log_tab.options_html(shown)
    elif tab == "decisions":
        context["decisions"] = live.decision_rows(shown)
    elif tab == "events":
        context["events"] = live.event_rows(shown)
    else:
        context["yaml"] = "".join(live.yaml_parts(shown).values())
    return context


def _topics(shown: Detail) -> dict[str, object]:
    return {
        f"{part}_topic": shown.topic(f"jobs:{part}")
        for part in ("detail", "timeline", "logs", "decisions", "events", "yaml")
    }


@require_GET
@login_required
@explained
def job_yaml(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    job = _job(request, namespace, name)
    return _download(yaml_write.dump(job.object), f"{name}.yaml", "application/yaml")


@require_GET
@login_required
@explained  # type: ignore[arg-type]  # a streamed answer is no HttpResponse
def job_log(request: HttpRequest, namespace: str, name: str) -> HttpResponseBase:
    asked = Asked.read(namespace, name, request.GET)
    if line := Mark.read(request.GET.get("line", "")):
        return download.states(access.of(request), asked, line)
    return download.respond(access.of(request), asked, times=request.GET.get("times") == "1")


def _job(request: HttpRequest, namespace: str, name: str) -> Stored:
    access.require(access.of(request), "get", JOBS, namespace, name)
    return store.get(JOBS, namespace, name)


def _download(text: str, filename: str, kind: str) -> HttpResponse:
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response
