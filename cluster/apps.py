"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import access, admission, custom, nudge, rules  # noqa: F401  access listens to changes of accounts
        from cluster.registry import Registration, register
        from cluster.store import AllBut, store
        from kube import resources
        from kube.resources import (
            CONFIGMAPS,
            CUSTOM_RESOURCE_DEFINITIONS,
            DISRUPTION_BUDGETS,
            EVENTS,
            LEASES,
            NAMESPACES,
            NODES,
            PODS,
            PRIORITY_CLASSES,
            SERVICE_ACCOUNTS,
        )

        store.listeners += (custom.heard, nudge.send)
        resources.set_source(custom.look_again)
        rules.register(admission.register)
        admission.register(
            CUSTOM_RESOURCE_DEFINITIONS, default=custom.default, validate=custom.validate, warn=custom.warn
        )
        # These kinds own nothing and belong to nothing.
        owned = AllBut((EVENTS, LEASES, NODES, PRIORITY_CLASSES))
        register(Registration("garbage", "cluster.garbage.GarbageCollector", owned, hears="changes"))
        register(Registration("quotas", "cluster.quotas.QuotaController", owned))
        register(Registration("budgets", "cluster.budgets.BudgetController", (DISRUPTION_BUDGETS, PODS)))
        register(
            Registration(
                "definitions",
                "cluster.definitions.Definitions",
                (CUSTOM_RESOURCE_DEFINITIONS,),
                hears="changes",
            )
        )
        equipment = (NAMESPACES, SERVICE_ACCOUNTS, CONFIGMAPS)
        register(
            Registration("namespaces", "cluster.namespaces.NamespaceController", equipment, hears="changes")
        )
        register(Registration("nodes", "cluster.node_lifecycle.NodeLifecycle", (NODES, LEASES)))
