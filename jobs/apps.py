"""The jobs application: Volcano Jobs and what makes them, their rules and their controllers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.conf import settings

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
    Resource,
)

OF_A_JOB = (JOBS, PODS, POD_GROUPS, COMMANDS, CONFIGMAPS, SECRETS, SERVICES, NETWORK_POLICIES)
PODS_DEPEND_ON = (CLAIMS, PRIORITY_CLASSES, LIMIT_RANGES, RESOURCE_QUOTAS)
CONSUMERS: tuple[tuple[str, str, tuple[Resource, ...], dict[str, Any]], ...] = (
    (
        "jobs",
        "job_controller.JobConsumer",
        (*OF_A_JOB, *PODS_DEPEND_ON),
        {"hears": "edges", "queue": "jobs", "shards": settings.JOB_WORKERS},
    ),
    ("jobflows", "flow_controller.FlowConsumer", (JOB_FLOWS, JOB_TEMPLATES, JOBS), {"hears": "changes"}),
    ("cronjobs", "cron_controller.CronConsumer", (CRON_JOBS, JOBS), {"hears": "changes"}),
    ("history", "history_controller.HistoryConsumer", (JOBS,), {"hears": "edges"}),
)
# Importing these modules registers their topics, streams and offers.
LIVE = (
    "live",
    "crons.listing",
    "editor.samples",
    "flows.listing",
    "logs.follow",
    "operations.listing",
    "sweeps.listing",
)


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        from cluster.api.admission import register as judge
        from cluster.runtime.registry import Registration, register
        from jobs.crons import admission as crons
        from jobs.flows import admission as flows
        from jobs.parameterized import declaration
        from jobs.rules import admission, command_warnings

        for module in LIVE:
            import_module(f"jobs.pages.{module}")
        for name, consumer, resources, options in CONSUMERS:
            register(Registration(name, f"jobs.consumers.{consumer}", resources, **options))
        judge(JOBS, default=admission.default, validate=admission.validate, warn=admission.warn)
        judge(COMMANDS, warn=command_warnings.warn)
        judge(JOB_FLOWS, default=flows.default, validate=flows.validate, warn=flows.warn)
        judge(JOB_TEMPLATES, default=flows.default_template, validate=flows.validate_template, warn=flows.warn_template)
        judge(JOB_TEMPLATES, validate=declaration.validate)
        judge(CRON_JOBS, default=crons.default, validate=crons.validate, warn=crons.warn)
