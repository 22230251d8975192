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
        from kube import resources as kinds

        registry.use(backend.runs)
        access.refuse(lambda verb, resource: router.refusal(verb, resource) or backend.refusal(verb, resource))
        access.delegate(backend.authorizer)
        store.listeners += (custom_kinds.on_commit, nudge.send)
        kinds.set_source(custom_kinds.look_again)
        rules.register(admission.register)
        definitions = kinds.CUSTOM_RESOURCE_DEFINITIONS
        admission.register(definitions, custom_kinds.default, custom_kinds.validate, custom_kinds.warn)
        # These kinds own nothing and belong to nothing.
        owned = AllBut((kinds.EVENTS, kinds.LEASES, kinds.NODES, kinds.PRIORITY_CLASSES))
        equipment = (kinds.NAMESPACES, kinds.SERVICE_ACCOUNTS, kinds.CONFIGMAPS)
        package = "cluster.controllers"
        register(Registration("garbage", f"{package}.garbage.GarbageCollector", owned, "changes"))
        register(Registration("quotas", f"{package}.quotas.QuotaController", owned))
        register(Registration("budgets", f"{package}.budgets.BudgetController", (kinds.DISRUPTION_BUDGETS, kinds.PODS)))
        register(Registration("definitions", f"{package}.definitions.Definitions", (definitions,), "changes"))
        register(Registration("namespaces", f"{package}.namespaces.NamespaceController", equipment, "changes"))
        register(Registration("nodes", f"{package}.nodes.NodeLifecycle", (kinds.NODES, kinds.LEASES)))
        hyper_nodes = (kinds.HYPER_NODES, kinds.NODES)
        register(Registration("hypernodes", f"{package}.hyper_nodes.HyperNodeController", hyper_nodes))
