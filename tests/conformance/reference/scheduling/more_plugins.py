"""The plugins that somebody has to ask for, and their arguments (reference: volcano-scheduler §3.11, §3.12)."""

from __future__ import annotations

from tests.conformance.items import differs, not_done, section

NOT_YET = "Not yet"
NETWORK = "HyperNodes are not known yet"
PROGRAM = "No other program is asked, and none is loaded"

SECTIONS = (
    section(
        "scheduler 3.11 sla",
        "A bound on waiting",
        {
            "sla-waiting-time": "For all jobs; a duration",
            "annotation": "`volcano.sh/sla-waiting-time` of a group, or `sla-waiting-time`, goes before",
            "entry": differs("Who has waited so long is let in", "`sla`: a job whose time is over"),
            "order": differs(
                "Jobs with a time come first, the soonest first", "`sla`: a job whose time is over"
            ),
        },
    ),
    section(
        "scheduler 3.11 tdm",
        "Nodes that are lent for a part of the day",
        {
            "tdm.revocable-zone.ZONE": not_done(
                "In this time the nodes of the zone take pods that may be revoked", NOT_YET
            ),
            "over midnight": not_done("A time may go over midnight", NOT_YET),
            "who": not_done('Pods with `volcano.sh/revocable-zone: "*"`; others never', NOT_YET),
            "preferred": not_done("Such pods go there first", NOT_YET),
            "tdm.evict.period": not_done(
                "When the time is over they are evicted, some in each period", NOT_YET
            ),
            "jdb": not_done("As many at once as the job's own budget allows, else one", NOT_YET),
            "order of jobs": not_done("Jobs that are not preemptable come first", NOT_YET),
            "preempt": not_done(
                "Preemptable jobs preempt nobody; only preemptable pods outside zones go", NOT_YET
            ),
        },
    ),
    section(
        "scheduler 3.11 pdb",
        "PodDisruptionBudgets",
        {
            "budgets": not_done(
                "Nobody goes beyond what budgets allow", "Not asked yet, as in Volcano without the plugin"
            ),
            "no labels": not_done("Pods without labels never go", "Not asked yet"),
        },
    ),
    section(
        "scheduler 3.11 cdp",
        "Pods that have just started",
        {
            "cooldown-time": not_done(
                "They stay for `volcano.sh/cooldown-time`", "Not asked; the annotation is handed on"
            )
        },
    ),
    section(
        "scheduler 3.11 nodegroup",
        "Groups of nodes for queues",
        {
            "required": not_done("A queue uses only the groups that it requires", NOT_YET),
            "required, against": not_done("And none that it must avoid", NOT_YET),
            "preferred": not_done("Groups that it prefers come first, after those that it requires", NOT_YET),
            "preferred, against": not_done("Groups that it would rather avoid come last", NOT_YET),
            "only groups to avoid": not_done("A queue that only names groups to avoid uses no node", NOT_YET),
            "strict": not_done("A queue that says nothing uses nodes of no group", NOT_YET),
            "strict: false": not_done("Or any node", NOT_YET),
            "enablePreferredOrder": not_done("The order of what is preferred counts", NOT_YET),
            "enableHierarchy": not_done("A queue that says nothing inherits", NOT_YET),
            "nodegroup-resource-limits": not_done(
                "The annotation limits what a queue uses of a group", NOT_YET
            ),
            "why": not_done("Pods are told which nodes are none of their queue's", NOT_YET),
        },
    ),
    section(
        "scheduler 3.11 usage",
        "Load of nodes",
        {
            "thresholds": not_done("Nodes that use more than 80% of CPU or memory take nobody", NOT_YET),
            "usage.weight, cpu.weight, memory.weight": not_done("Idle nodes come first", NOT_YET),
            "old figures": not_done("What is five minutes old says nothing", NOT_YET),
            "metrics": not_done("Figures come from Prometheus and the like", NOT_YET),
            "estimator": not_done("What has just been placed is estimated", NOT_YET),
        },
    ),
    section(
        "scheduler 3.11 task-topology",
        "Tasks of a job together or apart",
        {
            "affinity": not_done("`volcano.sh/task-topology-affinity` draws tasks to one node", NOT_YET),
            "anti-affinity": not_done("`volcano.sh/task-topology-anti-affinity` parts them", NOT_YET),
            "task order": not_done("`volcano.sh/task-topology-task-order`", NOT_YET),
            "task-topology.weight": not_done("How much it counts", NOT_YET),
        },
    ),
    section(
        "scheduler 3.11 resource-strategy-fit",
        "Resource by resource",
        {
            "resources": not_done("MostAllocated or LeastAllocated, with a weight for each", NOT_YET),
            "prefix*": not_done("A name stands for all that begin so; the longest one counts", NOT_YET),
            "resourceStrategyFitWeight": not_done("10", NOT_YET),
            "overflow": not_done("Where something is short the node gets nothing", NOT_YET),
            "annotations": not_done("A pod may say otherwise", NOT_YET),
            "sra": not_done("Nodes with scarce devices come after others", NOT_YET),
            "proportional": not_done("CPU and memory are kept for idle devices", NOT_YET),
        },
    ),
    section(
        "scheduler 3.11 others",
        "Plugins that are not here",
        {
            "rescheduling": not_done(
                "Pods move from full nodes to empty ones", "No running pod is moved for the balance of nodes"
            ),
            "numa-aware": not_done("CPUs of one NUMA node", "Nodes are not divided by NUMA"),
            "deviceshare": not_done("Parts of devices", "Devices are given out whole"),
            "resourcequota": not_done(
                "A group enters when the quota of its namespace has room",
                "Quotas are kept where pods are made",
            ),
            "extender": not_done("An HTTP server is asked", PROGRAM),
            "--plugins-dir": not_done("Plugins of one's own", PROGRAM),
        },
    ),
    section(
        "scheduler 3.12",
        "network-topology-aware",
        {
            "HyperNodes": not_done("Nodes in tiers of a network", NETWORK),
            "hard": not_done("A job stays within its tier, in the lowest that has room", NETWORK),
            "soft": not_done("A job's pods are drawn together", NETWORK),
            "subgroups": not_done("Each partition has a topology of its own", NETWORK),
            "weight": not_done("How much it counts; 1", NETWORK),
            "hypernode.binpack": not_done("The fuller part of the network first, by resource", NETWORK),
            "hypernode.binpack.normal-pod": not_done(
                "Ordinary pods fill parts of the network one after the other", NETWORK
            ),
        },
    ),
)
