"""Kinds that users define lie in namespaces like others, and fall under the same rights."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.access.roles import Grants, Role, decide
from cluster.api import custom_kinds
from cluster.controllers import namespaces
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import store
from kube import resources
from kube.resources import NAMESPACES
from tests.kube.custom import samples

from .test_lifecycle import ID, create, cron_tabs, define


def test_custom_objects_go_with_their_namespace():
    define()
    api.create(SYSTEM, NAMESPACES, {"metadata": {"name": "work"}})
    inside = samples.cron_tab("inside")
    inside["metadata"]["namespace"] = "work"
    api.create(SYSTEM, cron_tabs(), inside)
    create("outside")
    api.delete(SYSTEM, NAMESPACES, "", "work")
    custom_kinds._known.clear()  # as in a process that has not heard of the definition
    resources.set_custom(())
    runner = Runner(registry.get("namespaces"), 0, namespaces.NamespaceController())
    while runner.step():
        pass
    assert [found.name for found in store.find(cron_tabs())] == ["outside"]
    assert "work" not in [found.name for found in store.find(NAMESPACES)]


@pytest.mark.parametrize(
    ("role", "verb", "owner", "expected"),
    [
        (Role.VIEWER, "list", None, True),
        (Role.VIEWER, "create", "me", False),
        (Role.SUBMITTER, "create", "me", True),
        (Role.SUBMITTER, "delete", "you", False),
        (Role.OPERATOR, "delete", "you", True),
    ],
)
def test_custom_objects_are_for_whom_config_maps_are(role, verb, owner, expected):
    grants = Grants("me", {"default": role})
    assert not decide(grants, verb, ID, "default", owner)
    define()
    assert decide(grants, verb, ID, "default", owner) is expected
