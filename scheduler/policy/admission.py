"""Admission of a new scheduler configuration: one that cannot be used is not stored."""

from __future__ import annotations

from kube import lenient
from kube.errors import Cause
from kube.meta import Object
from kube.resources import CONFIGMAPS
from kube.volcano.scheduler_configuration import is_configuration
from scheduler.policy.config_map import FIELD, reading_of, text_of
from scheduler.policy.findings import Finding


def validate(obj: Object, old: Object | None, view: object) -> list[Cause]:
    """Return what makes a configuration unusable; empty where its text does not change."""
    if not _is_new(obj, old):
        return []
    return [Cause("FieldValueInvalid", _text(finding), FIELD) for finding in reading_of(obj).errors]


def warn(obj: Object, old: Object | None, view: object) -> list[str]:
    """Return warnings, such as of settings without effect."""
    if not _is_new(obj, old):
        return []
    return [f"{FIELD}: {_text(finding)}" for finding in reading_of(obj).warnings]


def _is_new(obj: Object, old: Object | None) -> bool:
    """Tell whether an object is the scheduler's configuration, with a text other than the stored one."""
    metadata = lenient.mapping(obj, "metadata")
    if not is_configuration(CONFIGMAPS, metadata.get("namespace", ""), metadata.get("name", "")):
        return False
    return old is None or text_of(old) != text_of(obj)


def _text(finding: Finding) -> str:
    return f"Line {finding.line}: {finding.message}" if finding.line else finding.message
