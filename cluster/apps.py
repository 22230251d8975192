"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import access, nudge, rules  # noqa: F401  access listens to changes of accounts
        from cluster.registry import Registration, register
        from cluster.store import store
        from kube.resources import (
            ALL,
            EVENTS,
            LEASES,
            NAMESPACES,
            NODES,
            PRIORITY_CLASSES,
            SERVICE_ACCOUNTS,
        )

        store.listeners.append(nudge.send)
        rules.register()
        # The other kinds own nothing and belong to nothing.
        owned = tuple(kind for kind in ALL if kind not in (EVENTS, LEASES, NODES, PRIORITY_CLASSES))
        register(Registration("garbage", "cluster.garbage.GarbageCollector", owned))
        register(
            Registration(
                "namespaces", "cluster.namespaces.NamespaceController", (NAMESPACES, SERVICE_ACCOUNTS)
            )
        )
        register(Registration("nodes", "cluster.node_lifecycle.NodeLifecycle", (NODES, LEASES)))
