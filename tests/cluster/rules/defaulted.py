"""Objects that leave open what Kubernetes fills in (defaults.txt), and what it makes of them (defaults.json) in tests/golden/kubernetes.

A kube-apiserver says it: `tests/kubernetes/test_golden.py` compares them, and writes the file with `--update-golden`.
"""

import json
from pathlib import Path

from kube.resources import PODS
from tests.cluster.objects import parsed

# Of each object its own: who made it, when and how often it changed.
OF_EACH = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "namespace")


def _read():
    text = (Path(__file__).parents[2] / "golden/kubernetes/defaults.txt").read_text()
    for title, line in (each.strip().split("\n") for each in text.split("== ")[1:]):
        kind, obj = parsed(line)
        if kind is PODS:
            obj["spec"]["automountServiceAccountToken"] = False  # a token would be mounted there, which is no default
        yield title, (kind, obj)


CASES = dict(_read())


# What is otherwise here, and why: docs/kubernetes-api-differences.md.
OTHERWISE = {
    "Service": ("spec.clusterIP", "spec.clusterIPs", "spec.ports.nodePort"),  # there are no virtual addresses
    "PersistentVolumeClaim": ("metadata.finalizers", "status"),  # bound at once
    "Pod": ("status.conditions",),  # the scheduler says it
    # Its agent says its name; its controller closes a node that is not ready.
    "Node": ("metadata.labels", "spec.taints"),
}


def seen(obj):
    """Return an object without what is its own or otherwise here, and with its uid written as UID."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in OF_EACH}
    found = json.loads(json.dumps({**obj, "metadata": metadata}).replace(obj["metadata"].get("uid") or "UID", "UID"))
    headless = found.get("spec", {}).get("clusterIP") == "None"
    for path in () if headless else OTHERWISE.get(obj["kind"], ()):
        _drop(found, path.split("."))
    return found


def _drop(value, path):
    first, *rest = path
    for each in value if isinstance(value, list) else [value]:
        if not rest:
            each.pop(first, None)
        elif first in each:
            _drop(each[first], rest)
