"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import nudge
        from cluster.store import store

        store.listeners.append(nudge.send)
