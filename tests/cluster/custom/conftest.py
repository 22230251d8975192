from __future__ import annotations

import pytest

from cluster.api import custom_kinds
from cluster.controllers import definitions, garbage
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, store
from kube import resources
from tests import builders
from tests.cluster.story import Story


@pytest.fixture(autouse=True)
def cluster(transactional_db):
    """The namespace default; afterwards nobody knows the kinds that the test defined."""
    store.write(Create(resources.NAMESPACES, builders.namespace()))
    custom_kinds.reload()
    yield
    custom_kinds._known.clear()
    resources.set_custom(())


@pytest.fixture
def story(monkeypatch, moved_clock):
    """With the controllers of definitions and dependents, of which no timer waits, at a moment that is always the same."""
    monkeypatch.setattr(definitions, "RECHECK_MS", 0)
    moved_clock.us = 1_800_000_000_000_000
    made = {"definitions": definitions.Definitions, "garbage": garbage.GarbageCollector}
    return Story(moved_clock, lambda: [Runner(registry.get(name), 0, consumer()) for name, consumer in made.items()])
