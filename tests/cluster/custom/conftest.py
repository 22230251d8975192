from __future__ import annotations

import pytest

from cluster.api import custom_kinds
from cluster.controllers import definitions, garbage
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, store
from kube import resources
from tests import builders


@pytest.fixture(autouse=True)
def cluster(transactional_db):
    """The namespace default; afterwards nobody knows the kinds that the test defined."""
    store.write(Create(resources.NAMESPACES, builders.namespace()))
    custom_kinds.reload()
    yield
    custom_kinds._known.clear()
    resources.set_custom(())


class Controllers:
    """The consumers that look after definitions and dependents."""

    def __init__(self):
        self.runners = [
            Runner(registry.get("definitions"), 0, definitions.Definitions()),
            Runner(registry.get("garbage"), 0, garbage.GarbageCollector()),
        ]
        self.settle()

    def settle(self):
        while any(runner.step() for runner in self.runners):
            pass


@pytest.fixture
def controllers(monkeypatch):
    monkeypatch.setattr(definitions, "RECHECK_MS", 0)  # a timer is due at once
    return Controllers()
