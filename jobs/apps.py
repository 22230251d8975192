"""The jobs application: Volcano Jobs and what makes them, their rules and their controllers."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        from django.conf import settings

        from cluster.api import admission as chain
        from cluster.runtime.registry import Registration, register
        from jobs.crons import admission as crons
        from jobs.flows import admission as flows
        from jobs.pages import live  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages.crons import live as crons_live  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages.editor import samples  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages.flows import live as flows_live  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages.logs import follow  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages.operations import live as operations_live  # noqa: F401  topics, streams, offers register themselves
        from jobs.pages.sweeps import live as sweeps_live  # noqa: F401  topics, streams, offers register themselves
        from jobs.parameterized import declaration
        from jobs.rules import admission, command_warnings
        from kube.resources import (
            CLAIMS,
            COMMANDS,
            CONFIGMAPS,
            CRON_JOBS,
            JOB_FLOWS,
            JOB_TEMPLATES,
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
                "jobs.consumers.job_controller.JobConsumer",
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
        chain.register(COMMANDS, warn=command_warnings.warn)
        register(
            Registration(
                "jobflows",
                "jobs.consumers.flow_controller.FlowConsumer",
                (JOB_FLOWS, JOB_TEMPLATES, JOBS),
                hears="changes",
            )
        )
        register(
            Registration("cronjobs", "jobs.consumers.cron_controller.CronConsumer", (CRON_JOBS, JOBS), hears="changes")
        )
        register(Registration("history", "jobs.consumers.history_controller.HistoryConsumer", (JOBS,), hears="edges"))
        chain.register(JOB_FLOWS, default=flows.default, validate=flows.validate, warn=flows.warn)
        chain.register(
            JOB_TEMPLATES, default=flows.default_template, validate=flows.validate_template, warn=flows.warn_template
        )
        chain.register(JOB_TEMPLATES, validate=declaration.validate)
        chain.register(CRON_JOBS, default=crons.default, validate=crons.validate, warn=crons.warn)
