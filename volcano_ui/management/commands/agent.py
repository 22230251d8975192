"""`manage.py agent`: run the pods that are bound to this machine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from cluster.management.embedded import only_embedded
from node.agent.daemon import Daemon
from volcano_ui import heartbeat
from volcano_ui.process_exit import exit_at_once


class Command(BaseCommand):
    help = "Run the pods that are bound to this machine."
    requires_system_checks: list[str] = []  # `up` has made them, and they would load every page

    def handle(self, *args: Any, **options: Any) -> None:
        heartbeat.from_a_thread()
        only_embedded("it has nodes of its own")
        Daemon(settings.DATA, name=settings.NODE_NAME).run()
        exit_at_once()
