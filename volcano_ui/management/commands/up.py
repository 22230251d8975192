"""`manage.py up` starts everything on this machine and stops it at Ctrl-C."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import BaseCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Start everything on this machine: Redis, web server, workers, beat and nodes. Ctrl-C stops it."
    # `up` runs those that matter and says them in its own way.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", help=f"where the web server listens (now {settings.PORT})")
        parser.add_argument("--data", help=f"the state directory (now {settings.DATA})")
        parser.add_argument("--nodes", help=f"how many simulated nodes to run (now {settings.NODES})")

    def handle(self, **options: Any) -> None:
        asked = {f"VOLCANO_UI_{name.upper()}": options[name] for name in ("port", "data", "nodes")}
        changed = {name: value for name, value in asked.items() if value and os.environ.get(name) != value}
        if changed:
            # Settings were read before the options were: they are read again with the options in place.
            os.environ.update(changed)
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606
        from volcano_ui import up

        sys.exit(up.run())
