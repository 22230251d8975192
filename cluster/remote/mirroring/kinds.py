"""What of a cluster is mirrored: the kinds that pages, rules and history read, and where our controllers work those that they make.

No Leases, which change every few seconds. Of ConfigMaps only those that hold a sweep, unless controllers of ours look for
names that are taken. Of Secrets no more than their metadata, which is all that controllers ask about, and nothing where none works.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kube.indexes import HOLDS_LABEL, HOLDS_SWEEP
from kube.meta import Object
from kube.resources import (
    CLAIMS,
    COMMANDS,
    CONFIGMAPS,
    CRON_JOBS,
    DISRUPTION_BUDGETS,
    EVENTS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    NETWORK_POLICIES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
    Resource,
)

# In the order in which a person misses them.
KINDS = (
    NAMESPACES,
    QUEUES,
    NODES,
    JOBS,
    POD_GROUPS,
    PODS,
    EVENTS,
    PRIORITY_CLASSES,
    COMMANDS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    CONFIGMAPS,
    CLAIMS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    HYPER_NODES,
)
# Those of which an API server knows a schema at most.
VOLCANOS = frozenset(kind for kind in KINDS if kind.group.endswith(".volcano.sh"))
MADE = (SERVICES, NETWORK_POLICIES, SECRETS)  # what the plugins of jobs make, beside ConfigMaps
HEEDED = (DISRUPTION_BUDGETS,)  # what our scheduler goes by, beside what pages show
BY_ID = MappingProxyType({kind.id: kind for kind in (*KINDS, *MADE, *HEEDED)})
_SELECTORS = MappingProxyType({CONFIGMAPS.id: f"{HOLDS_LABEL}={HOLDS_SWEEP}"})
_METADATA_ONLY = frozenset({SECRETS.id})


def mirrored(*, works: bool) -> tuple[Resource, ...]:
    """Return the kinds that are mirrored; `works` says whether controllers of ours work on the cluster."""
    return (*KINDS, *MADE, *HEEDED) if works else KINDS


def selectors(*, works: bool) -> Mapping[str, str]:
    """Return the label selectors of the kinds that are mirrored in part, by their ids."""
    return MappingProxyType({}) if works else _SELECTORS


def kept(kind: Resource, obj: Object) -> Object:
    """Return what of an object is stored."""
    if kind.id not in _METADATA_ONLY:
        return obj
    return {name: value for name, value in obj.items() if name in ("apiVersion", "kind", "metadata")}
