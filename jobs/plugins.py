"""Job plugins: what `spec.plugins` adds to a job's pods.

A plugin's hook takes a pod spec and returns the one to use; it never changes
its argument, which all pods of the task share. Hooks run in the order of
`POD_HOOKS`, whatever the order in the job (reference: volcano-job §10, Q-21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PodSpec = dict[str, Any]
PodHook = Callable[[PodSpec, str, str], PodSpec]  # (spec, job name, pod name) → spec

KNOWN = ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")


def task_index(spec: PodSpec, _job: str, pod: str) -> PodSpec:
    """Tell every container its index: VK_TASK_INDEX and VC_TASK_INDEX (reference: volcano-job §5.2)."""
    index = pod.rpartition("-")[2]
    added = [{"name": "VK_TASK_INDEX", "value": index}, {"name": "VC_TASK_INDEX", "value": index}]
    changed = {
        kind: [{**container, "env": [*(container.get("env") or ()), *added]} for container in spec[kind]]
        for kind in ("initContainers", "containers")
        if spec.get(kind)
    }
    return {**spec, **changed}


POD_HOOKS: dict[str, PodHook] = {"env": task_index}


def pod_hooks(wanted: Mapping[str, Any]) -> list[PodHook]:
    """Return the hooks of a job's plugins, in the order they run."""
    return [hook for name, hook in POD_HOOKS.items() if name in wanted]


def argument(arguments: list[str], name: str, default: str) -> str:
    """Return the value of a plugin's flag in Go's syntax: `--name=value`, `-name=value` or `--name value`."""
    following = iter(arguments)
    for word in following:
        flag, separator, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            break  # a bare word ends the flags (reference: volcano-job §5.1)
        if flag == name:
            return value if separator else next(following, default)
    return default
