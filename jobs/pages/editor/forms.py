"""The form of the editor: a text, and the token that makes a double click one job."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms


class TextField(forms.CharField):
    """Text as it was sent: jobs.pages.editor.editor reports even a NUL, at its line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators = []


class JobForm(forms.Form):
    """A job as YAML. Problems of the text are reported by jobs.pages.editor.editor, not here."""

    text = TextField(
        label="YAML",
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "textarea mono editor-text", "rows": 28, "spellcheck": "false", "wrap": "off"}
        ),
    )
    token = forms.RegexField(
        r"^[0-9a-f]{16}$", initial=lambda: secrets.token_hex(8), widget=forms.HiddenInput, required=False
    )
