"""Pod groups: fields, admission, and groups that are made for pods (reference: volcano-queue-podgroup §3)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

MADE = "Group that is made for pods"
HANDED_ON = "Stored and handed on; not yet scheduled"

SECTIONS = (
    section(
        "groups 3.1",
        "Fields of the spec",
        {
            "PodGroup": "`podgroups` of `scheduling.volcano.sh/v1beta1`, in namespaces, without a status of its own",
            "columns": "STATUS, minMember, RUNNINGS, AGE, QUEUE",
            "minMember": "How many must start together; not negative",
            "minTaskMember": "How many of each task",
            "queue": "`default` where it is left out",
            "priorityClassName": "Its priority",
            "minResources": "What has to be free for it to be let in; always let in where it is left out",
            "networkTopology": "How far apart in the network",
            "subGroupPolicy": "Groups within the group",
            "changes": "All may change",
        },
    ),
    section(
        "groups 3.2",
        "Fields of the status",
        {
            "phase": "See scheduler 5.1",
            "conditions": "See scheduler 5.2",
            "running, succeeded, failed": "Counts of its pods",
        },
    ),
    section(
        "groups 3.5",
        "What pods and namespaces say",
        {
            "group-name": "`scheduling.k8s.io/group-name` on a pod: its group",
            "queue-name": differs(
                "`scheduling.volcano.sh/queue-name` on a pod: the queue of a group made for it", "Queue of a pod"
            ),
            "queue-name of a namespace": "The queue of groups of the namespace that name none",
            "several owners": "Pods of different owners may share a group",
            "namespace": "A group and its pods are in one namespace",
            "job-allocated-hypernode": "Where in the network a job is",
        },
    ),
    section(
        "groups 3.6",
        "Groups that are made for pods",
        {
            "which": "Pods of the scheduler that name no group get one",
            "one for a controller": "Pods of one controller share one, which it owns",
            "minMember": "1",
            "group-min-member": differs("Or what the annotation of the owner says", MADE),
            "priorityClassName": "That of the pod",
            "minResources": differs("What the pods ask for", MADE),
            "annotations": differs("Those of the owner and some of the pod", MADE),
            "closed queue": differs(
                "The group is refused again and again", "Pods without a group, in a queue that is Closed or Closing"
            ),
            "ReplicaSets": decided(
                "A group follows its ReplicaSet or StatefulSet", "Groups that follow ReplicaSets and StatefulSets"
            ),
        },
    ),
    section(
        "groups 3.7",
        "Admission of pod groups",
        {
            "namespace's queue": "A new group in `default` gets the queue that its namespace names",
            "queue missing": "Refused",
            "queue not Open": "Refused",
            "root, with children": differs("Accepted", "Pod groups that people make"),
            "moved": differs("Not checked", "Pod groups that people make"),
            "two tiers": "`highestTierAllowed` beside `highestTierName` is refused",
        },
    ),
    section(
        "groups 3.8",
        "Admission of pods",
        {
            "jdb-min-available, jdb-max-unavailable": differs(
                "Numbers above 0, or 1% to 99%, not both",
                "Annotations `volcano.sh/jdb-min-available` and `volcano.sh/jdb-max-unavailable`",
            ),
            "others": "Pods of other schedulers are not looked at",
            "resourceGroups": decided(
                "A file of the webhook adds selectors, tolerations and affinity to pods",
                "`resourceGroups` of the admission of pods",
            ),
        },
    ),
)
