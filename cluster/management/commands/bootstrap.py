"""`manage.py bootstrap`: make the objects that every cluster has."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from cluster.bootstrap import bootstrap


class Command(BaseCommand):
    help = "Make the namespaces, queues and priority classes that every cluster has. May be run again at any time."

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what was made."""
        made = bootstrap()
        self.stdout.write(f"Made {', '.join(made)}." if made else "Everything is there.")
