"""What `volcano-scheduler.conf` may say: Volcano's own configurations, what has no effect here, and what is refused."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy import known
from scheduler.policy.configuration import LONGEST, read
from scheduler.policy.kept import Configuration
from scheduler.policy.policy import DEFAULT, Policy
from tests.blocks import blocks
from tests.campaign import examples
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


def said(text):
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
    golden(block, said)


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
    for name, plugin in known.PLUGINS.items():
        warned = any(f"{name} has no effect here" in each for each in said(LISTING % f"{{name: {name}}}"))
        assert warned == (plugin.standing is known.Standing.WITHOUT_EFFECT), name


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
