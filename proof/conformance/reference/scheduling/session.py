"""Amounts, pods, groups and nodes, in which order they are served, and what is all or nothing (reference: volcano-scheduler §1)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

LEAVING = "Room that pods are about to leave"

SECTIONS = (
    section(
        "scheduler 1.1",
        "Amounts",
        {
            "resources": "CPU, memory, `pods` and extended resources count; names of quotas, such as `requests.cpu`, do not",
            "pods": "A pod takes one of the `pods` of its node; a node that states none takes nobody",
            "tolerance": differs(
                "Amounts closer than 0.1 millicores or bytes are equal on nodes, and not in queues",
                "Comparison of amounts",
            ),
            "left out": "A resource that a limit does not name is not limited",
        },
    ),
    section(
        "scheduler 1.2",
        "What a pod asks for",
        {
            "containers": "The sum of its containers, and one of `pods`",
            "init containers": "At least what an init container asks for, beside the sidecars that started before it",
            "overhead": "And its overhead",
            "pod level": "What the pod states as a whole comes before what its containers state",
            "resize": decided(
                "A pod that is being resized counts with the larger of both amounts", "Pods that are resized in place"
            ),
            "CSI volumes": decided("Volumes count against the limits of their drivers on a node", "Volumes and nodes"),
        },
    ),
    section(
        "scheduler 1.3",
        "Pods",
        {
            "group-name": "The annotation `scheduling.k8s.io/group-name` names the pod's group in its namespace",
            "task-spec": "Its task: the annotation `volcano.sh/task-spec`, else the label",
            "priority": "`volcano.sh/task-priority`, else that of the pod",
            "preemptable": "`volcano.sh/preemptable`, annotation, else label: true where it is left out, false where it cannot be read",
            "revocable-zone": "Pods that may run on nodes of a time window",
            "scheduling gates": "A pod with gates gets no node",
            "queue-allocation-gate": decided(
                "A gate that Volcano itself takes off when the queue has room (behind a feature gate, off by default)",
                "Gate `scheduling.volcano.sh/queue-allocation-gate`",
            ),
            "resourceClaims": differs("Devices of claims are looked for", "`resourceClaims`"),
            "being deleted": "A pod that is being deleted holds its room until it is gone",
        },
    ),
    section(
        "scheduler 1.4",
        "Pod groups",
        {
            "queue": "A group that names no queue is in `default`",
            "priority": "That of its class, else of the class that is the default of all, else 0",
            "ready": "Pods with a node, running and succeeded ones count for the minimum; failed ones do not",
            "best effort": differs(
                "Pods that ask for nothing count for the minimum before they have a node", "Pods that ask for nothing"
            ),
            "minTaskMember": "Each task has its minimum",
            "minTaskMember too large": "Minima of tasks that add up to more than `minMember` count for nothing",
            "which pods": differs(
                "Priority orders the attempts; who fits starts", "Which pods make the minimum of a job"
            ),
            "minSubGroups": "So many subgroups must be whole",
            "subgroups": "Pods of equal labels (`matchLabelKeys`) start together",
            "subgroups without keys": differs(
                "A policy without `matchLabelKeys` selects nobody", "A sub-group policy without `matchLabelKeys`"
            ),
        },
    ),
    section(
        "scheduler 1.5",
        "Nodes",
        {
            "allocatable": "A node has what it states as allocatable, whatever its capacity",
            "all pods": "All pods that are on it take room, those of other schedulers too",
            "overfull": "A node with more pods than it has room for takes nobody until there is room",
            "future": differs("Room that pods are leaving may be promised for the rest of a cycle", LEAVING),
            "not Ready": differs("Conditions of nodes are not read", "Nodes that are not Ready"),
            "oversubscription": decided("Annotations add to what a node has", "Oversubscription"),
        },
    ),
    section(
        "scheduler 1.6",
        "What a cycle looks at",
        {
            "period": differs("A cycle begins a second after the last one ended", "When a cycle begins"),
            "one by one": "Cycles follow each other; each knows what the ones before decided",
            "queue missing": differs("Groups of a queue that does not exist are passed over", "A queue that is gone"),
            "group missing": "Pods of a group that does not exist get no node",
            "built-in queues": "`default` and `root` are made where they are missing",
            "other schedulers": "Pods of other schedulers are left to them",
        },
    ),
    section(
        "scheduler 1.8",
        "All or nothing",
        {
            "minimum": "A group whose minimum does not fit holds no node",
            "promised": differs("A group that would fit on room that is being left keeps it for the cycle", LEAVING),
        },
    ),
    section(
        "scheduler 1.9",
        "Binding and evicting",
        {
            "bound": differs("An event Scheduled on the pod", "Event of a pod that gets its node"),
            "cannot be bound": "What could not be bound is scheduled again",
            "half bound": differs(
                "Members that were bound stay when others could not be", "A gang of which only a part could be bound"
            ),
            "evicted": "The pod gets the condition DisruptionTarget (PreemptionByScheduler) and the warning Evict with the action, and is deleted",
            "evicted, group": differs("The group is told as well", "Event Evict"),
        },
    ),
    section(
        "scheduler 1.10",
        "Who comes first",
        {
            "queues": "Higher `priority`, then the smaller share, then the older queue",
            "jobs": "Higher priority, then those below their minimum, then the smaller share of the cluster (drf), then the older",
            "pods": "Higher priority, then the smaller number at the end of the name, then the older",
            "equals": differs("At last the uid decides", "Equals of one age"),
            "victims": differs("Reverse order of jobs and pods", "Victims of `preempt`"),
        },
    ),
    section(
        "scheduler 1.11",
        "Which node",
        {
            "how many": differs(
                "From 100 nodes on only a part is looked at, beginning where the search before ended",
                "Nodes that are looked at",
            ),
            "equal scores": differs("One by chance", "Nodes of equal score"),
        },
    ),
)
