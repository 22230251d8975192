"""What the scheduler's page says of a configuration."""

from __future__ import annotations

from queues.scheduler import words
from scheduler.policy.configuration import read
from scheduler.policy.policy import DEFAULT
from tests.tables import cases

PREFER, NODES, TASKS, BUSY, LENT, GROUPS, MOVED = (
    "What pods prefer",
    "Nodes are chosen",
    "Tasks of one job",
    "Busy nodes",
    "Nodes that are lent for a time",
    "Node groups of queues",
    "Running pods are moved",
)
MOVES = "name: rescheduling, arguments: {strategies: [{name: lowNodeUtilization, params: {%s}}]}"


def told(plugin, title, *, measures_load=True):
    policy = read(f"actions: allocate, shuffle\ntiers: [{{plugins: [{{{plugin}}}]}}]").policy if plugin else DEFAULT
    return next(each.text for each in words.said(policy, measures_load=measures_load) if each.title == title)


@cases("plugin, title, expected", {
    "preferences without a configuration": ("", PREFER,
        "decides first: affinity to nodes × 2, affinity to pods × 2, spreading × 2, taints of nodes × 3"),
    "preferences by weight": ("name: nodeorder, arguments: {podaffinity.weight: 0}", PREFER,
        "is added to the weights of nodes: affinity to nodes × 2, spreading × 2, taints of nodes × 3"),
    "preferences of no weight": ("name: nodeorder, arguments: {nodeaffinity.weight: 0, podaffinity.weight: 0, podtopologyspread.weight: 0, " "tainttoleration.weight: 0}",
        PREFER, "has no effect"),
    "use of resources": ("name: resource-strategy-fit, arguments: {resources: {cpu: {type: MostAllocated, weight: 2}}, " "sra: {enable: true, resources: a/b}}",
        NODES, "by weights: use of resources (much cpu 2) × 10; without what is scarce (a/b 1) × 1"),
    "tasks without a configuration": ("", TASKS, "are neither drawn together nor kept apart by annotations"),
    "tasks": ("name: task-topology, arguments: {task-topology.weight: 3}", TASKS,
        "are drawn to one node or kept apart (× 3) and started in order where annotations of the job say so " "(volcano.sh/task-topology-…)"),
    "tasks in order alone": ("name: task-topology, enableNodeOrder: false", TASKS,
        "are started in order where annotations of the job say so (volcano.sh/task-topology-…)"),
    "tasks of no weight": ("name: task-topology, enableNodeOrder: false, enableTaskOrder: false", TASKS,
        "are neither drawn together nor kept apart by annotations"),
    "load without a configuration": ("", BUSY, "are not told from others: only what pods ask for counts"),
    "load": ("name: usage, arguments: {thresholds: {cpu: 70}}", BUSY,
        "a node that uses more than 70 % of its CPU or 80 % of its memory takes no pods; idle ones come first " "(× 5: CPU 1, memory 1); simulated nodes are not measured"),
    "zones without a configuration": ("", LENT, "are nodes like others"),
    "zones without times": ("name: tdm", LENT, "take no pods: no zone has a time"),
    "zones": ("name: tdm, arguments: {tdm.revocable-zone.night: '22:00-06:30'}", LENT,
        "take pods that may be revoked: zone night from 22:00 to 06:30 UTC; then they end, some every 1 min"),
    "moves without a configuration": ("", MOVED, "never"),
    "moves without a target": (MOVES % "", MOVED, "never: no node is above a target of 100 %"),
    "moves to where they come from": (MOVES % "targetThresholds: {cpu: 60, memory: 70}, thresholds: {cpu: 20, pods: 30}",
        MOVED,
        "every 5 min where more than 60 % of the CPU or 70 % of the memory of a node is asked for, to nodes with at most " "20 % of the CPU and 70 % of the memory and 30 % of the pods; hardly ever, as the fullest node is chosen first"),
    "moves": ("name: nodeorder}, {" + MOVES % "targetThresholds: {cpu: 60}", MOVED,
        "every 5 min where more than 60 % of the CPU of a node is asked for, to nodes with at most 60 % of the CPU"),
    "groups without a configuration": ("", GROUPS, "are not heeded: every queue may use every node"),
    "groups": ("name: nodegroup, enableHierarchy: true", GROUPS,
        "a queue uses those that its affinity names, or nodes of no group only where it, and no queue above it, names none"),
})  # fmt: skip
def test_what_is_said(plugin, title, expected):
    assert told(plugin, title) == expected


def test_where_nobody_measures_the_load_the_page_says_so():
    assert told("name: usage", BUSY, measures_load=False) == (
        "are not told from others: nobody measures the load of this cluster's nodes for this scheduler"
    )
