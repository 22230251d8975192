"""What of a cluster is mirrored: the kinds that pages, rules and history read, and where our controllers work those that they make.

No Leases, which change every few seconds. Of ConfigMaps only those that hold a sweep, unless controllers of ours look for
names that are taken. Of Secrets no more than their metadata, which is all that controllers ask about, and nothing where none works.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kube import resources
from kube.indexes import HOLDS_LABEL, HOLDS_SWEEP
from kube.meta import Object
from kube.resources import Resource

# In the order in which a person misses them.
KINDS = (
    *(resources.NAMESPACES, resources.QUEUES, resources.NODES, resources.JOBS, resources.POD_GROUPS, resources.PODS),
    *(resources.EVENTS, resources.PRIORITY_CLASSES, resources.COMMANDS),
    *(resources.CRON_JOBS, resources.JOB_FLOWS, resources.JOB_TEMPLATES),
    *(resources.CONFIGMAPS, resources.CLAIMS, resources.RESOURCE_QUOTAS, resources.LIMIT_RANGES),
    resources.HYPER_NODES,
)
# Those of which an API server knows a schema at most.
VOLCANOS = frozenset(kind for kind in KINDS if kind.group.endswith(".volcano.sh"))
# What the plugins of jobs make, beside ConfigMaps.
OF_PLUGINS = (resources.SERVICES, resources.NETWORK_POLICIES, resources.SECRETS)
OF_SCHEDULER = (resources.DISRUPTION_BUDGETS,)  # what our scheduler goes by, beside what pages show
BY_ID = MappingProxyType({kind.id: kind for kind in (*KINDS, *OF_PLUGINS, *OF_SCHEDULER)})
_SELECTORS = MappingProxyType({resources.CONFIGMAPS.id: f"{HOLDS_LABEL}={HOLDS_SWEEP}"})


def mirrored(*, works: bool) -> tuple[Resource, ...]:
    """Return the kinds that are mirrored; `works` says whether controllers of ours work on the cluster."""
    return (*KINDS, *OF_PLUGINS, *OF_SCHEDULER) if works else KINDS


def selectors(*, works: bool) -> Mapping[str, str]:
    """Return the label selectors of the kinds that are mirrored in part, by their ids."""
    return MappingProxyType({}) if works else _SELECTORS


def stored_part(kind: Resource, obj: Object) -> Object:
    """Return what of an object is stored."""
    if kind.id != resources.SECRETS.id:
        return obj
    return {name: value for name, value in obj.items() if name in ("apiVersion", "kind", "metadata")}
