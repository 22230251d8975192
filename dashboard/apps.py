"""The dashboard application: the parts that pages share, and the pages that belong to neither jobs nor queues."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        # Topics and streams register themselves where they are defined: `live.py` of each application.
        autodiscover_modules("live")
        from dashboard.pages import events, hyper_nodes, nodes, overview  # noqa: F401
        from dashboard.parts import cluster_strip, cluster_switch, refusals  # noqa: F401
