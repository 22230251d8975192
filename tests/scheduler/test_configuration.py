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

from .world import configuration

THREE = frozenset({Action.ENQUEUE, Action.ALLOCATE, Action.BACKFILL})
BUILT_IN = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
HELM = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
CI = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""
ADDED = WishWeights(first=False)
SPREADING = Scoring(least=1, balanced=1)
BOTH = Scoring(1, (("cpu", 1), ("memory", 1)), least=1, balanced=1)


def conf(*plugins, actions="enqueue, allocate, backfill"):
    """A configuration with these lines below tiers[0].plugins."""
    listed = "\n".join(f"  {line}" for line in plugins)
    return f"actions: {actions}\ntiers:\n- plugins:\n{listed}\n"


MOVES = "allocate, shuffle"


def moving(params):
    """A configuration by which pods are moved, with parameters on line 6."""
    strategy = f"{{name: lowNodeUtilization, params: {params}}}"
    return conf(
        "- name: nodeorder", "- name: rescheduling", f"  arguments: {{strategies: [{strategy}]}}", actions=MOVES
    )


def overcommit(factor):
    return conf("- name: overcommit", f"  arguments: {{overcommit-factor: {factor}}}")


@pytest.mark.shows(
    "scheduler 3.8/leastrequested.weight",
    "scheduler 3.8/mostrequested.weight",
    "scheduler 3.8/balancedresource.weight",
    "scheduler 3.9/binpack.weight",
    "scheduler 3.9/binpack.cpu, binpack.memory",
    "scheduler 3.9/binpack.resources",
    "scheduler 3.10/overcommit-factor",
    "scheduler 3.11 sla/sla-waiting-time",
    "scheduler 4.1/Volcano's own",
    "scheduler 4.1/actions",
    "scheduler 4.1/enableJobEnqueued",
    "scheduler 4.1/enableNodeOrder",
    "scheduler 4.1/numbers as text",
    "scheduler 3.11 rescheduling/thresholds, targetThresholds",
    "scheduler 3.11 rescheduling/interval",
    "scheduler 3.11 tdm/tdm.revocable-zone.ZONE",
    "scheduler 3.11 usage/usage.weight, cpu.weight, memory.weight",
    "scheduler 3.11 task-topology/task-topology.weight",
    "scheduler 3.11 resource-strategy-fit/resources",
    "scheduler 3.11 resource-strategy-fit/resourceStrategyFitWeight",
    "scheduler 2.6/gangpreempt",
    "scheduler 2.6/gangreclaim",
)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(BUILT_IN, Policy(THREE, 1200, SPREADING, wishes=ADDED), id="compiled in"),
        pytest.param(HELM, Policy(THREE, 1200, BOTH, wishes=ADDED), id="Helm's"),
        pytest.param(
            CI, Policy(DEFAULT.actions, 1200, BOTH, sla=True, wishes=ADDED, packing=Packing()), id="of Volcano's own tests"
        ),
        pytest.param(
            conf(
                "- name: network-topology-aware",
                "  arguments: {weight: 3, hypernode.binpack.normal-pod.fading: 0.5}",
            ),
            Policy(THREE, None, packing=Packing(3, 0.5)),
            id="how ordinary pods fill HyperNodes",
        ),
        pytest.param(
            conf(
                "- name: network-topology-aware",
                "  arguments: {hypernode.binpack.normal-pod.enable: false}",
            ),
            Policy(THREE, None),
            id="ordinary pods fill no HyperNodes",
        ),
        pytest.param(
            conf("- {name: network-topology-aware, enableNodeOrder: false}"), Policy(THREE, None), id="nor these"
        ),
        pytest.param("actions: allocate", Policy(frozenset({Action.ALLOCATE}), None, None), id="no plugins"),
        pytest.param(
            "actions: allocate, gangpreempt, gangreclaim",
            Policy(frozenset({Action.ALLOCATE, Action.PREEMPT, Action.RECLAIM}), None, None),
            id="of whole gangs",
        ),
        pytest.param(
            conf("- name: pdb", "- name: cdp"), Policy(THREE, None, budgets=True, cooldown=True), id="protections"
        ),
        pytest.param(
            conf("- {name: pdb, enablePreemptable: false}", "- {name: cdp, enablePreemptable: false}"),
            Policy(THREE, None),
            id="protections switched off",
        ),
        pytest.param(overcommit("1.5"), Policy(THREE, 1500), id="a factor"),
        pytest.param(overcommit('"2"'), Policy(THREE, 2000), id="a number as text"),
        pytest.param(overcommit("0.5"), Policy(THREE, 1200), id="below 1: the default (§3.10)"),
        pytest.param(overcommit(".nan"), None, id="what JSON cannot hold"),
        pytest.param(
            conf("- {name: overcommit, enableJobEnqueued: false}"), Policy(THREE, None), id="switched off"
        ),
        pytest.param(
            conf("- name: nodeorder", "  arguments: {leastrequested.weight: 0, mostrequested.weight: '3'}"),
            Policy(THREE, None, Scoring(most=3, balanced=1), wishes=ADDED),
            id="weights of nodeorder",
        ),
        pytest.param(
            conf("- {name: nodeorder, enableNodeOrder: false}"), Policy(THREE, None), id="nodeorder switched off"
        ),
        pytest.param(
            conf(
                "- name: nodeorder",
                "  arguments:",
                "    leastrequested.weight: 0",
                "    balancedresource.weight: 0",
                "    nodeaffinity.weight: 9",
                "    podaffinity.weight: '0'",
                "    tainttoleration.weight: 1",
                "    podtopologyspread.weight: 4",
            ),
            Policy(THREE, None, wishes=WishWeights(9, 0, 1, 4, first=False)),
            id="weights of what pods prefer alone",
        ),
        pytest.param(
            conf(
                "- name: binpack",
                "  arguments:",
                "    binpack.weight: 10",
                "    binpack.cpu: 5",
                "    binpack.resources: nvidia.com/gpu, example.com/foo",
                "    binpack.resources.nvidia.com/gpu: 2",
            ),
            Policy(
                THREE,
                None,
                Scoring(10, (("cpu", 5), ("example.com/foo", 1), ("memory", 1), ("nvidia.com/gpu", 2))),
            ),
            id="weights of binpack",
        ),
        pytest.param(
            conf("- name: resource-strategy-fit"),
            Policy(THREE, None, Scoring(fit=Fit(10, (Strategy("cpu", 1, much=False), Strategy("memory", 1, much=False))))),
            id="use of resources",
        ),
        pytest.param(
            conf(
                "- name: resource-strategy-fit",
                "  arguments:",
                "    resourceStrategyFitWeight: '5'",
                "    resources: {nvidia.com/gpu*: {type: MostAllocated, weight: 2}, cpu: {weight: 0}}",
                "    sra: {enable: true, resources: 'nvidia.com/gpu, a/b', weight: 4, resourceWeight: {a/b: 3}}",
            ),
            Policy(THREE, None, Scoring(fit=Fit(
                5, (Strategy("nvidia.com/gpu*", 2, much=True), Strategy("cpu", 1, much=False)),
                4, (("nvidia.com/gpu", 1), ("a/b", 3)),
            ))),
            id="use of resources as stated",
        ),
        pytest.param(
            conf("- name: resource-strategy-fit", "  arguments: {resourceStrategyFitWeight: 0}"),
            Policy(THREE, None), id="use of resources of no weight",
        ),
        pytest.param(
            conf("- name: usage"), Policy(THREE, None, usage=Usage()), id="load"
        ),
        pytest.param(
            conf(
                "- name: usage", "  enableNodeOrder: false",
                "  arguments: {cpu.weight: 3, thresholds: {mem: '70'}}",
            ),
            Policy(THREE, None, usage=Usage(0, 3, 1, 80, 70)), id="limits of load",
        ),
        pytest.param(
            conf("- name: usage", "  enablePredicate: false", "  arguments: {usage.weight: 2}"),
            Policy(THREE, None, usage=Usage(2, 1, 1, None, None)), id="weights of load",
        ),
        pytest.param(
            moving("{thresholds: {cpu: 20, memory: '30', pods: 40}, targetThresholds: {cpu: 50}}"),
            Policy(
                frozenset((Action.ALLOCATE, Action.SHUFFLE)), None, SPREADING, wishes=ADDED,
                rescheduling=Rescheduling(Levels(20, 30, 40), Levels(50)),
            ),
            id="pods are moved",
        ),
        pytest.param(
            conf(
                "- name: rescheduling",
                "  arguments: {interval: 90s, strategies: [{name: lowNodeUtilization, parameters: {targetThresholds: {pods: 90}}}]}",
                actions=MOVES,
            ),
            Policy(
                frozenset((Action.ALLOCATE, Action.SHUFFLE)), None,
                rescheduling=Rescheduling(Levels(pods=90), Levels(pods=90), 90_000),
            ),
            id="an interval",
        ),
        pytest.param(
            conf("- {name: rescheduling, enabledVictim: false}", actions=MOVES),
            Policy(frozenset((Action.ALLOCATE, Action.SHUFFLE)), None), id="moving switched off",
        ),
        pytest.param(
            conf("- name: task-topology"), Policy(THREE, None, tasks=TaskTopologies()), id="topology of tasks"
        ),
        pytest.param(
            conf("- name: task-topology", "  enableTaskOrder: false", "  arguments: {task-topology.weight: '7'}"),
            Policy(THREE, None, tasks=TaskTopologies(7, orders=False)), id="weight of the topology of tasks",
        ),
        pytest.param(
            conf("- {name: task-topology, enableNodeOrder: false}"),
            Policy(THREE, None, tasks=TaskTopologies(0)), id="order of tasks alone",
        ),
        pytest.param(conf("- name: tdm"), Policy(THREE, None, zones=Zones()), id="zones without times"),
        pytest.param(
            conf(
                "- name: tdm", "  enabledVictim: false",
                "  arguments: {tdm.revocable-zone.b: '22:00-6:30', tdm.revocable-zone.a: '00:00-23:59', tdm.evict.period: 90s}",
            ),
            Policy(THREE, None, zones=Zones(
                (("a", Window(0, 86_340_000)), ("b", Window(79_200_000, 23_400_000))), 90_000, evicts=False
            )),
            id="zones with times",
        ),
        pytest.param(
            conf("- name: nodegroup"), Policy(THREE, None, node_groups=NodeGrouping()), id="node groups"
        ),
        pytest.param(
            conf("- {name: nodegroup, enableHierarchy: true}"),
            Policy(THREE, None, node_groups=NodeGrouping(inherits=True)), id="node groups are inherited",
        ),
        pytest.param(
            conf("- name: nodegroup", "  arguments: {strict: 'false', enablePreferredOrder: true}"),
            Policy(THREE, None, node_groups=NodeGrouping(strict=False, by_order=True)), id="options of node groups",
        ),
        pytest.param(
            conf("- {name: nodegroup, enablePredicate: false}"), Policy(THREE, None), id="nodegroup switched off"
        ),
        pytest.param(
            conf("- name: sla", "  arguments: {sla-waiting-time: 1h30m}"),
            Policy(THREE, None, sla=True, waits_ms=5_400_000),
            id="a time to wait",
        ),
        pytest.param(
            conf("- name: sla", "  arguments: {sla-waiting-time: 9999999999h}"),
            Policy(THREE, None, sla=True, waits_ms=100 * 365 * 24 * 3_600_000),
            id="a time that nobody lives to see",
        ),
        pytest.param(
            conf("- {name: gang, arguments: {reservation-wait: 1h30m}}"),
            Policy(THREE, None, reserves_ms=5_400_000),
            id="when room is kept",
        ),
        pytest.param(
            conf("- {name: gang, arguments: {reservation-wait: never}}"),
            Policy(THREE, None, reserves_ms=None),
            id="no room is kept",
        ),
        pytest.param(
            conf("- {name: gang, arguments: {reservation-wait: 0s}}"), Policy(THREE, None), id="no wait: the default"
        ),
        pytest.param(conf("- {name: sla, enableJobEnqueued: false}"), Policy(THREE, None), id="sla switched off"),
        pytest.param(
            conf("- name: binpack", "  arguments: {binpack.weight: 0}"), Policy(THREE, None), id="binpack of no weight"
        ),
    ],
)  # fmt: skip
def test_policies(text, expected):
    assert read(text).policy == expected


@pytest.mark.shows("scheduler 4.1/unknown action", "scheduler 4.1/hdrf beside proportion")
@pytest.mark.shows("scheduler 2.6/maxDomains", "scheduler 2.6/allowWholeBundle", "scheduler 4.1/configurations")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param("{maxDomains: 3, allowWholeBundle: false}", Taking(3, gangs=False), id="both"),
        pytest.param("{maxDomains: 0}", Taking(8), id="none is as if nothing were said"),
        pytest.param("{allowWholeBundle: 'False'}", Taking(8, gangs=False), id="a text"),
    ],
)
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_how_others_end(action, arguments, expected):
    text = f"actions: allocate, {action}\nconfigurations:\n- {{name: gang{action}, arguments: {arguments}}}"
    reading = read(text)
    other = {"preempt": reading.policy.reclaim, "reclaim": reading.policy.preempt}[action]
    assert (getattr(reading.policy, action), other) == (expected, Taking())


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1h30m", 5_400_000), ("0", 0), ("0s", 0), ("'0'", 0), ("true", 300_000), ("", 300_000), ("soon", 300_000)],
)
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_how_long_what_was_evicted_runs_at_least(action, value, expected):
    text = f"actions: allocate, {action}\nconfigurations:\n- {{name: {action}, arguments: {{minRuntime: {value}}}}}"
    reading = read(text)
    assert reading.policy.min_runtime_ms == expected
    assert reading.policy.reclaim == Taking()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("", 0, "The configuration is empty; it needs at least actions.", id="nothing"),
        pytest.param("allocate", 0, "The configuration is a mapping with actions and tiers, not a text.", id="a word"),
        pytest.param(
            "tiers: []", 0, 'actions has to name what a cycle does, such as "enqueue, allocate".', id="no actions"
        ),
        pytest.param(
            "actions: enqueue, alocate", 1, "There is no action alocate. Did you mean allocate?", id="a slip"
        ),
        pytest.param(
            "actions: enqueue, zzz", 1,
            "There is no action zzz. There are allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt, "
            "reclaim, shuffle.",
            id="no action is near",
        ),
        pytest.param(
            "a: b: c", 1,
            "A second colon stands in this value, or the line is indented too far; put the value in quotes or mend the "
            "indentation.",
            id="no YAML",
        ),
        pytest.param("a: \ud800", 0, "The configuration holds half a character; remove it.", id="half a character"),
        pytest.param("actions: allocate\nactions: enqueue", 2, "The key actions stands here and on line 1.", id="twice"),
        pytest.param(
            "actions: allocate\n---\nactions: enqueue", 0,
            "The text has two documents; one is read. Remove what follows ---.",
            id="two documents",
        ),
        pytest.param("actions: allocate\ntiers: 5", 2, "tiers is a list, not a number.", id="tiers of no list"),
        pytest.param(
            "actions: allocate\ntiers:\n- plugins:\n  - gang", 4, "This is a mapping, not a text.", id="a plugin as a word"
        ),
        pytest.param(
            "actions: allocate\ntiers:\n- plugins:\n  - enableJobOrder: true", 4,
            "The plugin has no name; write it as name: gang.",
            id="a plugin without a name",
        ),
        pytest.param(
            conf("- {name: gang, enableJobOrder: often}"), 4, "enableJobOrder is true or false, not often.", id="a flag"
        ),
        pytest.param(
            conf("- {name: gang, arguments: [1]}"), 4, "arguments is a mapping, not a list.", id="arguments in a list"
        ),
        pytest.param(
            conf("- {name: drf, enableHierarchy: true}", "- name: proportion"), 3,
            "drf with enableHierarchy and proportion may not be in one tier; move one.",
            id="hdrf and proportion in one tier",
        ),
        pytest.param(
            "#" * (LONGEST + 1), 0, f"The configuration has {LONGEST + 1:,} characters; at most {LONGEST:,} are read.",
            id="too long",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used(text, line, message):
    reading = read(text)
    assert reading.policy is None
    assert (line, message) in [(finding.line, finding.message) for finding in reading.errors]


@pytest.mark.shows(
    "scheduler 3.1/always",
    "scheduler 4.1/order of actions",
    "scheduler 4.1/unknown plugin",
    "scheduler 4.1/tiers",
    "scheduler 4.1/flags",
    "scheduler 4.1/what is no number",
    "scheduler 4.1/plugins that always work",
    "scheduler 11/7",
    "scheduler 4.1/metrics",
)
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param(
            conf("- name: gagn"), 4, "There is no plugin gagn, so this is left out. Did you mean gang?", id="a plugin"
        ),
        pytest.param(
            "actions: allocate, gangpreempt", 1,
            "gangpreempt is taken as preempt, which has single pods beyond a minimum go first.",
            id="whole gangs",
        ),
        pytest.param(
            "actions: allocate, reclaim, gangreclaim", 1,
            "gangreclaim has no effect here beside reclaim, which has whole gangs go, too.",
            id="whole gangs, twice",
        ),
        pytest.param(
            conf("- name: extender"), 4, "extender has no effect here: no other program is asked, as a cycle waits for nobody; rules of your own belong into an admission webhook or "
            "scheduling gates.", id="known to Volcano"
        ),
        pytest.param(
            conf("- name: tdm", "  arguments: {tdm.revocable-zone.z: 25:00-26:00}"), 5,
            "tdm.revocable-zone.z is a time of the day such as 22:00-06:00, in UTC, not 25:00-26:00; the zone stays closed.",
            id="no time of the day",
        ),
        pytest.param(
            conf("- name: tdm", "  arguments: {tdm.evict.period: soon}"), 5,
            "tdm.evict.period is a duration such as 30m or 1h30m, not soon; 1m is used.",
            id="no period",
        ),
        pytest.param(
            conf("- name: usage", "  arguments:", "    thresholds: {cpu: 120}"), 6,
            "cpu is a percentage, a whole number from 1 to 100, not 120; 80 is used.",
            id="no percentage",
        ),
        pytest.param(
            conf("- name: overcommit", "  arguments: {overcommit.factor: 2}"), 5,
            "There is no argument overcommit.factor, so this is left out. Did you mean overcommit-factor?",
            id="an argument",
        ),
        pytest.param(
            overcommit("'1,5'"), 5, "overcommit-factor is a number from 1 to 1,000, not 1,5; 1.2 is used.", id="a value"
        ),
        pytest.param(
            conf("- name: sla", "  arguments: {sla-waiting-time: 30}"), 5,
            "sla-waiting-time is a duration such as 30m or 1h30m, not 30; none is used.",
            id="a time without a unit",
        ),
        pytest.param(
            "actions: reclaim, allocate\nconfigurations:\n- name: reclaim\n  arguments: {minRuntime: 5}", 4,
            "minRuntime is a duration such as 5m or 1h30m, or 0, not 5; 5m0s is used.",
            id="a run time without a unit",
        ),
        pytest.param(
            "actions: reclaim, allocate\nconfigurations:\n- name: reclaim\n  arguments: {minRuntime: -5m}", 4,
            "minRuntime is a duration such as 5m or 1h30m, or 0, not -5m; 5m0s is used.",
            id="a run time below nothing",
        ),
        pytest.param(
            "actions: preempt, allocate\nconfigurations:\n- name: preempt\n  arguments: {minRuntime: 5m}", 4,
            "There is no argument minRuntime, so this is left out.",
            id="a run time of another action",
        ),
        pytest.param(
            "actions: reclaim, allocate\nconfigurations:\n- name: reclaim\n  arguments: {minRuntme: 5m}", 4,
            "There is no argument minRuntme, so this is left out. Did you mean minRuntime?",
            id="a slip in an argument of an action",
        ),
        pytest.param(
            conf("- name: gang", "  arguments: {reservation-wait: 5}"), 5,
            "reservation-wait is a duration such as 30m or 1h30m, or never, not 5; 5m0s is used.",
            id="a wait without a unit",
        ),
        pytest.param(
            conf("- name: binpack", "  arguments: {binpack.cpu: -1}"), 5,
            "binpack.cpu is a whole number from 0 to 1,000,000, not -1; 1 is used.",
            id="a negative weight",
        ),
        pytest.param(
            conf("- name: binpack", "  arguments: {binpack.resources.gpu: 2}"), 5,
            "binpack.resources.gpu has no effect: binpack.resources does not name it.",
            id="a resource that is not named",
        ),
        pytest.param(
            conf("- name: nodeorder", "  arguments: {imagelocality.weight: 2}"), 5,
            "imagelocality.weight has no effect here.",
            id="a scorer that is not here",
        ),
        pytest.param(
            conf("- name: resource-strategy-fit", "  arguments:", "    resources:", "      cpu: {type: MostAlocated}"), 7,
            "type is MostAllocated or LeastAllocated, not MostAlocated; LeastAllocated is used. Did you mean MostAllocated?",
            id="a strategy that there is not",
        ),
        pytest.param(
            conf("- name: resource-strategy-fit", "  arguments:", "    resources: [cpu]"), 6,
            "resources is a mapping, not ['cpu']; it is left out.",
            id="strategies in a list",
        ),
        pytest.param(
            conf(
                "- name: resource-strategy-fit",
                "  arguments: {proportional: {enable: true, resources: a/b, resourceProportion: {a/c.cpu: 4}}}",
            ), 5,
            "a/c.cpu is no cpu or memory of one of the resources. Did you mean a/b.cpu?",
            id="a part that is not here",
        ),
        pytest.param(
            conf("- name: network-topology-aware", "  arguments: {hypernode.binpack.normal-pod.fading: 2}"), 5,
            "hypernode.binpack.normal-pod.fading is a number from 0 to 1, not 2; 0.8 is used.",
            id="a part above 1",
        ),
        pytest.param(
            conf("- name: nodegroup", "  arguments: {strict: perhaps}"), 5,
            "strict is true or false, not perhaps; true is used.",
            id="no truth",
        ),
        pytest.param(conf("- {name: gang, enablePreemptable: false}"), 4, "enablePreemptable has no effect here.", id="a flag"),
        pytest.param(
            conf("- {name: gang, enablePremptable: false}"), 4,
            "There is no flag enablePremptable. Did you mean enablePreemptable?",
            id="a flag that is none",
        ),
        pytest.param(conf("- name: gang", "- name: gang"), 5, "gang is listed before; what stands there counts.", id="twice"),
        pytest.param(
            "actions: allocate, shuffle", 1, "shuffle moves no pod without the plugin rescheduling.", id="an action alone"
        ),
        pytest.param(
            conf("- name: rescheduling"), 4, "rescheduling moves no pod without the action shuffle.", id="a plugin alone"
        ),
        pytest.param(
            conf("- name: rescheduling", "  arguments: {strategies: [{name: lowNodeUtilization, params: {targetThresholds: {cpu: 60}}}]}", actions=MOVES), 4,
            "Nodes are chosen the fullest first, so most pods would come back, and those stay. List nodeorder.",
            id="pods would come back",
        ),
        pytest.param(
            conf("- name: nodeorder", "- name: rescheduling", actions=MOVES), 5,
            "No pod is moved: all targetThresholds are 100, and of no node more than that is asked for.", id="no target",
        ),
        pytest.param(
            conf("- name: rescheduling", "  arguments: {strategies: [{name: lowNodeUtilisation}]}", actions=MOVES), 5,
            "There is no strategy lowNodeUtilisation here, only lowNodeUtilization. Did you mean lowNodeUtilization?",
            id="a strategy",
        ),
        pytest.param(
            conf("- name: rescheduling", "  arguments: {strategies: lowNodeUtilization}", actions=MOVES), 5,
            "strategies is a list, not lowNodeUtilization; no pod is moved.", id="strategies of no list",
        ),
        pytest.param(
            moving("{thresholds: {cpu: 50}, targetThresholds: {cpu: 20}}"), 6,
            "thresholds.cpu is above targetThresholds.cpu, 20, which is used for both.", id="a threshold above",
        ),
        pytest.param(
            moving("{thresholds: {cpu: -1}, targetThresholds: {cpu: 20}}"), 6,
            "cpu is a percentage, a whole number from 1 to 100, not -1; 20 is used.", id="no percentage",
        ),
        pytest.param(
            moving("{threshold: {cpu: 50}, targetThresholds: {cpu: 60}}"), 6,
            "There is no parameter threshold. Did you mean thresholds?", id="a parameter",
        ),
        pytest.param(
            moving("{nodeFit: true, targetThresholds: {cpu: 60}}"), 6, "nodeFit has no effect here.", id="a fit",
        ),
        pytest.param(
            moving("{targetThresholds: {cpu: 60, gpu: 3}}"), 6, "gpu is left out: there are cpu, memory, pods.",
            id="a resource",
        ),
        pytest.param(
            "actions: allocate, enqueue", 1,
            "Here actions are taken in the order enqueue, allocate, backfill, reclaim, preempt, shuffle, however they are "
            "written.",
            id="another order",
        ),
        pytest.param("actions: enqueue", 1, "Without allocate no waiting pod gets a node.", id="nothing is placed"),
        pytest.param(
            "actions: allocate\nconfigurations:\n- {name: allocate, arguments: {predicateErrorCacheEnable: true}}", 3,
            "predicateErrorCacheEnable of allocate has no effect here.",
            id="arguments of an action",
        ),
        pytest.param(
            "actions: allocate\nconfigurations:\n- {name: preempt, arguments: {maxDomains: 3}}", 3,
            "maxDomains of preempt has no effect here.",
            id="arguments of another action",
        ),
        pytest.param(
            "actions: allocate\nconfigurations:\n- {name: gangpreempt, arguments: {maxDomain: 3}}", 3,
            "There is no argument maxDomain, so this is left out. Did you mean maxDomains?",
            id="an argument of an action that there is not",
        ),
        pytest.param("actions: allocate\nteirs: []", 2, "There is no section teirs. Did you mean tiers?", id="a section"),
        pytest.param(
            "actions: allocate\nmetrics: {type: prometheus}", 2,
            "metrics has no effect here: usage goes by what the agents of nodes measure.",
            id="metrics",
        ),
        pytest.param(
            "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: capacity}]}]", 2,
            "At work here although not listed: priority, conformance, drf, predicates, resourcequota.",
            id="what cannot be left out",
        ),
    ],
)  # fmt: skip
def test_what_is_said_and_changes_nothing(text, line, message):
    reading = read(text)
    assert reading.policy is not None
    assert (line, message) in [(finding.line, finding.message) for finding in reading.warnings]


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
    steps = [(stored(overcommit("2")), 2000), (stored("actions: x"), 2000), (None, 1200), (stored("-"), 1200)]
    for body, expected in steps:
        held.take(body)
        assert held.policy.overcommit == expected
    assert held.refused.message == "The configuration is a mapping with actions and tiers, not a list."
    held.take(stored(HELM, key="volcano-scheduler.yaml"))
    assert held.policy == DEFAULT
    assert held.refused.message.endswith("has no entry volcano-scheduler.conf with the configuration. "
                                         "Did you mean volcano-scheduler.yaml?")  # fmt: skip
