"""Odd behaviour of Volcano's scheduler, each either copied or put right (reference: volcano-scheduler §11)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

_PREEMPT = "Victims of `preempt`"
_TIERS = "Tiers of plugins"

SECTIONS = (
    section(
        "scheduler 11",
        "Oddities",
        {
            "1": differs("Plugins that agree on no victim count as none that was asked", _TIERS),
            "2": differs("A pod whose eviction is called off counts as running", "Which node is preempted on"),
            "3": differs("Amounts of limits are compared to the last bit", "Comparison of amounts"),
            "4": differs(
                "A new group of high priority is not let in on a full cluster, and preempts nobody",
                "`preempt` on a full cluster",
            ),
            "5": "Pods beyond a minimum never have others evicted",
            "6": differs(
                "A group that waits for room keeps it from others, cycle after cycle",
                "A large gang beside a stream of smaller jobs",
            ),
            "7": differs("Without gang preemption may be done by halves", "Plugins and actions that are not listed"),
            "8": differs("A pod is passed over in silence when a scorer fails", "Why a group waits"),
            "9": differs("A full queue is no reason that is told", "Why a group waits"),
            "10": differs("Plugins count what entered in different ways", "What groups that entered may still take"),
            "11": differs("A queue below root is bounded by guarantees and nodes alone", "Guarantees of others"),
            "12": differs(
                "One wrong queue stops all", "A tree of queues that is none (a parent that is missing, a circle)"
            ),
            "13": differs("A queue that asks for little looks as if it used too much", "Use beyond what is deserved"),
            "14": "Queues give unless they say no, and so do pods",
            "15": differs("`pods` count in shares", "Shares and `pods`"),
            "16": differs("A group that runs may become Pending", "Phase of a group that lost pods"),
            "17": differs("Condition and event count differently", "Event Unschedulable"),
            "18": differs(
                "The domain that was chosen for a gang is forgotten after the cycle",
                "Room for groups that ask for HyperNodes or sub-groups",
            ),
            "19": differs("After evictions it is not asked again whether the pods fit", "`reclaim`"),
            "20": differs("backfill heeds no limits of queues", "Pods that ask for nothing"),
            "21": differs("Candidates that stay are subtracted as well", _PREEMPT),
            "22": differs(
                "A node that was refused once is not looked at again while others are evicted",
                "Which node is preempted on",
            ),
            "24": differs("A gang may stay half bound", "A gang of which only a part could be bound"),
            "25": decided(
                "Another scheduler for single pods, without gangs (agent scheduler)",
                "Several schedulers for one cluster (`--node-selector`, sharding, `MULTI_SCHEDULER_ENABLE`, the agent scheduler)",
            ),
        },
    ),
)
