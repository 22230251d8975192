"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import (  # noqa: F401  access listens to changes of accounts
            access,
            admission,
            custom,
            immutable,
            nudge,
        )
        from cluster.registry import Registration, register
        from cluster.store import AllBut, store
        from kube import resources
        from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, LEASES, NODES, PODS, PRIORITY_CLASSES

        store.listeners += (custom.heard, nudge.send)
        resources.set_source(custom.look_again)
        admission.register(PODS, validate=immutable.check_pod)
        admission.register(
            CUSTOM_RESOURCE_DEFINITIONS, default=custom.default, validate=custom.validate, warn=custom.warn
        )
        # These kinds own nothing and belong to nothing.
        owned = AllBut((EVENTS, LEASES, NODES, PRIORITY_CLASSES))
        register(Registration("garbage", "cluster.garbage.GarbageCollector", owned))
        register(
            Registration("definitions", "cluster.definitions.Definitions", (CUSTOM_RESOURCE_DEFINITIONS,))
        )
        register(Registration("nodes", "cluster.node_lifecycle.NodeLifecycle", (NODES, LEASES)))
