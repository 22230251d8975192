"""The jobs application."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        from jobs import live, podlog  # noqa: F401  the topics and streams register themselves
