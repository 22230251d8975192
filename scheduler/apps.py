"""The scheduler application."""

from __future__ import annotations

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"

    def ready(self) -> None:
        from cluster.runtime import registry
        from kube import resources

        registry.register(
            registry.Registration(
                name="scheduler",
                path="scheduler.consumer.SchedulerConsumer",
                resources=(
                    resources.NODES,
                    resources.QUEUES,
                    resources.PRIORITY_CLASSES,
                    resources.NAMESPACES,
                    resources.POD_GROUPS,
                    resources.PODS,
                    resources.CLAIMS,
                ),
                queue="scheduler",
            )
        )
