"""The project as an application, for its system checks and its commands."""

from __future__ import annotations

from django.apps import AppConfig


class VolcanoUIConfig(AppConfig):
    name = "volcano_ui"

    def ready(self) -> None:
        from volcano_ui import checks  # noqa: F401
