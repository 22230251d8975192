"""The plugins that somebody has to ask for, and their arguments (reference: volcano-scheduler §3.11, §3.12)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

SECTIONS = (
    section(
        "scheduler 3.11 sla",
        "A bound on waiting",
        {
            "sla-waiting-time": "For all jobs; a duration",
            "annotation": "`volcano.sh/sla-waiting-time` of a group, or `sla-waiting-time`, goes before",
            "entry": differs("Who has waited so long is let in", "`sla`: a job whose time is over"),
            "order": differs("Jobs with a time come first, the soonest first", "`sla`: a job whose time is over"),
        },
    ),
    section(
        "scheduler 3.11 tdm",
        "Nodes that are lent for a part of the day",
        {
            "tdm.revocable-zone.ZONE": differs(
                "In this time the nodes of the zone take pods that may be revoked", "`tdm`: time of a zone"
            ),
            "over midnight": differs("A time may go over midnight", "`tdm`: time of a zone"),
            "who": differs(
                'Pods with `volcano.sh/revocable-zone: "*"`; others never',
                "`tdm`: a group some of whose waiting pods may be revoked",
            ),
            "preferred": "Such pods go there first",
            "tdm.evict.period": differs(
                "When the time is over they are evicted, some in each period", "`tdm`: when a zone closes"
            ),
            "jdb": "As many at once as the job's own budget allows, else one",
            "order of jobs": differs(
                "Jobs that are not preemptable come first", "`tdm`: order of jobs, and whom `preempt` may evict"
            ),
            "preempt": differs(
                "Preemptable jobs preempt nobody; only preemptable pods outside zones go",
                "`tdm`: order of jobs, and whom `preempt` may evict",
            ),
        },
    ),
    section(
        "scheduler 3.11 pdb",
        "PodDisruptionBudgets",
        {
            "budgets": differs("Nobody goes beyond what budgets allow", "PodDisruptionBudgets of victims"),
            "no labels": differs("Pods without labels never go", "PodDisruptionBudgets of victims"),
        },
    ),
    section(
        "scheduler 3.11 cdp",
        "Pods that have just started",
        {"cooldown-time": differs("They stay for `volcano.sh/cooldown-time`", "`volcano.sh/cooldown-time`")},
    ),
    section(
        "scheduler 3.11 nodegroup",
        "Groups of nodes for queues",
        {
            "required": "A queue uses only the groups that it requires",
            "required, against": differs(
                "And none that it must avoid", "`nodegroup`: a group that a queue must avoid and would rather avoid"
            ),
            "preferred": differs(
                "Groups that it prefers come first, after those that it requires",
                "`nodegroup` without `nodeorder` and `binpack`",
            ),
            "preferred, against": "Groups that it would rather avoid come last",
            "only groups to avoid": differs(
                "A queue that only names groups to avoid uses no node",
                "`nodegroup`: a queue whose affinity only names groups to avoid",
            ),
            "strict": "A queue that says nothing uses nodes of no group",
            "strict: false": "Or any node",
            "enablePreferredOrder": "The order of what is preferred counts",
            "enableHierarchy": "A queue that says nothing inherits",
            "nodegroup-resource-limits": decided(
                "The annotation limits what a queue uses of a group",
                "`nodegroup`: the annotation `volcano.sh/nodegroup-resource-limits`",
            ),
            "why": differs(
                "Pods are told which nodes are none of their queue's", "`nodegroup`: a node that is not for the queue"
            ),
        },
    ),
    section(
        "scheduler 3.11 usage",
        "Load of nodes",
        {
            "thresholds": differs(
                "Nodes that use more than 80% of CPU or memory take nobody", "`usage`: all nodes are busy"
            ),
            "usage.weight, cpu.weight, memory.weight": "Idle nodes come first",
            "old figures": "What is five minutes old says nothing",
            "metrics": differs("Figures come from Prometheus and the like", "`usage`: source of figures (`metrics`)"),
            "estimator": differs(
                "What has just been placed is estimated", "`usage`: pods that were placed and are not measured yet"
            ),
        },
    ),
    section(
        "scheduler 3.11 task-topology",
        "Tasks of a job together or apart",
        {
            "affinity": "`volcano.sh/task-topology-affinity` draws tasks to one node",
            "anti-affinity": differs(
                "`volcano.sh/task-topology-anti-affinity` parts them",
                "`task-topology`: tasks that are only parted from others",
            ),
            "buckets": "Tasks that are drawn to several are shared among them",
            "task order": differs("`volcano.sh/task-topology-task-order`", "`task-topology`: order of tasks"),
            "task-topology.weight": differs("How much it counts", "`task-topology`: how much it counts"),
            "bad annotations": differs(
                "Nothing comes of annotations that name tasks that there are not",
                "`task-topology`: a task that there is not, or one that two annotations want with another and apart",
            ),
            "not listed": "Nothing is heeded where it is not listed",
        },
    ),
    section(
        "scheduler 3.11 resource-strategy-fit",
        "Resource by resource",
        {
            "resources": "MostAllocated or LeastAllocated, with a weight for each",
            "prefix*": "A name stands for all that begin so; the longest one counts",
            "resourceStrategyFitWeight": "10",
            "overflow": "Where something is short the node gets nothing",
            "annotations": differs(
                "A pod may say otherwise",
                "`resource-strategy-fit`: annotations of pods `volcano.sh/resource-strategy-scoring-type` and `-weight`",
            ),
            "sra": "Nodes with scarce devices come after others",
            "proportional": differs(
                "CPU and memory are kept for idle devices", "`resource-strategy-fit`: `proportional`"
            ),
        },
    ),
    section(
        "scheduler 3.11 rescheduling",
        "Running pods are moved",
        {
            "lowNodeUtilization": differs(
                "Pods end on nodes above a target, to fill nodes below a threshold",
                "`shuffle` with `rescheduling`: who is moved",
            ),
            "use": differs("Of nodes counts what is measured", "`rescheduling`: how full nodes are"),
            "thresholds, targetThresholds": differs(
                "100 where nothing is said", "`rescheduling`: thresholds that are not said"
            ),
            "interval": "5m",
            "order": differs(
                "The lowest priority goes first, of equals the lowest QoS",
                "`shuffle` with `rescheduling`: who is moved",
            ),
        },
    ),
    section(
        "scheduler 3.11 others",
        "Plugins that are not here",
        {
            "numa-aware": decided(
                "CPUs of one NUMA node", "Parts of nodes and of devices (`numa-aware`, `deviceshare`)"
            ),
            "deviceshare": decided("Parts of devices", "Parts of nodes and of devices (`numa-aware`, `deviceshare`)"),
            "resourcequota": differs(
                "A group enters when the quota of its namespace has room", "ResourceQuotas at entry"
            ),
            "extender": decided("An HTTP server is asked", "Plugin `extender`"),
            "--plugins-dir": decided("Plugins of one's own", "Plugins of one's own (`--plugins-dir`)"),
        },
    ),
    section(
        "scheduler 3.12",
        "network-topology-aware",
        {
            "HyperNodes": differs(
                "Nodes in tiers of a network",
                "A HyperNode that is not what it says: members that are not there, circles, members whose tier is not lower, nodes in two of a tier",
            ),
            "always": differs(
                "Works where it is listed", "`networkTopology` where the plugin `network-topology-aware` is not listed"
            ),
            "equals": differs(
                "Of HyperNodes of one tier the fuller one, of equals any", "Which HyperNode of a tier, of equals"
            ),
            "beyond": differs(
                "Pods beyond the minimum stay in the HyperNode of the others", "A job whose HyperNode is full"
            ),
            "hard": "A job stays within its tier, in the lowest that has room",
            "soft": differs("A job's pods are drawn together", "`networkTopology` without a highest tier, or `soft`"),
            "subgroups": "Each partition has a topology of its own",
            "weight": differs("How much it counts; 1", "`weight` of `network-topology-aware`"),
            "hypernode.binpack": "The fuller part of the network first, by resource",
            "hypernode.binpack.normal-pod": differs(
                "Ordinary pods fill parts of the network one after the other",
                "Ordinary pods and HyperNodes (`hypernode.binpack.normal-pod.enable`)",
            ),
        },
    ),
)
