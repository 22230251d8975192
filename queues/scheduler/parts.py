"""The live parts of the scheduler's page."""

from __future__ import annotations

from django.template.loader import render_to_string

from cluster import access
from cluster.access import Actor
from cluster.api import backend, rights
from cluster.runtime import registry
from kube.errors import NotFound
from kube.resources import CONFIGMAPS, POD_GROUPS
from kube.volcano.scheduler_configuration import NAME, NAMESPACE
from queues.scheduler import versions, words
from queues.scheduler.versions import ConfigurationVersions

TOPIC = "queues:scheduler"


def may_see(actor: Actor) -> bool:
    """Return whether our scheduler works here, and the actor may see its configuration."""
    return _is_ours() and access.allowed(actor, "get", CONFIGMAPS, NAMESPACE)


def shows_decisions(actor: Actor) -> bool:
    """Return whether our scheduler works here, and the actor may see decisions about some groups."""
    return _is_ours() and access.somewhere(actor, "list", POD_GROUPS)


def may_write(actor: Actor) -> bool:
    """Return whether the actor may configure the scheduler."""
    return access.allowed(actor, "patch", rights.configuring(), NAMESPACE)


def require_ours() -> None:
    """Raise NotFound if another scheduler works here."""
    if not _is_ours():
        raise NotFound("Another scheduler works on this cluster; configure it where it runs.")


def read_parts(actor: Actor) -> tuple[ConfigurationVersions, dict[str, str]]:
    """Return the configuration and the parts about it; call it inside `store.reading()`.

    Raise NotFound if another scheduler works here, Forbidden if the actor may not read the configuration.
    """
    require_ours()
    access.require(actor, "get", CONFIGMAPS, NAMESPACE, NAME)
    stored = versions.read_versions()
    context = {
        "stored": stored,
        "facts": words.policy_facts(stored.policy, measures_load=not backend.is_mirror),
        "may_write": may_write(actor),
        "names_writers": access.allowed(actor, "get", "audit", NAMESPACE),
    }
    names = {"scheduler-state": "_state", "in-force": "_in_force", "versions": "_versions"}
    return stored, {
        part: render_to_string(f"queues/scheduler/{template}.html", context) for part, template in names.items()
    }


def _is_ours() -> bool:
    return backend.runs(registry.get("scheduler"))
