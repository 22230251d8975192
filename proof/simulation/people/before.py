"""What there is before anybody wants anything: queues, priority classes, namespaces, a quota."""

from __future__ import annotations

from collections.abc import Iterator

from kube.resources import NAMESPACES, PRIORITY_CLASSES, QUEUES, RESOURCE_QUOTAS
from proof.simulation.people.request import Request, create

CLASSES = {"high": 1000, "low": 10}
SPACES = ("team", "research")
WEIGHTS = {"q1": 1, "q2": 2, "q3": 4}
QUOTA = "team"
ROOMY = {"pods": "100", "requests.cpu": "120", "count/jobs.batch.volcano.sh": "200"}


def setup() -> list[Request]:
    """Return the administrator's first requests, in their order."""
    return [*_namespaces(), *_queues(), *_classes(), _quota()]


def _namespaces() -> Iterator[Request]:
    for name in SPACES:
        yield create("admin", NAMESPACES, {"metadata": {"name": name}}, f"admin makes the namespace {name}")


def _queues() -> Iterator[Request]:
    for name, weight in WEIGHTS.items():
        body = {"metadata": {"name": name}, "spec": {"weight": weight}}
        yield create("admin", QUEUES, body, f"admin makes the queue {name} of weight {weight}")


def _classes() -> Iterator[Request]:
    for name, value in CLASSES.items():
        body = {"metadata": {"name": name}, "value": value}
        yield create("admin", PRIORITY_CLASSES, body, f"admin makes the priority class {name} of {value}")


def _quota() -> Request:
    body = {"metadata": {"name": QUOTA, "namespace": "team"}, "spec": {"hard": ROOMY}}
    return create("admin", RESOURCE_QUOTAS, body, "admin bounds what the namespace team may use")
