"""`manage.py beat`: the clock that reminds the workers each second, without Celery's command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from volcano_ui import celery_app, heartbeat


class Command(BaseCommand):
    help = "Remind the workers each second."
    requires_system_checks: list[str] = []  # `up` has run them, and they would load every page

    def handle(self, *args: Any, **options: Any) -> None:
        heartbeat.from_a_thread()
        celery_app.Beat(quiet=True).run()
