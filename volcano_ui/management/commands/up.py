"""`manage.py up` starts everything on this machine and stops it at Ctrl-C."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand

from volcano_ui import env

OPTIONS = (
    "port",
    "api_port",
    "data",
    "nodes",
    "kubeconfig",
    "context",
    "way",
    "webhooks",
    "webhook_port",
    "only",
    "clusters",
    "running",
)  # settings by the same names


class Command(BaseCommand):
    help = "Start everything on this machine: Redis, web server, workers, beat and nodes. Ctrl-C stops it; running pods go on."
    # `up` runs the checks that matter itself, and prints their messages.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", help=f"where the web server listens (now {settings.PORT})")
        parser.add_argument("--api-port", help=f"where the Kubernetes API listens (now {settings.API_PORT})")
        parser.add_argument("--data", help=f"the state directory (now {settings.DATA})")
        parser.add_argument("--nodes", help=f"how many simulated nodes to run (now {settings.NODES})")
        parser.add_argument("--kubeconfig", help="show the cluster of this kubeconfig instead of one of its own")
        parser.add_argument("--context", help="which of the kubeconfig's contexts; by default the current one")
        parser.add_argument("--webhooks", help="where that cluster's API server finds our admission webhooks")
        parser.add_argument("--webhook-port", help=f"where they listen, if there are any (now {settings.WEBHOOK_PORT})")
        parser.add_argument("--way", help=f"what may be changed there: {' or '.join(settings.WAYS)}")
        parser.add_argument(
            "--only",
            help="start these programs alone, where others start the rest: web, or works (mirror, workers, beat)",
        )
        parser.add_argument("--clusters", help="show several: NAME=embedded,NAME=KUBECONFIG[#CONTEXT][:WAY],…")
        parser.add_argument(
            "--running",
            help=f"what becomes of running pods when it is stopped: leave, wait or end (now {settings.RUNNING})",
        )
        parser.add_argument("--behind-front", action="store_true", help=SUPPRESS)  # what `clusters` starts

    def handle(self, **options: Any) -> None:
        settings_by_option = {f"VOLCANO_UI_{name.upper()}": options[name] for name in OPTIONS}
        changed = {name: value for name, value in settings_by_option.items() if value and os.environ.get(name) != value}
        if changed:
            # Settings were read before the options were: they are read again with the options in place.
            os.environ.update(changed)
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606
        from volcano_ui.supervision import clusters, up

        if options["behind_front"]:
            sys.exit(up.run(is_behind_front=True))
        # VOLCANO_UI_CLUSTER names one of several clusters, which is then started alone.
        sys.exit(clusters.run() if settings.CLUSTERS and not env.text("CLUSTER") else up.run())
