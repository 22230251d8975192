"""`manage.py bootstrap`: make the objects that every cluster has."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from cluster.access import identities
from cluster.bootstrap import bootstrap
from cluster.management.embedded import only_embedded
from cluster.rules import first_limits

DEFAULT = "default"  # the namespace that people begin in


class Command(BaseCommand):
    help = (
        "Make the namespaces, queues, priority classes and administrators that are to be, and with the first namespace "
        "the limits of its containers. May be run again at any time."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what was made."""
        only_embedded("what it has is there")
        cpus = len(os.sched_getaffinity(0))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        created = bootstrap(first_limits.of_machine(DEFAULT, cpus, memory))
        if identities.appoint_administrators():
            created.append(f"administrators/{settings.OIDC_ADMIN_GROUP}")
        self.stdout.write(f"Made {', '.join(created)}." if created else "Everything is there.")
