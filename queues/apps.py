"""The queues application: queues, their rules and their controller."""

from __future__ import annotations

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    name = "queues"

    def ready(self) -> None:
        from cluster import exposition
        from cluster.api import admission as chain
        from cluster.runtime.registry import Registration, register
        from kube.resources import COMMANDS, NAMESPACES, POD_GROUPS, PODS, QUEUES
        from queues import metrics
        from queues.rules import admission

        resources = (QUEUES, POD_GROUPS, PODS, NAMESPACES, COMMANDS)
        register(Registration("queues", "queues.controller.QueueConsumer", resources))
        chain.register(QUEUES, default=admission.default, validate=admission.validate, delete=admission.deletion)
        exposition.register(metrics.families)
