"""Changing a job from its page: differences are shown before saving, and nothing that others changed meanwhile is lost."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from cluster import access, api
from cluster.access import Actor
from cluster.api import audit_trail
from cluster.store import Stored, store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.parts.forms import Form
from jobs.lifecycle.reading import Job
from jobs.operations import single
from jobs.pages import objects
from jobs.rules import actions, edits
from jobs.rules.edits import Difference, Fields
from kube.errors import ApiError, Conflict, Invalid
from kube.meta import Object
from kube.resources import JOBS

TRIES = 5  # to write a job whose controller writes its status at the same time
ANOTHER = "Another job has this name by now. Nothing of yours was stored; open the form again to see that job."
DAMAGED = "The form is damaged, so nothing was stored. Open it again, and type once more what you changed."
MOST = 1_000_000  # above admission's limit of pods, so that its message is shown


class Labels(forms.CharField):
    """Labels, one `key: value` a line; the rules of labels are admission's."""

    widget = forms.Textarea(
        attrs={"rows": 3, "class": "textarea mono", "placeholder": "one a line, such as team: vision"}
    )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{key}: {text}" for key, text in value.items()) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, str]:
        """Read lines as labels."""
        labels: dict[str, str] = {}
        for number, line in enumerate(super().clean(value).splitlines(), 1):
            key, colon, text = line.partition(":")
            if not line.strip():
                continue
            if not colon or not key.strip():
                raise ValidationError(f"Line {number} is “{line[:40]}”; write it like team: vision.")
            if key.strip() in labels:
                raise ValidationError(f"{key.strip()[:40]} is there twice.")
            labels[key.strip()] = text.strip()
        return labels


class Version(forms.JSONField):
    """A version of a job's open fields, as the form carried it."""

    widget = forms.HiddenInput

    def clean(self, value: Any) -> Fields:
        """Return the version; {} if it is no mapping."""
        version = super().clean(value)
        return version if isinstance(version, dict) else {}


class JobForm(Form):
    """Fields of a job, named as in `jobs.rules.edits`.

    base is the version that the form was filled from, reviewed the one whose
    differences the reader has seen, uid that of the job that was opened.
    """

    action = actions.EDIT
    base = Version(required=False)
    reviewed = Version(required=False)
    uid = forms.CharField(required=False, max_length=36, widget=forms.HiddenInput)

    def __init__(self, job: Object, names: list[str], **kwargs: Any) -> None:
        fields = edits.read(job)
        self.names = [name for name in fields if name.rpartition(".")[2] in names]
        initial = {**fields, "base": fields, "uid": job["metadata"]["uid"]}
        super().__init__(initial=initial, **kwargs)
        for name in self.names:
            label = edits.title_of(name, job)
            field: forms.Field = forms.IntegerField(min_value=0, max_value=MOST, label=label)
            if name == "labels":
                field = Labels(required=False, max_length=20_000, label=label)
            elif name == "priorityClassName":
                field = forms.CharField(required=False, max_length=253, label=label, help_text="Empty means none.")
            self.fields[name] = field
        self.dress()

    def clean(self) -> dict[str, Any]:
        """Report errors of hidden fields at the top of the form."""
        if {"base", "reviewed", "uid"} & self.errors.keys():
            raise ValidationError(DAMAGED)
        return super().clean() or self.cleaned_data

    @property
    def typed(self) -> Fields:
        return {name: self.cleaned_data[name] for name in self.names}

    @property
    def rows(self) -> list[list[forms.BoundField]]:
        """The visible fields row by row: those of the job, the labels, those of each task."""
        rows: dict[str, list[forms.BoundField]] = {}
        for name in self.names:
            row = name if name == "labels" else name.rpartition(".")[0]
            rows.setdefault(row, []).append(self[name])
        return [*rows.values()]

    def wanted(self, now: Fields) -> Fields:
        """Return the fields that the reader wants, given those of now."""
        return edits.merge(self.cleaned_data["base"] or now, self.typed, now)

    def show(self, values: Fields, *, base: Fields, reviewed: Fields) -> None:
        """Put values, their base and the version whose differences the reader has seen into the form."""
        prepared = {name: self.fields[name].prepare_value(values[name]) for name in self.names}
        carried = {"base": json.dumps(base), "reviewed": json.dumps(reviewed)}
        self.data = {**dict(self.data.items()), **prepared, **carried}


class EditForm(JobForm):
    """All fields of a job that may change."""

    def __init__(self, job: Object, **kwargs: Any) -> None:
        super().__init__(job, ["minAvailable", "priorityClassName", "labels", "replicas"], **kwargs)


class ScaleForm(JobForm):
    """How many pods each task has."""

    action = actions.SCALE
    follow = forms.BooleanField(required=False, label="Minimums follow: as many more or fewer pods must start together")

    def __init__(self, job: Object, **kwargs: Any) -> None:
        super().__init__(job, ["replicas"], **kwargs)

    def wanted(self, now: Fields) -> Fields:
        """Return the fields with the replicas that the reader wants; with `follow`, the minimums change as well."""
        wanted = super().wanted(now)
        return edits.with_minimums(now, wanted) if self.cleaned_data["follow"] else wanted


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def edit(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Change a job's editable fields."""
    return _change(request, _opened(request, namespace, name), EditForm)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def scale(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Change how many pods the tasks of a job have."""
    return _change(request, _opened(request, namespace, name), ScaleForm)


def _opened(request: HttpRequest, namespace: str, name: str) -> Stored:
    actor = access.of(request)
    stored = objects.read(actor, JOBS, namespace, name)
    access.require(actor, "update", JOBS, namespace, name, owner=stored.read(Job).creator or None)
    return stored


def _change(request: HttpRequest, stored: Stored, make: type[EditForm] | type[ScaleForm]) -> HttpResponse:
    form = make(stored.object, data=request.POST if request.method == "POST" else None)
    if problem := actions.problem(form.action, stored.read(Job)):
        raise Conflict(f"The job {stored.name} cannot be {form.action.participle}. {problem}")
    if not form.is_bound:
        return _page(request, stored, form)
    if not form.is_valid():
        return _page(request, stored, form, status=422)
    if form.cleaned_data["uid"] != stored.uid:
        form.add_error(None, ANOTHER)
        return _page(request, stored, form, status=409)
    now = edits.read(stored.object)
    base = form.cleaned_data["base"] or now
    wanted = form.wanted(now)
    if now != base:
        # Show what others changed since the form was opened beside what was typed, which stays in the form.
        meanwhile = [(each, wanted.get(each.name)) for each in edits.differences(stored.object, base, now)]
        form.show(wanted, base=now, reviewed={})
        who = audit_trail.last_editor(JOBS, stored) or "Somebody"
        return _page(request, stored, form, meanwhile=meanwhile, who=who, status=409)
    if wanted == now:
        responses.say(request, "Nothing was changed.")
        return redirect("jobs:detail", stored.namespace, stored.name)
    if form.cleaned_data["reviewed"] != wanted:
        return _review(request, stored, form, wanted)
    return _save(request, stored, form, wanted)


def _review(request: HttpRequest, stored: Stored, form: JobForm, wanted: Fields) -> HttpResponse:
    """Show what would change, or what admission would refuse."""
    now = edits.read(stored.object)
    review = api.review(access.of(request), JOBS, edits.write(stored.object, wanted), update=True)
    if review.causes:
        responses.show_at_fields(form, Invalid.of(JOBS.group_kind, stored.name, review.causes), _places(form))
        return _page(request, stored, form, status=422)
    form.show(wanted, base=now, reviewed=wanted)
    differences = edits.differences(stored.object, now, wanted)
    job, effect = stored.read(Job), edits.effect(now, wanted)
    if effect and actions.problem(actions.SCALE, job):
        # Replicas have no effect on a finished or suspended job.
        effect = f"The job is {job.phase}: its pods stay as they are."
    return _page(request, stored, form, differences=differences, effect=effect, warnings=review.warnings)


def _save(request: HttpRequest, stored: Stored, form: JobForm, wanted: Fields) -> HttpResponse:
    now = edits.read(stored.object)
    try:
        saved = _written(access.of(request), stored, now, wanted)
    except ApiError as error:
        responses.show_at_fields(form, error, _places(form))
        return _page(request, stored, form, status=422 if isinstance(error, Invalid) else error.code)
    if edits.effect(now, wanted) and not actions.problem(actions.SCALE, stored.read(Job)):
        single.note(access.of(request), actions.SCALE, saved)
    responses.say(request, f"The job {stored.name} was changed.")
    return redirect("jobs:detail", stored.namespace, stored.name)


def _written(actor: Actor, stored: Stored, now: Fields, wanted: Fields) -> Stored:
    """Store the wanted fields; retry after a status was written, raise Conflict if another field was changed."""
    for _ in range(TRIES):
        changed = edits.write(stored.object, wanted)
        metadata = {**changed["metadata"], "resourceVersion": stored.version}
        try:
            return api.update(actor, JOBS, {**changed, "metadata": metadata})
        except Conflict:
            stored = store.get(JOBS, stored.namespace, stored.name)
            if edits.read(stored.object) != now:
                raise
    raise Conflict.of(JOBS.id, stored.name, "it changes all the time; save once more")


def _places(form: JobForm) -> dict[str, str]:
    """Return the names of fields by the paths in errors."""
    return {edits.path_of(name): name for name in form.names}


def _page(
    request: HttpRequest,
    stored: Stored,
    form: JobForm,
    *,
    differences: list[Difference] | None = None,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    page_context = {"stored": stored, "form": form, "action": form.action, "differences": differences, **context}
    return render(request, "jobs/edit.html", page_context, status=status)
