"""`manage.py simulator`: nodes that exist by name only, and their pods by the clock."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cluster.management.embedded import only_embedded
from node.simulator.fleet import Size
from node.simulator.simulator import Simulator
from node.simulator.stages import StageError
from volcano_ui import collector, heartbeat
from volcano_ui.process_exit import exit_at_once


class Command(BaseCommand):
    help = "Run simulated nodes."
    requires_system_checks: list[str] = []  # `up` has run them, and they would load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--nodes", type=int, default=settings.NODES, help="how many nodes")
        parser.add_argument("--cpu", default=Size().cpu, help="CPUs of each node")
        parser.add_argument("--memory", default=Size().memory, help="memory of each node")
        parser.add_argument("--pods", default=Size().pods, help="how many pods a node takes")
        parser.add_argument("--stages", type=Path, default=None, help="a directory with stage files")

    def handle(self, *args: Any, **options: Any) -> None:
        heartbeat.from_a_thread()
        only_embedded("it has nodes of its own")
        collector.collect_rarely()
        size = Size(options["cpu"], options["memory"], options["pods"])
        try:
            Simulator(options["nodes"], size, options["stages"]).run()
        except StageError as error:
            raise CommandError(str(error)) from None
        exit_at_once()
