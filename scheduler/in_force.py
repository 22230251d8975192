"""The scheduler's configuration in force, for code outside the scheduler: the newest version that can be used."""

from __future__ import annotations

from cluster.store import store
from kube.resources import CONFIGMAPS
from kube.volcano import scheduler_configuration
from scheduler.policy.config_map import reading_of
from scheduler.policy.policy import DEFAULT, Policy


def policy() -> Policy:
    """Return the policy in force, in one query; DEFAULT where there is no usable configuration."""
    key = scheduler_configuration.NAMESPACE, scheduler_configuration.NAME
    for version in store.history(CONFIGMAPS, *key):
        if version.verb == "DELETED":
            break
        reading = reading_of(version.object)
        if reading.policy is not None:
            return reading.policy
    return DEFAULT
