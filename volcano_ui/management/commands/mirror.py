"""`manage.py mirror`: keep a copy of the objects of the cluster that VOLCANO_UI_KUBECONFIG names."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cluster.remote.leader_election import standby
from cluster.remote.mirror import ClusterMirror, OtherCluster
from cluster.runtime import nudge
from volcano_ui import heartbeat
from volcano_ui.process_exit import exit_at_once


class Command(BaseCommand):
    help = "Mirror the cluster of VOLCANO_UI_KUBECONFIG: its objects as they are, and what happens to them."
    requires_system_checks: list[str] = []  # `up` has run them, and they would load every page

    def handle(self, *args: Any, **options: Any) -> None:
        """Mirror until a signal comes."""
        heartbeat.from_a_thread()
        if settings.TARGET is None:
            raise CommandError("There is no cluster to mirror; set VOLCANO_UI_KUBECONFIG to a kubeconfig's file.")
        term = standby.term_of(settings.INSTANCE)
        if term is None:
            raise CommandError("One `up` at a time mirrors the cluster, and starts this itself.")
        nudge.from_a_thread()
        try:
            ClusterMirror(term).run()
        except OtherCluster:
            self.stderr.write("Another cluster answers at the address now; starting over.")
        except standby.Superseded as error:
            self.stderr.write(str(error))
        exit_at_once(1)
