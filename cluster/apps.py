"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import access, admission, immutable, nudge  # noqa: F401  access listens to changes of accounts
        from cluster.store import store
        from kube.resources import PODS

        store.listeners.append(nudge.send)
        admission.register(PODS, validate=immutable.check_pod)
