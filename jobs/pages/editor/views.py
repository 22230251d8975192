"""Views of the job editor: write, check and submit a job, or run a sample."""

from __future__ import annotations

import hashlib
import time

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from cluster import access
from cluster.access import hostpaths
from cluster.api import backend
from cluster.store import store
from dashboard.pages.errors import explained, logged_out
from dashboard.parts import responses
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.pages.editor import choices, converted, editor, samples
from jobs.pages.editor.forms import JobForm
from jobs.pages.editor.samples import Sample
from jobs.parameterized.builtin import BUILTINS
from jobs.rules import words, yaml_write
from kube.errors import ApiError
from kube.resources import BATCH_JOBS, JOB_TEMPLATES, JOBS, QUEUES
from kube.yaml.problem import YamlError

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


@require_http_methods(["GET", "HEAD", "POST"])
@explained
def job_new(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        # The redirect to the login page would lose the text.
        return logged_out(request) if request.POST.get("text") else redirect_to_login(request.get_full_path())
    if request.method == "POST":
        form = JobForm(request.POST)
        if not form.is_valid():
            messages.error(request, "The form is damaged; copy your text, load the page again and submit once more.")
            return editor_page(request, form, status=400)
        try:
            job = editor.submit(access.of(request), form.cleaned_data["text"], form.cleaned_data["token"])
        except (YamlError, ApiError) as error:
            report = editor.check(access.of(request), form.cleaned_data["text"])
            if report.accepted and isinstance(error, ApiError):  # the refusal is not about the text
                return editor_page(request, form, report=editor.refused(report, error), status=error.code)
            return editor_page(request, form, report=report, status=422)
        responses.say(request, f"Job {job.name} was submitted.")
        return redirect("jobs:detail", job.namespace, job.name)
    home = allowed_actions.home(access.of(request))
    if home is None:
        raise allowed_actions.nowhere("To submit jobs")
    text, source = _start(request, home)
    return editor_page(request, JobForm(initial={"text": text}), source=source)


def _start(request: HttpRequest, home: str) -> tuple[str, str]:
    """Return the text that the editor begins with, and its source; a new job is in the namespace home."""
    sample = _samples().get(request.GET.get("sample", ""))
    if sample:
        return _at(home, sample.yaml), f"From the sample “{sample.title}”."
    namespace, _, name = request.GET.get("kept", "").partition("/")
    if name:
        text = editor.template_text(objects.read(access.of(request), JOB_TEMPLATES, namespace, name))
        return text, f"From the template {name}, which is kept in {namespace}."
    namespace, _, name = request.GET.get("batch", "").partition("/")
    if name:
        text = converted.text(objects.read(access.of(request), BATCH_JOBS, namespace, name).object)
        return text, f"The Job {namespace}/{name} of batch/v1, which stays as it is stored."
    namespace, _, name = request.GET.get("from", "").partition("/")
    if not name:
        text, queue = _at(home, EMPTY_JOB), request.GET.get("queue", "")
        if queue and store.find(QUEUES, name=queue):
            access.require(access.of(request), "get", QUEUES, "", queue)
            text = text.replace("  queue: default\n", f"  {yaml_write.dump({'queue': queue})}", 1)
        return text, ""
    access.require(access.of(request), "get", JOBS, namespace, name)
    copied = editor.copy_text(namespace, name, request.GET.get("of", ""))
    if copied is None:
        raise Http404(f"There is no job {name} in {namespace}, and no record of one.")
    return copied, f"A copy of {namespace}/{name}; nothing is created before you submit."


def _samples() -> dict[str, Sample]:
    return samples.offered(elsewhere=backend.is_mirror)


def _at(home: str, text: str) -> str:
    return text.replace("  namespace: default\n", f"  namespace: {home}\n", 1)


def editor_page(
    request: HttpRequest, form: JobForm, *, report: editor.Report | None = None, source: str = "", status: int = 200
) -> HttpResponse:
    """Return the job editor with the text of a form; source says where that comes from."""
    context = {
        "form": form,
        "report": report,
        "source": source,
        "samples": _samples().values(),
        "templates": BUILTINS.values(),
        "kept_templates": choices.saved_templates(access.of(request)),
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
    """Return the report on a text and, if `choices` are requested, the choices for its fields."""
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
    token = request.POST.get("token", "")[:32]
    if not token:
        # Without a token, two clicks of one reader within some seconds count as one.
        clicked = f"{request.session.session_key} {sample} {int(time.monotonic() // DOUBLE_CLICK_S)}"
        token = hashlib.sha256(clicked.encode()).hexdigest()[:16]
    actor = access.of(request)
    namespace = request.POST.get("namespace") or allowed_actions.home(actor) or allowed_actions.DEFAULT
    job = chosen.object(namespace)
    try:
        created = editor.create_once(actor, job, token)
    except ApiError as error:
        responses.refuse(request, error)
        return responses.back(request, "jobs:list")
    responses.say(request, f"{chosen.title}: job {created.name} was submitted.")
    return redirect("jobs:detail", created.namespace, created.name)
