"""The scheduler application."""

from __future__ import annotations

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"

    def ready(self) -> None:
        from cluster import exposition
        from cluster.api import admission as chain
        from cluster.runtime import registry
        from cluster.store.types import Single
        from kube import resources
        from kube.volcano import scheduler_configuration
        from scheduler import metrics
        from scheduler.policy import admission

        registry.register(
            registry.Registration(
                name="scheduler",
                path="scheduler.consumer.SchedulerConsumer",
                resources=(
                    resources.NODES,
                    resources.HYPER_NODES,
                    resources.QUEUES,
                    resources.PRIORITY_CLASSES,
                    resources.NAMESPACES,
                    resources.POD_GROUPS,
                    resources.PODS,
                    resources.CLAIMS,
                    resources.RESOURCE_QUOTAS,
                    resources.DISRUPTION_BUDGETS,
                    Single(resources.CONFIGMAPS, scheduler_configuration.NAMESPACE, scheduler_configuration.NAME),
                ),
                queue="scheduler",
            )
        )
        chain.register(resources.CONFIGMAPS, validate=admission.validate, warn=admission.warn)
        exposition.register(metrics.families)
