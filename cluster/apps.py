"""The cluster application: store, log, consumers, nodes."""

from __future__ import annotations

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"

    def ready(self) -> None:
        from cluster import access, rules
        from cluster.access import router
        from cluster.api import admission, backend, custom_kinds
        from cluster.runtime import nudge, registry
        from cluster.runtime.registry import Registration, register
        from cluster.store import AllBut, store
        from kube import resources
        from kube.resources import (
            CONFIGMAPS,
            CUSTOM_RESOURCE_DEFINITIONS,
            DISRUPTION_BUDGETS,
            EVENTS,
            HYPER_NODES,
            LEASES,
            NAMESPACES,
            NODES,
            PODS,
            PRIORITY_CLASSES,
            SERVICE_ACCOUNTS,
        )

        registry.use(backend.runs)
        access.refuse(lambda verb, resource: router.refusal(verb, resource) or backend.refusal(verb, resource))
        access.delegate(backend.authorizer)
        store.listeners += (custom_kinds.heard, nudge.send)
        resources.set_source(custom_kinds.look_again)
        rules.register(admission.register)
        admission.register(
            CUSTOM_RESOURCE_DEFINITIONS,
            default=custom_kinds.default,
            validate=custom_kinds.validate,
            warn=custom_kinds.warn,
        )
        # These kinds own nothing and belong to nothing.
        owned = AllBut((EVENTS, LEASES, NODES, PRIORITY_CLASSES))
        register(Registration("garbage", "cluster.controllers.garbage.GarbageCollector", owned, hears="changes"))
        register(Registration("quotas", "cluster.controllers.quotas.QuotaController", owned))
        register(Registration("budgets", "cluster.controllers.budgets.BudgetController", (DISRUPTION_BUDGETS, PODS)))
        register(
            Registration(
                "definitions",
                "cluster.controllers.definitions.Definitions",
                (CUSTOM_RESOURCE_DEFINITIONS,),
                hears="changes",
            )
        )
        equipment = (NAMESPACES, SERVICE_ACCOUNTS, CONFIGMAPS)
        register(
            Registration("namespaces", "cluster.controllers.namespaces.NamespaceController", equipment, hears="changes")
        )
        register(Registration("nodes", "cluster.controllers.nodes.NodeLifecycle", (NODES, LEASES)))
        register(
            Registration("hypernodes", "cluster.controllers.hyper_nodes.HyperNodeController", (HYPER_NODES, NODES))
        )
