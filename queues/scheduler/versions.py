"""The versions of the scheduler's configuration, from the log: their writers, times and differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import unified_diff

from cluster.models import AuditEntry
from cluster.store import Change, store
from kube import lenient
from kube.resources import CONFIGMAPS
from kube.volcano.scheduler_configuration import NAME, NAMESPACE
from scheduler.policy.config_map import Configuration, text_of
from scheduler.policy.policy import Policy

MAX_VERSIONS = 20
MAX_LINES = 1000  # of a text that is compared
LINES_AROUND = 2


@dataclass(slots=True)
class Version:
    """A text that was stored once, None for a deleted ConfigMap or entry. `is_usable` says that it came into force."""

    revision: int
    at: int
    text: str | None
    is_usable: bool
    diff: list[tuple[str, str]] = field(default_factory=list)
    who: str = ""


@dataclass(frozen=True, slots=True)
class ConfigurationVersions:
    """The stored text, the policy in force, and the versions in the log, newest first.

    `version` is the resourceVersion of the stored ConfigMap, "" if there is none. `refused` says why the stored text is
    not in force, "" if it is.
    """

    text: str | None
    version: str
    policy: Policy
    refused: str
    versions: list[Version]

    def text_at(self, revision: str) -> str | None:
        """Return the text of the version with a revision, None if there is no such version."""
        return next((each.text for each in self.versions if str(each.revision) == revision), None)


def read_versions() -> ConfigurationVersions:
    """Read the configuration and its versions; several queries, so call it inside `store.reading()`."""
    history = store.history(CONFIGMAPS, NAMESPACE, NAME)
    replayed, versions = _replayed(reversed(history))
    newest = history[0] if history and history[0].verb != "DELETED" else None
    stored = newest.object if newest is not None else {}
    latest = versions[::-1][:MAX_VERSIONS]
    done = AuditEntry.objects.filter(resource=CONFIGMAPS.id, namespace=NAMESPACE, name=NAME, outcome="done")
    actors = dict(done.values_list("revision", "actor"))
    for each in latest:
        each.who = actors.get(each.revision, "")
    version = lenient.text(stored, "metadata", "resourceVersion")
    refused = replayed.refused.message if replayed.refused else ""
    return ConfigurationVersions(text_of(stored), version, replayed.policy, refused, latest)


def _replayed(history: Iterable[Change]) -> tuple[Configuration, list[Version]]:
    """Return the resulting configuration, and each version of the text, oldest first."""
    configuration = Configuration()
    versions: list[Version] = []
    before: str | None = None
    for change in history:
        is_gone = change.verb == "DELETED"
        configuration.take(None if is_gone else change.body)
        text = None if is_gone else text_of(change.object)
        if text != before or not versions:
            version = Version(change.revision, change.at, text, configuration.refused is None)
            version.diff = difference(before or "", text or "")
            versions.append(version)
        before = text
    return configuration, versions


def difference(old: str, new: str) -> list[tuple[str, str]]:
    """Return the lines that differ and those around them, each as (sign, text); nothing for very long texts."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MAX_LINES:
        return []
    lines = list(unified_diff(before, after, lineterm="", n=LINES_AROUND))[2:]
    return [("…", "") if line.startswith("@@") else (line[:1], line[1:]) for line in lines][1:]
