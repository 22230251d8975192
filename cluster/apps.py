"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import access, nudge  # noqa: F401  access listens to changes of accounts
        from cluster.store import store

        store.listeners.append(nudge.send)
