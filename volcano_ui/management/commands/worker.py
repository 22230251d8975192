"""`manage.py worker QUEUE`: the Celery worker of one queue, without Celery's command line.

`celery worker` loads a shell with completion and colours that takes 10 MB of each process.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from cluster.runtime import registry
from volcano_ui import celery_app, heartbeat
from volcano_ui.process_exit import exit_at_once


class Command(BaseCommand):
    help = "Run the consumers of one queue."
    requires_system_checks: list[str] = []  # `up` has run them, and they would load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", choices=registry.queues())

    def handle(self, *, queue: str, **options: Any) -> None:
        heartbeat.from_a_thread()
        worker = celery_app.Worker(
            hostname=f"{queue}@{settings.INSTANCE}",
            queues=[queue],
            quiet=True,
            without_mingle=True,
            without_gossip=True,
            without_heartbeat=True,
        )
        worker.start()
        exit_at_once(worker.exitcode or 0)  # Python takes long to free the state of its consumers
