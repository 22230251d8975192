"""The forms that change a job: all of its open fields, or only how many pods its tasks have."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from dashboard.parts.forms import Form
from jobs.rules import actions, edits
from jobs.rules.edits import Fields
from kube.meta import Object

DAMAGED = "The form is damaged, so nothing was stored. Open it again, and type once more what you changed."
MOST = 1_000_000  # more pods than admission lets a job have; it says so in its words


class Labels(forms.CharField):
    """Labels, one `key: value` a line; the rules of labels are admission's."""

    widget = forms.Textarea(
        attrs={"rows": 3, "class": "textarea mono", "placeholder": "one a line, such as team: vision"}
    )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{key}: {text}" for key, text in value.items()) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, str]:
        """Read lines as labels."""
        found: dict[str, str] = {}
        for number, line in enumerate(super().clean(value).splitlines(), 1):
            key, colon, text = line.partition(":")
            if not line.strip():
                continue
            if not colon or not key.strip():
                raise ValidationError(f"Line {number} is “{line[:40]}”; write it like team: vision.")
            if key.strip() in found:
                raise ValidationError(f"{key.strip()[:40]} is there twice.")
            found[key.strip()] = text.strip()
        return found


class Version(forms.JSONField):
    """A version of a job's open fields, as the form carried it."""

    widget = forms.HiddenInput

    def clean(self, value: Any) -> Fields:
        """Return a mapping; what is none is no version at all."""
        found = super().clean(value)
        return found if isinstance(found, dict) else {}


class JobForm(Form):
    """Fields of a job under their names in `jobs.rules.edits`.

    base is the version that they were filled from, reviewed the one whose
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
        """Say at the top what is wrong with fields that nobody sees."""
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
        """Return what the reader wants of a job whose fields are now these."""
        return edits.merge(self.cleaned_data["base"] or now, self.typed, now)

    def show(self, values: Fields, *, base: Fields, reviewed: Fields) -> None:
        """Show these values, filled from a base, with what of them the reader has seen the differences of."""
        shown = {name: self.fields[name].prepare_value(values[name]) for name in self.names}
        carried = {"base": json.dumps(base), "reviewed": json.dumps(reviewed)}
        self.data = {**dict(self.data.items()), **shown, **carried}


class EditForm(JobForm):
    """Everything of a job that may change."""

    def __init__(self, job: Object, **kwargs: Any) -> None:
        super().__init__(job, ["minAvailable", "priorityClassName", "labels", "replicas"], **kwargs)


class ScaleForm(JobForm):
    """How many pods each task has."""

    action = actions.SCALE
    follow = forms.BooleanField(required=False, label="Minimums follow: as many more or fewer pods must start together")

    def __init__(self, job: Object, **kwargs: Any) -> None:
        super().__init__(job, ["replicas"], **kwargs)

    def wanted(self, now: Fields) -> Fields:
        """Return the fields with the replicas that are wished for, and the minimums as well where they follow."""
        wanted = super().wanted(now)
        return edits.with_minimums(now, wanted) if self.cleaned_data["follow"] else wanted
