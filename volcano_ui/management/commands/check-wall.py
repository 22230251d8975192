"""`manage.py check-wall`: tries what keeps pods from this machine."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cluster.rules.node.node_walls import NodeWall
from node.agent import wall_check
from node.containers import control_groups, networks, walls
from node.containers.spawn import Spawner
from node.paths import Layout
from node.shim.order import Group


class Command(BaseCommand):
    """Exits with 1 if there is no wall, or something gets through that it should stop; it touches nothing of a cluster."""

    help = "Try what keeps pods from this machine, and what is missing."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        spawner = Spawner()
        try:
            with tempfile.TemporaryDirectory(prefix="volcano-ui-check-") as folder:
                wall = networks.chosen(spawner.probe(Path(folder)), settings.POD_NETWORK)
                limits = _limits(spawner, Layout(Path(folder)))
            self.stdout.write(NodeWall("", walls.describe(wall)).sentence)
            for text in walls.missing(wall):
                self.stdout.write(f"  missing: {text}")
            attempts = wall_check.run_attempts(spawner, wall)
        except OSError as error:
            raise CommandError(f"The wall could not be tried: {error}.") from None
        finally:
            spawner.close()
        for attempt in attempts:
            self.stdout.write(f"  {'GOT THROUGH' if attempt.got_through else 'held       '}  {attempt.words}")
        self.stdout.write(f"  limits       {limits}")
        is_refused = wall.closed and not wall.networks
        if is_refused:
            self.stdout.write("  refused      all pods: a network without a way out cannot be had")
        elif not wall.networks:
            self.stdout.write("  open         the network of this machine: pods share its addresses")
        if is_refused or not walls.holds(wall) or any(attempt.got_through for attempt in attempts):
            sys.exit(1)


def _limits(spawner: Spawner, layout: Layout) -> str:
    """Return what keeps containers within their limits; raise OSError if control groups exist and do not."""
    groups = control_groups.find(layout, leaves=False)
    controller = control_groups.ControlGroups(layout, groups)
    try:
        if groups.home and wall_check.exceeds(spawner, Group(control_groups.of_pod(groups, "check", 0) + "/main-0", 1)):
            raise OSError(f"a container in the control group {groups.home} got more memory than it may have")
        return walls.limits(groups)
    finally:
        controller.forget("check")
        controller.close()
