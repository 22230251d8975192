"""What `volcano-scheduler.conf` may say: Volcano's own configurations, what has no effect here, what is refused, and of whom."""

import json
from contextlib import nullcontext as does_not_raise
from dataclasses import fields, is_dataclass

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster import api
from cluster.store import Create, store
from kube.errors import Forbidden, Invalid
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, NAMESPACES
from scheduler.policy import supported
from scheduler.policy.config_map import Configuration
from scheduler.policy.configuration import LONGEST, read
from scheduler.policy.policy import DEFAULT, Policy
from tests.blocks import blocks
from tests.campaign import examples
from tests.cluster.api.conftest import admin, config_map, namespace, person  # noqa: F401
from tests.tables import cases

from .world import configuration

HELM = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf, enablePreemptable: false}, {name: predicates},
    {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
LISTING = "actions: allocate\ntiers: [{plugins: [%s]}]"
TWICE = LISTING % "{name: overcommit, arguments: {overcommit-factor: 2}}"
PLAIN = Policy(overcommit=None)


def stated(value):
    """Return a value, of a class with fields those alone that it does not have by default."""
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    if not is_dataclass(value):
        return repr(value)
    pairs = {
        each.name: getattr(value, each.name) for each in fields(value) if getattr(value, each.name) != each.default
    }
    return f"{type(value).__name__}({', '.join(f'{name}={stated(each)}' for name, each in pairs.items())})"


def effects_of(text):
    """Yield what a configuration changes, and what is said of its lines."""
    reading = read(text)
    assert (reading.policy is None) == bool(reading.errors)
    for each in fields(Policy) if reading.policy else ():
        value = getattr(reading.policy, each.name)
        if value != getattr(PLAIN, each.name):
            yield f"{each.name}: {stated(value)}"
    yield from (f"refused, line {each.line}: {each.message}" for each in reading.errors)
    yield from (f"line {each.line}: {each.message}" for each in reading.warnings)


@pytest.mark.shows("scheduler 3.8/leastrequested.weight", "scheduler 3.8/mostrequested.weight")
@pytest.mark.shows("scheduler 3.8/balancedresource.weight", "scheduler 3.9/binpack.weight")
@pytest.mark.shows("scheduler 3.9/binpack.cpu, binpack.memory", "scheduler 3.9/binpack.resources")
@pytest.mark.shows("scheduler 3.10/overcommit-factor", "scheduler 3.11 sla/sla-waiting-time")
@pytest.mark.shows("scheduler 3.11 rescheduling/thresholds, targetThresholds", "scheduler 3.11 rescheduling/interval")
@pytest.mark.shows("scheduler 3.11 tdm/tdm.revocable-zone.ZONE", "scheduler 3.11 task-topology/task-topology.weight")
@pytest.mark.shows("scheduler 3.11 usage/usage.weight, cpu.weight, memory.weight")
@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/resources")
@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/resourceStrategyFitWeight")
@pytest.mark.shows("scheduler 2.6/gangpreempt", "scheduler 2.6/gangreclaim", "scheduler 4.1/Volcano's own")
@pytest.mark.shows("scheduler 4.1/actions", "scheduler 4.1/enableJobEnqueued", "scheduler 4.1/enableNodeOrder")
@pytest.mark.shows("scheduler 2.6/maxDomains", "scheduler 2.6/allowWholeBundle", "scheduler 4.1/configurations")
@pytest.mark.shows("scheduler 3.1/always", "scheduler 4.1/order of actions", "scheduler 4.1/unknown plugin")
@pytest.mark.shows("scheduler 4.1/tiers", "scheduler 4.1/flags", "scheduler 4.1/what is no number")
@pytest.mark.shows("scheduler 4.1/plugins that always work", "scheduler 4.1/numbers as text", "scheduler 4.1/metrics")
@pytest.mark.shows("scheduler 4.1/unknown action", "scheduler 4.1/hdrf beside proportion", "scheduler 11/7")
@blocks("configurations")
def test_what_each_configuration_changes_and_what_is_said_of_its_lines(block, golden):
    golden(block, effects_of)


@cases("text, message", {
    "nothing": ("", "The configuration is empty; it needs at least actions."),
    "half a character": ("a: \ud800", "The configuration holds half a character; remove it."),
    "too long": ("#" * (LONGEST + 1),
        f"The configuration has {LONGEST + 1:,} characters; at most {LONGEST:,} are read."),
})  # fmt: skip
def test_what_cannot_be_read(text, message):
    reading = read(text)
    assert reading.policy is None
    assert [(finding.line, finding.message) for finding in reading.errors] == [(0, message)]


@pytest.mark.shows("scheduler 4.1/plugins that always work")
def test_each_plugin_of_volcano_is_either_heeded_or_said_to_have_no_effect():
    for name, plugin in supported.PLUGINS.items():
        warned = any(f"{name} has no effect here" in each for each in effects_of(LISTING % f"{{name: {name}}}"))
        assert warned == (plugin.support is supported.PluginSupport.WITHOUT_EFFECT), name


words = st.sampled_from(
    ["actions", "tiers", "plugins", "name", "gang", "drf", "binpack", "arguments", "enqueue, allocate", "configurations",
     "enableJobOrder", "overcommit", "overcommit-factor", "metrics", "binpack.resources", "nodeorder"]
)  # fmt: skip
leaves = st.one_of(words, st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=8))
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=25
)


@pytest.mark.shows("scheduler 4.1/one cycle")
@examples(500)
@given(st.one_of(st.text(), values.map(yaml.safe_dump)))
def test_no_text_raises_and_none_is_half_in_force(text):
    reading = read(text)
    assert (reading.policy is None) == bool(reading.errors)
    held = Configuration()
    for version in (HELM, text):
        held.take(stored(version))
    assert held.policy == (reading.policy or read(HELM).policy)
    assert (held.refused is None) == (reading.policy is not None)


def stored(text, **more):
    return json.dumps(configuration(text, **more)[1]).encode(errors="replace")


@pytest.mark.shows("scheduler 4.1/invalid")
def test_what_holds_from_version_to_version():
    held = Configuration()
    steps = [(stored(TWICE), 2000), (stored("actions: x"), 2000), (None, 1200), (stored("-"), 1200)]
    for body, expected in steps:
        held.take(body)
        assert held.policy.overcommit == expected
    assert held.refused.message == "The configuration is a mapping with actions and tiers, not a list."
    held.take(stored(HELM, key="volcano-scheduler.yaml"))
    assert held.policy == DEFAULT
    assert held.refused.message.endswith("has no entry volcano-scheduler.conf with the configuration. "
                                         "Did you mean volcano-scheduler.yaml?")  # fmt: skip


# Who may write it, and what is refused whatever client brings it

CONFIG_MAP = ("volcano-system", "volcano-scheduler-configmap")
GOOD = "actions: enqueue, allocate"


@pytest.fixture
def door(db):
    """The API, where the namespace of the configuration is."""
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
def test_configuring_the_scheduler_is_for_administrators(door, person, roles, may):  # noqa: F811
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
        api.patch(actor, CONFIGMAPS, *CONFIG_MAP, {"data": {"other": "x"}})
    with only:
        api.delete(actor, CONFIGMAPS, *CONFIG_MAP)


@pytest.mark.shows("scheduler 4.1/unknown action")
@cases("body, message", {
    "a slip": (written("actions: alocate"), "Line 1: There is no action alocate. Did you mean allocate?"),
    "another entry": (written(GOOD, key="volcano-scheduler"),
        "The config map volcano-scheduler-configmap has no entry volcano-scheduler.conf with the configuration. "
        "Did you mean volcano-scheduler?"),
})  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_cause(door, admin, body, message):  # noqa: F811
    with pytest.raises(Invalid) as refused:
        api.create(admin, CONFIGMAPS, body)
    assert [(c.field, c.message) for c in refused.value.causes] == [("data[volcano-scheduler.conf]", message)]
    api.create(admin, CONFIGMAPS, written(GOOD))
    with pytest.raises(Invalid):
        api.update(admin, CONFIGMAPS, body)
    assert store.get(CONFIGMAPS, *CONFIG_MAP).object["data"] == {"volcano-scheduler.conf": GOOD}


@cases("name, in_namespace", {
    "of another namespace": ("volcano-scheduler-configmap", "other"),
    "of another name": ("mine", "volcano-system"),
})  # fmt: skip
def test_other_config_maps_may_say_anything(door, admin, name, in_namespace):  # noqa: F811
    store.write(Create(NAMESPACES, namespace("other")))
    one = config_map(name, in_namespace, **{"volcano-scheduler.conf": "actions: alocate"})
    assert api.create(admin, CONFIGMAPS, one).object["data"]


def test_one_that_is_stored_already_may_stay(door, admin):  # noqa: F811
    """As on a cluster whose own API server took it: a label is no reason to refuse it."""
    store.write(Create(CONFIGMAPS, written("actions: alocate")))
    api.patch(admin, CONFIGMAPS, *CONFIG_MAP, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Invalid):
        api.patch(admin, CONFIGMAPS, *CONFIG_MAP, {"data": {"volcano-scheduler.conf": "actions: x"}})


def test_what_has_no_effect_is_told_as_a_warning(door, admin):  # noqa: F811
    review = api.review(admin, CONFIGMAPS, written("actions: allocate, shuffle"))
    moves = "data[volcano-scheduler.conf]: Line 1: shuffle moves no pod without the plugin rescheduling."
    assert moves in review.warnings
