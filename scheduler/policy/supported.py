"""Volcano's actions, plugins and arguments, and which of them have an effect here.

Names: reference/volcano-scheduler §2, §3 and §4.1. Volcano does not know names that are not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from scheduler.policy.actions import Action

ORDER = tuple(Action)
"""The order in which a cycle takes its actions, whatever order they are written in."""

SAME: Mapping[str, Action] = {"gangpreempt": Action.PREEMPT, "gangreclaim": Action.RECLAIM}
"""Volcano's actions that are the same as others here, which evict whole gangs where pods beyond their minima are not enough."""

ACTIONS = frozenset({*ORDER, *SAME})
"""All names of actions."""

ACTION_ARGUMENTS = frozenset({"maxDomains", "allowWholeBundle"})
"""Arguments of gangpreempt and gangreclaim."""

MIN_RUNTIME = "minRuntime"
"""The argument of reclaim and gangreclaim that Volcano does not have."""


def arguments_of(action: str) -> frozenset[str]:
    """Return the arguments of an action that have an effect here."""
    found = ACTION_ARGUMENTS if action in SAME else frozenset[str]()
    return found | {MIN_RUNTIME} if SAME.get(action, action) == Action.RECLAIM else found


IDLE_ARGUMENTS = frozenset(
    {
        "predicateErrorCacheEnable",
        "enableTopologyAwarePreemption",
        "topologyAwarePreemptWorkerNum",
        "minCandidateNodesPercentage",
        "minCandidateNodesAbsolute",
        "maxCandidateNodesAbsolute",
    }
)
"""Arguments of actions that Volcano knows and that have no effect here: every cycle looks at all nodes."""


class PluginSupport(Enum):
    """What listing a plugin does here."""

    SWITCHED = auto()  # at work where it is listed
    ALWAYS = auto()  # at work, listed or not
    WITHOUT_EFFECT = auto()


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin of Volcano: what listing it does, and in words what it does here.

    supported are the arguments that have an effect here, as have names that begin with prefix; without_effect are Volcano's other ones.
    """

    support: PluginSupport
    words: str
    supported: frozenset[str] = frozenset()
    without_effect: frozenset[str] = frozenset()
    prefix: str = ""
    switch: str = ""  # the flag that switches off what it does here
    parts: frozenset[str] = frozenset()  # flags that switch off a part of it
    heeds_hierarchy: bool = False  # whether enableHierarchy changes something


def _always(words: str, *arguments: str) -> Plugin:
    return Plugin(PluginSupport.ALWAYS, words, without_effect=frozenset(arguments))


def _without(words: str) -> Plugin:
    return Plugin(PluginSupport.WITHOUT_EFFECT, words)


PLUGINS: Mapping[str, Plugin] = {
    "priority": _always("More urgent jobs are served first."),
    "gang": Plugin(
        PluginSupport.ALWAYS,
        "The minimum of a job starts as a whole or not at all; one that has waited long has room kept.",
        frozenset({"reservation-wait"}),
    ),
    "conformance": _always("Pods of the system are evicted for nobody."),
    "overcommit": Plugin(
        PluginSupport.SWITCHED,
        "Jobs are let in for more than the cluster has, up to a factor.",
        frozenset({"overcommit-factor"}),
        switch="enableJobEnqueued",
    ),
    "drf": _always("Beyond their minima the jobs of a queue share by what they use most of."),
    "predicates": _always(
        "Pods go only where room, labels, taints, ports and affinity to nodes and pods allow.",
        *(
            f"predicate.{name}Enable"
            for name in (
                "NodeAffinity",
                "NodePorts",
                "TaintToleration",
                "PodAffinity",
                "NodeVolumeLimits",
                "VolumeZone",
                "PodTopologySpread",
                "VolumeBinding",
                "DynamicResourceAllocation",
                "Cache",
            )
        ),
        "volumebinding.bindTimeoutSeconds",
        "volumebinding.weight",
        "volumebinding.shape",
        "dynamicresources.filterTimeoutSeconds",
    ),
    "proportion": _always("Queues share by weight what no queue names in deserved."),
    "capacity": _always("Queues get what they name in deserved first, and never more than their capability."),
    "nodeorder": Plugin(
        PluginSupport.SWITCHED,
        "Nodes are compared by how much CPU and memory is free or used on them, and by what pods prefer.",
        frozenset(
            {
                "leastrequested.weight",
                "mostrequested.weight",
                "balancedresource.weight",
                "nodeaffinity.weight",
                "podaffinity.weight",
                "tainttoleration.weight",
                "podtopologyspread.weight",
            }
        ),
        frozenset({"imagelocality.weight"}),
        switch="enableNodeOrder",
    ),
    "binpack": Plugin(
        PluginSupport.SWITCHED,
        "Nodes that are fuller of certain resources come first.",
        frozenset({"binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources"}),
        prefix="binpack.resources.",
        switch="enableNodeOrder",
    ),
    "sla": Plugin(
        PluginSupport.SWITCHED,
        "Jobs that have waited too long are let in whatever room there is.",
        frozenset({"sla-waiting-time"}),
        switch="enableJobEnqueued",
    ),
    "tdm": Plugin(
        PluginSupport.SWITCHED,
        "Nodes of revocable zones take pods that may be revoked, at certain times of the day.",
        frozenset({"tdm.evict.period"}),
        prefix="tdm.revocable-zone.",
        switch="enablePredicate",
        parts=frozenset({"enabledVictim"}),
    ),
    "task-topology": Plugin(
        PluginSupport.SWITCHED,
        "Tasks of a job are drawn to one node, kept apart, and put in order as its annotations say.",
        frozenset({"task-topology.weight"}),
        parts=frozenset({"enableNodeOrder", "enableTaskOrder"}),
    ),
    "cdp": Plugin(
        PluginSupport.SWITCHED,
        "Pods that ask for time to cool down are not evicted soon after they got their node.",
        switch="enablePreemptable",
    ),
    "rescheduling": Plugin(
        PluginSupport.SWITCHED,
        "With the action shuffle pods go from nodes of which much is asked for to those of which little is.",
        frozenset({"interval", "strategies"}),
        switch="enabledVictim",
    ),
    "usage": Plugin(
        PluginSupport.SWITCHED,
        "Busy nodes take no pods, and idle ones come first, where an agent of ours measures their load.",
        frozenset({"usage.weight", "cpu.weight", "memory.weight", "thresholds"}),
        frozenset({"request_ratio", "burst", "risk_threshold", "risk_factor"}),
        parts=frozenset({"enablePredicate", "enableNodeOrder"}),
    ),
    "pdb": Plugin(
        PluginSupport.SWITCHED, "Nobody is evicted whom a budget for disruptions protects.", switch="enablePreemptable"
    ),
    "nodegroup": Plugin(
        PluginSupport.SWITCHED,
        "Queues use the groups of nodes that their affinity names.",
        frozenset({"strict", "enablePreferredOrder"}),
        switch="enablePredicate",
        heeds_hierarchy=True,
    ),
    "numa-aware": _without("nodes are not divided by NUMA"),
    "extender": _without(
        "no other program is asked, as a cycle waits for nobody; rules of your own belong into an admission webhook or scheduling gates"
    ),
    "resourcequota": _always("No job enters for whose minimum a quota of its namespace has no room."),
    "deviceshare": _without("devices are not shared"),
    "network-topology-aware": Plugin(
        PluginSupport.SWITCHED,
        "HyperNodes that are fuller of certain resources come first, for jobs that ask for pods close together and for ordinary pods.",
        frozenset(
            {
                "weight",
                "hypernode.binpack.cpu",
                "hypernode.binpack.memory",
                "hypernode.binpack.resources",
                "hypernode.binpack.normal-pod.enable",
                "hypernode.binpack.normal-pod.fading",
            }
        ),
        frozenset({"hypernode.gradient.evict.max-hypernodes"}),
        prefix="hypernode.binpack.resources.",
        switch="enabledHyperNodeOrder",
        parts=frozenset({"enableNodeOrder"}),
    ),
    "resource-strategy-fit": Plugin(
        PluginSupport.SWITCHED,
        "Nodes are compared by how much of each resource is used, and scarce ones are left to those who need them.",
        frozenset({"resourceStrategyFitWeight", "resources", "sra", "proportional"}),
        switch="enableNodeOrder",
        parts=frozenset({"enablePredicate"}),
    ),
}

HIERARCHY = "enableHierarchy"
FLAGS = frozenset(
    {
        "enableJobOrder",
        HIERARCHY,
        "enableJobReady",
        "enableJobPipelined",
        "enableTaskOrder",
        "enablePreemptable",
        "enableReclaimable",
        "enablePreemptive",
        "enableQueueOrder",
        "enabledClusterOrder",
        "enablePredicate",
        "enableBestNode",
        "enableNodeOrder",
        "enableTargetJob",
        "enableReservedNodes",
        "enableJobEnqueued",
        "enabledVictim",
        "enableJobStarving",
        "enabledOverused",
        "enabledAllocatable",
        "enabledHyperNodeOrder",
        "enabledSubJobReady",
        "enabledSubJobPipelined",
        "enabledSubJobOrder",
        "enabledHyperNodeGradient",
    }
)
OFF_BY_DEFAULT = frozenset({HIERARCHY, "enabledClusterOrder"})
"""Flags that are false where they are not written; the others are true."""
