"""The queues application: queues, their rules and their controller."""

from __future__ import annotations

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    name = "queues"

    def ready(self) -> None:
        from cluster import admission as chain
        from cluster.registry import Registration, register
        from kube.resources import COMMANDS, POD_GROUPS, PODS, QUEUES
        from queues import admission

        register(
            Registration("queues", "queues.consumer.QueueConsumer", (QUEUES, POD_GROUPS, PODS, COMMANDS))
        )
        chain.register(
            QUEUES, default=admission.default, validate=admission.validate, delete=admission.deletion
        )
