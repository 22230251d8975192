"""What the cluster knows about Kubernetes' own kinds: defaults, refusals, warnings.

One module a subject, pure: an object, the stored one it replaces, and what may be asked about the cluster (`View`) go
in; a filled-in object and causes come out. Texts are Kubernetes' (reference: kubernetes-api §1, §2.5, §6.3).
"""

from __future__ import annotations

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    """Give the rules to the admission chain, whose `register` adds the rules of one kind."""
    from cluster.rules import (
        accounts,
        budgets,
        config,
        events,
        groups,
        hyper_nodes,
        intake,
        limits,
        namespaces,
        network,
        priorities,
        ranges,
    )
    from cluster.rules.batch import job_statuses, jobs
    from cluster.rules.node import nodes
    from cluster.rules.pod import pod_updates, pods, volumes
    from kube import resources as kinds

    add(kinds.PODS, pods.default, pods.validate, pods.warn)
    add(kinds.PODS, validate=pod_updates.check_pod, bound=ranges.bound_pod)
    add(kinds.BATCH_JOBS, jobs.default, jobs.validate, jobs.warn, status=job_statuses.check)
    add(kinds.PRIORITY_CLASSES, priorities.default, priorities.validate, delete=priorities.deletion)
    add(kinds.NAMESPACES, namespaces.default)
    add(kinds.SECRETS, config.default_secret, config.validate_secret)
    add(kinds.CONFIGMAPS, validate=config.validate_config_map)
    add(kinds.SERVICES, network.default_service, network.validate_service, network.warn_service)
    add(kinds.ENDPOINTS, network.default_endpoints, network.validate_endpoints)
    add(kinds.NETWORK_POLICIES, network.default_policy, network.validate_policy, network.warn_policy)
    add(kinds.CLAIMS, volumes.default_claim, volumes.validate_claim, bound=ranges.bound_claim)
    add(kinds.DISRUPTION_BUDGETS, budgets.default, budgets.validate)
    add(kinds.RESOURCE_QUOTAS, limits.default_quota, limits.validate_quota)
    add(kinds.LIMIT_RANGES, limits.default_range, limits.validate_range)
    add(kinds.SERVICE_ACCOUNTS, validate=accounts.validate)
    add(kinds.POD_GROUPS, intake.default_group, intake.check_group)
    add(kinds.POD_GROUPS, validate=groups.validate)
    add(kinds.EVENTS, validate=events.validate)
    add(kinds.LEASES, validate=nodes.validate_lease)
    add(kinds.NODES, nodes.default, nodes.validate)
    add(kinds.HYPER_NODES, validate=hyper_nodes.validate, warn=hyper_nodes.warn)
