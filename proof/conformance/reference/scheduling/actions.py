"""What a cycle does, action by action (reference: volcano-scheduler §2)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section
from proof.conformance.reference.scheduling.session import LEAVING

SECTIONS = (
    section(
        "scheduler 2.1",
        "enqueue",
        {
            "minResources": "A group that states no `minResources` is let in",
            "room": "Others are let in while there is room; what entered before and does not run yet is taken off",
            "turns": differs(
                "The queue of the least share has one group let in after the other; that does not count as use",
                "Entry of queues with a long backlog",
            ),
            "passing": "A group that is not let in does not keep others out",
            "priority": differs("Lower priority that runs is in the way", "Lower priority at entry"),
            "Inqueue": "Who was let in stays so while it has pods",
        },
    ),
    section(
        "scheduler 2.2",
        "allocate",
        {
            "who": "Groups that were let in and whose minimum exists",
            "no enqueue": "Where enqueue is not an action all are let in",
            "no allocate": "Where allocate is not an action no pod gets a node",
            "gated": "Pods with scheduling gates are passed over",
            "minimum first": "The minimum is placed as a whole",
            "beyond": "Pods beyond a minimum come one by one, with a turn for every other queue and job between them",
            "beyond in short supply": "As many as fit start, and the others wait",
            "overused": differs("A queue at what it deserves is passed over", "Use beyond what is deserved"),
            "who does not fit": "Is passed over; the next one is tried",
            "releasing": differs("Nodes that others are leaving are used when no other fits", LEAVING),
            "nominated node": differs("A pod's `nominatedNodeName` is tried first", "Room of victims"),
            "hard topology": "Pods are kept within a tier of the network",
            "soft topology": differs(
                "Pods are drawn together in the network", "`networkTopology` without a highest tier, or `soft`"
            ),
            "dequeueStrategy": differs(
                "`fifo`: when the first group cannot start nobody of the queue does", "`dequeueStrategy: fifo`"
            ),
            "predicateErrorCacheEnable": decided(
                "A node that was refused to a task is not asked again",
                "What Volcano's scheduler remembers of nodes (`predicateErrorCacheEnable`, `predicate.CacheEnable`)",
            ),
        },
    ),
    section(
        "scheduler 2.3",
        "backfill",
        {
            "when": differs("Pods that ask for nothing get nodes after all others", "Pods that ask for nothing"),
            "others": differs("Nobody else is placed by it", "Action `backfill`"),
            "full nodes": "They need no CPU and no memory, but one of the `pods` of a node",
        },
    ),
    section(
        "scheduler 2.4",
        "preempt",
        {
            "for whom": "Groups below their minimum; never for pods beyond one",
            "queue": "Pods of the same queue go, of no other",
            "priority": "Only pods of lower priority go",
            "Never": "Nobody goes for a class or pod with `preemptionPolicy: Never`",
            "preemptable": 'Pods that say `volcano.sh/preemptable: "false"` stay',
            "no use": "Nobody goes where the group would not fit all the same",
            "free room": "What is free counts, and room that others are leaving",
            "gangs": differs("A gang stays at its minimum", "Victims of `preempt`"),
            "roles": "The minimum of a task stays",
            "node": differs("The node of the best score, pod by pod", "Which node is preempted on"),
            "full queue": "A full queue on an empty cluster makes room for what is more urgent",
            "within a job": differs("Pods of lower priority in the same job go", "Preemption between tasks of one job"),
            "entry": differs("On a full cluster a new group is not let in", "`preempt` on a full cluster"),
            "nominatedNodeName": differs("The pod is told a node", "Room of victims"),
            "ports and affinity": "Nodes are looked at with all rules about other pods",
            "enableTopologyAwarePreemption": decided(
                "A search over more nodes that spares the most important victims", "`enableTopologyAwarePreemption`"
            ),
            "not listed": "Where preempt is not an action nobody goes",
        },
    ),
    section(
        "scheduler 2.5",
        "reclaim",
        {
            "for whom": differs(
                "Groups below their minimum, of queues that some resource leaves within what they deserve", "`reclaim`"
            ),
            "from whom": "Pods of other queues that use more than they deserve",
            "reclaimable": "`spec.reclaimable: false` protects a queue; it is true where it is left out",
            "priority": "Priorities of jobs do not matter between queues",
            "Never": "Nobody goes for a class with `preemptionPolicy: Never`",
            "guarantee": "What is guaranteed to a queue is not taken",
            "tree": differs(
                "`ancestorReclaimLevel` says how far up shares count", "`reclaim` between queues with different parents"
            ),
            "entry": differs(
                "A new group is let in as far as 1.2 times the cluster goes", "`reclaim` on a full cluster"
            ),
            "order": differs("reclaim and preempt as they are listed", "Order of `preempt` and `reclaim`"),
            "again": differs("Who was evicted may be evicted again at once", "Evicted again by `reclaim`"),
            "not listed": "Where reclaim is not an action nobody goes",
        },
    ),
    section(
        "scheduler 2.6",
        "gangpreempt and gangreclaim",
        {
            "gangpreempt": differs("Whole gangs go for a gang, in one domain of the network", "Victims of `preempt`"),
            "gangreclaim": differs("The same between queues", "Victims of `preempt`"),
            "for whom": differs(
                "Groups that ask for HyperNodes or sub-groups get room in one domain",
                "Room for groups that ask for HyperNodes or sub-groups",
            ),
            "maxDomains": differs("How many domains are tried; 8", "`maxDomains` of `gangpreempt` and `gangreclaim`"),
            "allowWholeBundle": "Whether gangs may go whole; true",
        },
    ),
    section(
        "scheduler 2.7",
        "shuffle",
        {
            "shuffle": differs(
                "Running pods are moved where plugins ask for it", "`shuffle` with `rescheduling`: who is moved"
            )
        },
    ),
)
