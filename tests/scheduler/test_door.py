"""Who may configure the scheduler, and what the door refuses whatever client brings it."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest

from cluster import api
from cluster.store import Create, store
from kube.errors import Forbidden, Invalid
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, NAMESPACES
from tests.cluster.api.conftest import admin, config_map, namespace, person  # noqa: F401
from tests.tables import cases

from .world import configuration

PLACE = ("volcano-system", "volcano-scheduler-configmap")
GOOD = "actions: enqueue, allocate"


@pytest.fixture(autouse=True)
def _system(db):
    store.write(Create(NAMESPACES, namespace("volcano-system")))


def written(text, *, creator="", **more):
    _, obj = configuration(text, **more)
    if creator:
        obj["metadata"]["annotations"] = {CREATOR_ANNOTATION: creator}
    return {"apiVersion": "v1", "kind": "ConfigMap", **obj}


@cases("roles, may", {
    "administrators of everything": ({"everywhere": "administrator"}, True),
    "administrators of the namespace": ({"volcano-system": "administrator"}, True),
    "no operators": ({"everywhere": "operator"}, False),
    "no submitters": ({"everywhere": "submitter"}, False),
})  # fmt: skip
def test_configuring_the_scheduler_is_for_administrators(person, roles, may):  # noqa: F811
    actor = person("alice", **roles)
    api.create(actor, CONFIGMAPS, config_map("mine", "volcano-system"))
    only = (
        does_not_raise() if may else pytest.raises(Forbidden, match="It takes the role administrator in volcano-system")
    )
    with only:
        api.create(actor, CONFIGMAPS, written(GOOD))
    if not may:
        store.write(Create(CONFIGMAPS, written(GOOD, creator="alice")))
    with only:
        api.patch(actor, CONFIGMAPS, *PLACE, {"data": {"other": "x"}})
    with only:
        api.delete(actor, CONFIGMAPS, *PLACE)


@pytest.mark.shows("scheduler 4.1/unknown action")
@cases("body, message", {
    "a slip": (written("actions: alocate"), "Line 1: There is no action alocate. Did you mean allocate?"),
    "another entry": (written(GOOD, key="volcano-scheduler"),
        "The config map volcano-scheduler-configmap has no entry volcano-scheduler.conf with the configuration. "
        "Did you mean volcano-scheduler?"),
})  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_cause(admin, body, message):  # noqa: F811
    with pytest.raises(Invalid) as refused:
        api.create(admin, CONFIGMAPS, body)
    assert [(c.field, c.message) for c in refused.value.causes] == [("data[volcano-scheduler.conf]", message)]
    api.create(admin, CONFIGMAPS, written(GOOD))
    with pytest.raises(Invalid):
        api.update(admin, CONFIGMAPS, body)
    assert store.get(CONFIGMAPS, *PLACE).object["data"] == {"volcano-scheduler.conf": GOOD}


@cases("name, place", {
    "of another namespace": ("volcano-scheduler-configmap", "other"),
    "of another name": ("mine", "volcano-system"),
})  # fmt: skip
def test_other_config_maps_may_say_anything(admin, name, place):  # noqa: F811
    store.write(Create(NAMESPACES, namespace("other")))
    one = config_map(name, place, **{"volcano-scheduler.conf": "actions: alocate"})
    assert api.create(admin, CONFIGMAPS, one).object["data"]


def test_one_that_is_stored_already_may_stay(admin):  # noqa: F811
    """As on a cluster whose own API server took it: a label is no reason to refuse it."""
    store.write(Create(CONFIGMAPS, written("actions: alocate")))
    api.patch(admin, CONFIGMAPS, *PLACE, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Invalid):
        api.patch(admin, CONFIGMAPS, *PLACE, {"data": {"volcano-scheduler.conf": "actions: x"}})


def test_what_has_no_effect_is_told_as_a_warning(admin):  # noqa: F811
    told = api.review(admin, CONFIGMAPS, written("actions: allocate, shuffle"))
    moves = "data[volcano-scheduler.conf]: Line 1: shuffle moves no pod without the plugin rescheduling."
    assert moves in told.warnings
