"""Pods that are held until a ConfigMap exists: their clocks begin with it.

The annotation `ui.volcano.sh/hold` names a ConfigMap of the pod's namespace.
So any number of jobs can be held together and let go at one moment, which is
what measurements and demonstrations need.
"""

from __future__ import annotations

from cluster.store import Change, store
from kube.kinds.core import Pod
from kube.resources import CONFIGMAPS

HOLD = "ui.volcano.sh/hold"


def hold_of(pod: Pod) -> str:
    """Return the key of the ConfigMap that a pod waits for, empty when it waits for none."""
    name = pod.metadata.annotations.get(HOLD)
    return f"{pod.metadata.namespace}/{name}" if name else ""


class Holds:
    """Since when the ConfigMaps exist that pods were held for; each is looked up once, then followed by the log."""

    def __init__(self) -> None:
        self._since_us: dict[str, int | None] = {}

    def since_us(self, key: str) -> int | None:
        """Return since when a ConfigMap exists, None when it does not."""
        if key not in self._since_us:
            stored = store.by_keys(CONFIGMAPS, [key]).get(key)
            self._since_us[key] = stored.created * 1000 if stored else None
        return self._since_us[key]

    def observe(self, change: Change) -> bool:
        """Apply a ConfigMap's change; return whether pods that were held by it may go on."""
        if change.key not in self._since_us or change.verb == "MODIFIED":
            return False
        self._since_us[change.key] = change.at * 1000 if change.verb == "ADDED" else None
        return change.verb == "ADDED"
