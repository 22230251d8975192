"""Commands that belong to an embedded cluster."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import CommandError


def only_embedded(what: str) -> None:
    """Raise CommandError where the pages show a cluster with an API of its own, which has no such thing."""
    if settings.TARGET is not None:
        raise CommandError(
            f"These pages show the cluster {settings.TARGET.name} at {settings.TARGET.server}; {what}."
            " Without VOLCANO_UI_KUBECONFIG this is about the embedded cluster."
        )
