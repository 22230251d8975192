"""What `volcano-scheduler.conf` may say: Volcano's own configurations, what has no effect here, and what is refused."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.wishes import WishWeights
from scheduler.policy import known
from scheduler.policy.configuration import LONGEST, read
from scheduler.policy.kept import Configuration
from scheduler.policy.policy import (
    DEFAULT,
    Action,
    Fit,
    NodeGrouping,
    Packing,
    Policy,
    Scoring,
    Strategy,
    Taking,
    TaskTopologies,
    Usage,
)
from scheduler.policy.rescheduling import Levels, Rescheduling
from scheduler.policy.zones import Window, Zones
from tests.campaign import examples
from tests.tables import cases

from .world import configuration

THREE = frozenset({Action.ENQUEUE, Action.ALLOCATE, Action.BACKFILL})
MOVING = frozenset({Action.ALLOCATE, Action.SHUFFLE})
BUILT_IN = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
TIER = "{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}"
FIRST = "{name: overcommit}, {name: drf, enablePreemptable: false}"
LAST = "{name: proportion}, {name: nodeorder}, {name: binpack}"
HELM = f"""
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{TIER}]
- plugins: [{FIRST}, {{name: predicates}}, {LAST}]
"""
CI = f"""
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins: [{TIER}, {{name: sla}}]
- plugins: [{FIRST},
    {{name: predicates, arguments: {{predicate.DynamicResourceAllocationEnable: true}}}},
    {LAST}, {{name: network-topology-aware}}]
"""
ADDED = WishWeights(first=False)
SPREADING = Scoring(least=1, balanced=1)
BOTH = Scoring(1, (("cpu", 1), ("memory", 1)), least=1, balanced=1)
MOVES = "allocate, shuffle"


def conf(*plugins, actions="enqueue, allocate, backfill"):
    """A configuration with these lines below tiers[0].plugins."""
    listed = "\n".join(f"  {line}" for line in plugins)
    return f"actions: {actions}\ntiers:\n- plugins:\n{listed}\n"


def plugin(name, arguments):
    """A configuration with a plugin, whose arguments are on line 5."""
    return conf(f"- name: {name}", f"  arguments: {{{arguments}}}")


def moving(params):
    """A configuration by which pods are moved, with parameters on line 6."""
    strategies = f"[{{name: lowNodeUtilization, params: {params}}}]"
    lines = ("- name: nodeorder", "- name: rescheduling", f"  arguments: {{strategies: {strategies}}}")
    return conf(*lines, actions=MOVES)


def rescheduling(arguments):
    return conf("- name: rescheduling", f"  arguments: {{{arguments}}}", actions=MOVES)


@pytest.mark.shows("scheduler 2.6/gangpreempt", "scheduler 2.6/gangreclaim", "scheduler 4.1/Volcano's own")
@pytest.mark.shows("scheduler 4.1/actions")
@cases("text, expected", {
    "compiled in": (BUILT_IN, Policy(THREE, 1200, SPREADING, wishes=ADDED)),
    "Helm's": (HELM, Policy(THREE, 1200, BOTH, wishes=ADDED)),
    "of Volcano's own tests":
        (CI, Policy(DEFAULT.actions, 1200, BOTH, sla=True, wishes=ADDED, packing=Packing())),
    "no plugins": ("actions: allocate", Policy(frozenset({Action.ALLOCATE}), None, None)),
    "of whole gangs": ("actions: allocate, gangpreempt, gangreclaim",
        Policy(frozenset({Action.ALLOCATE, Action.PREEMPT, Action.RECLAIM}), None, None)),
    "what JSON cannot hold": (plugin("overcommit", "overcommit-factor: .nan"), None),
})  # fmt: skip
def test_policies(text, expected):
    assert read(text).policy == expected


STATED = (
    "resourceStrategyFitWeight: '5', resources: {nvidia.com/gpu*: {type: MostAllocated, weight: 2}, cpu: {weight: 0}}, "
    "sra: {enable: true, resources: 'nvidia.com/gpu, a/b', weight: 4, resourceWeight: {a/b: 3}}"
)
LEAST = (Strategy("cpu", 1, much=False), Strategy("memory", 1, much=False))
PREFERENCES = "nodeaffinity.weight: 9, podaffinity.weight: '0', tainttoleration.weight: 1, podtopologyspread.weight: 4"
BINPACK = "binpack.cpu: 5, binpack.resources: 'nvidia.com/gpu, example.com/foo', binpack.resources.nvidia.com/gpu: 2"
TIMES = "tdm.revocable-zone.b: '22:00-6:30', tdm.revocable-zone.a: '00:00-23:59', tdm.evict.period: 90s"
WINDOWS = (("a", Window(0, 86_340_000)), ("b", Window(79_200_000, 23_400_000)))
TARGETS = "strategies: [{name: lowNodeUtilization, parameters: {targetThresholds: {pods: 90}}}]"


@pytest.mark.shows("scheduler 3.8/leastrequested.weight", "scheduler 3.8/mostrequested.weight")
@pytest.mark.shows("scheduler 3.8/balancedresource.weight", "scheduler 3.9/binpack.weight")
@pytest.mark.shows("scheduler 3.9/binpack.cpu, binpack.memory", "scheduler 3.9/binpack.resources")
@pytest.mark.shows("scheduler 3.10/overcommit-factor", "scheduler 3.11 sla/sla-waiting-time")
@pytest.mark.shows("scheduler 4.1/enableJobEnqueued", "scheduler 4.1/enableNodeOrder", "scheduler 4.1/numbers as text")
@pytest.mark.shows("scheduler 3.11 rescheduling/thresholds, targetThresholds", "scheduler 3.11 rescheduling/interval")
@pytest.mark.shows("scheduler 3.11 tdm/tdm.revocable-zone.ZONE", "scheduler 3.11 task-topology/task-topology.weight")
@pytest.mark.shows("scheduler 3.11 usage/usage.weight, cpu.weight, memory.weight")
@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/resources")
@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/resourceStrategyFitWeight")
@cases("text, expected", {
    "how ordinary pods fill HyperNodes": (plugin("network-topology-aware",
        "weight: 3, hypernode.binpack.normal-pod.fading: 0.5"), {"packing": Packing(3, 0.5)}),
    "they fill none": (plugin("network-topology-aware", "hypernode.binpack.normal-pod.enable: false"), {}),
    "nor these": (conf("- {name: network-topology-aware, enableNodeOrder: false}"), {}),
    "protections": (conf("- name: pdb", "- name: cdp"), {"budgets": True, "cooldown": True}),
    "protections switched off":
        (conf("- {name: pdb, enablePreemptable: false}", "- {name: cdp, enablePreemptable: false}"), {}),
    "a factor": (plugin("overcommit", "overcommit-factor: 1.5"), {"overcommit": 1500}),
    "a number as text": (plugin("overcommit", "overcommit-factor: '2'"), {"overcommit": 2000}),
    "below 1: the default (§3.10)": (plugin("overcommit", "overcommit-factor: 0.5"), {"overcommit": 1200}),
    "overcommit switched off": (conf("- {name: overcommit, enableJobEnqueued: false}"), {}),
    "weights of nodeorder": (plugin("nodeorder", "leastrequested.weight: 0, mostrequested.weight: '3'"),
        {"scoring": Scoring(most=3, balanced=1), "wishes": ADDED}),
    "weights of what pods prefer alone":
        (plugin("nodeorder", f"leastrequested.weight: 0, balancedresource.weight: 0, {PREFERENCES}"),
        {"wishes": WishWeights(9, 0, 1, 4, first=False)}),
    "nodeorder switched off": (conf("- {name: nodeorder, enableNodeOrder: false}"), {}),
    "weights of binpack": (plugin("binpack", f"binpack.weight: 10, {BINPACK}"),
        {"scoring": Scoring(10, (("cpu", 5), ("example.com/foo", 1), ("memory", 1), ("nvidia.com/gpu", 2)))}),
    "binpack of no weight": (plugin("binpack", "binpack.weight: 0"), {}),
    "use of resources": (conf("- name: resource-strategy-fit"), {"scoring": Scoring(fit=Fit(10, LEAST))}),
    "use of resources as stated": (plugin("resource-strategy-fit", STATED), {"scoring": Scoring(fit=Fit(
        5, (Strategy("nvidia.com/gpu*", 2, much=True), LEAST[0]), 4, (("nvidia.com/gpu", 1), ("a/b", 3))))}),
    "use of resources of no weight": (plugin("resource-strategy-fit", "resourceStrategyFitWeight: 0"), {}),
    "load": (conf("- name: usage"), {"usage": Usage()}),
    "limits of load":
        (conf("- {name: usage, enableNodeOrder: false, arguments: {cpu.weight: 3, thresholds: {mem: '70'}}}"),
        {"usage": Usage(0, 3, 1, 80, 70)}),
    "weights of load": (conf("- {name: usage, enablePredicate: false, arguments: {usage.weight: 2}}"),
        {"usage": Usage(2, 1, 1, None, None)}),
    "topology of tasks": (conf("- name: task-topology"), {"tasks": TaskTopologies()}),
    "weight of the topology of tasks":
        (conf("- {name: task-topology, enableTaskOrder: false, arguments: {task-topology.weight: '7'}}"),
        {"tasks": TaskTopologies(7, orders=False)}),
    "order of tasks alone": (conf("- {name: task-topology, enableNodeOrder: false}"), {"tasks": TaskTopologies(0)}),
    "zones without times": (conf("- name: tdm"), {"zones": Zones()}),
    "zones with times": (conf(f"- {{name: tdm, enabledVictim: false, arguments: {{{TIMES}}}}}"),
        {"zones": Zones(WINDOWS, 90_000, evicts=False)}),
    "node groups": (conf("- name: nodegroup"), {"node_groups": NodeGrouping()}),
    "node groups are inherited":
        (conf("- {name: nodegroup, enableHierarchy: true}"), {"node_groups": NodeGrouping(inherits=True)}),
    "options of node groups": (plugin("nodegroup", "strict: 'false', enablePreferredOrder: true"),
        {"node_groups": NodeGrouping(strict=False, by_order=True)}),
    "nodegroup switched off": (conf("- {name: nodegroup, enablePredicate: false}"), {}),
    "a time to wait": (plugin("sla", "sla-waiting-time: 1h30m"), {"sla": True, "waits_ms": 5_400_000}),
    "a time that nobody lives to see":
        (plugin("sla", "sla-waiting-time: 9999999999h"), {"sla": True, "waits_ms": 100 * 365 * 24 * 3_600_000}),
    "sla switched off": (conf("- {name: sla, enableJobEnqueued: false}"), {}),
    "when room is kept": (plugin("gang", "reservation-wait: 1h30m"), {"reserves_ms": 5_400_000}),
    "no room is kept": (plugin("gang", "reservation-wait: never"), {"reserves_ms": None}),
    "no wait: the default": (plugin("gang", "reservation-wait: 0s"), {}),
    "moving switched off":
        (conf("- {name: rescheduling, enabledVictim: false}", actions=MOVES), {"actions": MOVING}),
    "pods are moved": (moving("{thresholds: {cpu: 20, memory: '30', pods: 40}, targetThresholds: {cpu: 50}}"),
        {"actions": MOVING, "scoring": SPREADING, "wishes": ADDED,
        "rescheduling": Rescheduling(Levels(20, 30, 40), Levels(50))}),
    "an interval": (rescheduling(f"interval: 90s, {TARGETS}"),
        {"actions": MOVING, "rescheduling": Rescheduling(Levels(pods=90), Levels(pods=90), 90_000)}),
})  # fmt: skip
def test_what_a_plugin_changes(text, expected):
    assert read(text).policy == Policy(**{"actions": THREE, "overcommit": None, **expected})


@pytest.mark.shows("scheduler 2.6/maxDomains", "scheduler 2.6/allowWholeBundle", "scheduler 4.1/configurations")
@cases("arguments, expected", {
    "both": ("{maxDomains: 3, allowWholeBundle: false}", Taking(3, gangs=False)),
    "none is as if nothing were said": ("{maxDomains: 0}", Taking(8)),
    "a text": ("{allowWholeBundle: 'False'}", Taking(8, gangs=False)),
})  # fmt: skip
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_how_others_end(action, arguments, expected):
    text = f"actions: allocate, {action}\nconfigurations:\n- {{name: gang{action}, arguments: {arguments}}}"
    policy = read(text).policy
    other = {"preempt": policy.reclaim, "reclaim": policy.preempt}[action]
    assert (getattr(policy, action), other) == (expected, Taking())


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1h30m", 5_400_000), ("0", 0), ("0s", 0), ("'0'", 0), ("true", 300_000), ("", 300_000), ("soon", 300_000)],
)
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_how_long_what_was_evicted_runs_at_least(action, value, expected):
    text = f"actions: allocate, {action}\nconfigurations:\n- {{name: {action}, arguments: {{minRuntime: {value}}}}}"
    policy = read(text).policy
    assert (policy.min_runtime_ms, policy.reclaim) == (expected, Taking())


@pytest.mark.shows("scheduler 3.1/always", "scheduler 4.1/order of actions", "scheduler 4.1/unknown plugin")
@pytest.mark.shows("scheduler 4.1/tiers", "scheduler 4.1/flags", "scheduler 4.1/what is no number")
@pytest.mark.shows("scheduler 4.1/plugins that always work", "scheduler 11/7", "scheduler 4.1/metrics")
@pytest.mark.shows("scheduler 4.1/unknown action", "scheduler 4.1/hdrf beside proportion")
def test_what_is_said_of_each_line_and_whether_it_is_refused(golden):
    def said(text):
        reading = read(text)
        assert (reading.policy is None) == bool(reading.errors)
        yield from (f"refused, line {each.line}: {each.message}" for each in reading.errors)
        yield from (f"line {each.line}: {each.message}" for each in reading.warnings)

    golden("configurations", said)


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
        said = f"{name} has no effect here" in " ".join(f.message for f in read(conf(f"- name: {name}")).warnings)
        assert said == (plugin.standing is known.Standing.WITHOUT_EFFECT), name


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
    steps = [
        (stored(plugin("overcommit", "overcommit-factor: 2")), 2000),
        (stored("actions: x"), 2000),
        (None, 1200),
        (stored("-"), 1200),
    ]
    for body, expected in steps:
        held.take(body)
        assert held.policy.overcommit == expected
    assert held.refused.message == "The configuration is a mapping with actions and tiers, not a list."
    held.take(stored(HELM, key="volcano-scheduler.yaml"))
    assert held.policy == DEFAULT
    assert held.refused.message.endswith("has no entry volcano-scheduler.conf with the configuration. "
                                         "Did you mean volcano-scheduler.yaml?")  # fmt: skip
