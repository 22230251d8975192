"""The jobs application: Volcano Jobs, their rules and their controller."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        from django.conf import settings

        from cluster.api import admission as chain
        from cluster.runtime.registry import Registration, register
        from jobs.editor import samples  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages import live  # noqa: F401  topics, streams, offers register themselves
        from jobs.rules import admission
        from kube.resources import (
            CLAIMS,
            COMMANDS,
            CONFIGMAPS,
            JOBS,
            LIMIT_RANGES,
            NETWORK_POLICIES,
            POD_GROUPS,
            PODS,
            PRIORITY_CLASSES,
            RESOURCE_QUOTAS,
            SECRETS,
            SERVICES,
        )

        register(
            Registration(
                "jobs",
                "jobs.controller.job_controller.JobConsumer",
                (
                    JOBS,
                    PODS,
                    POD_GROUPS,
                    COMMANDS,
                    CLAIMS,
                    CONFIGMAPS,
                    SECRETS,
                    SERVICES,
                    NETWORK_POLICIES,
                    PRIORITY_CLASSES,
                    LIMIT_RANGES,
                    RESOURCE_QUOTAS,
                ),
                hears="edges",
                queue="jobs",
                shards=settings.JOB_WORKERS,
            )
        )
        chain.register(JOBS, default=admission.default, validate=admission.validate, warn=admission.warn)
