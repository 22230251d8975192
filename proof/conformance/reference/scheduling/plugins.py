"""The plugins that Volcano configures by default, and their arguments (reference: volcano-scheduler §3.1 to §3.10)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

ALWAYS = "Plugins and actions that are not listed"

SECTIONS = (
    section(
        "scheduler 3.1",
        "gang",
        {
            "always": differs("Works where it is listed", ALWAYS),
            "enough pods": "A group waits until as many pods exist as must start",
            "of each task": "And as many of each task as its minimum says",
            "order": "Groups below their minimum come before those that have it",
            "minimum": "All of the minimum start together, or none",
            "victims": differs("No gang is brought below its minimum", "Victims of `preempt`"),
            "minMember 0": "A group without a minimum starts pod by pod",
            "subgroups": "Each subgroup is a gang",
        },
    ),
    section(
        "scheduler 3.2",
        "priority",
        {
            "jobs": "The group's priority class orders jobs",
            "pods": "The pods' priority orders the pods of a job",
            "victims": "Only lower priority goes for higher",
        },
    ),
    section(
        "scheduler 3.3",
        "conformance",
        {
            "classes": "Pods of the classes system-cluster-critical and system-node-critical stay",
            "namespace": "Pods in kube-system stay",
        },
    ),
    section(
        "scheduler 3.4",
        "drf",
        {
            "share": "A job's share is the largest part of the cluster that it uses of one resource",
            "order": "Of pods beyond their minima those of the job with the smallest share come first",
            "victims": differs(
                "With `enablePreemptable` only jobs with a larger share give to those with a smaller one",
                "Victims of `preempt`",
            ),
            "hierarchy": decided(
                "Annotations of queues make a tree with weights (hdrf)",
                "Queue annotations `volcano.sh/hierarchy` in the scheduler (hdrf)",
            ),
        },
    ),
    section(
        "scheduler 3.5",
        "proportion",
        {
            "weights": "What queues deserve: the cluster by weight",
            "demand": "Nobody deserves more than he asks for; the rest goes to the others",
            "guarantee": "Nobody deserves less than his guarantee",
            "capability": "Nobody deserves more than his capability",
            "levels": differs("Queues are one level", "What a queue deserves"),
            "capability holds": "No queue uses more than its capability",
            "what is not named": "A resource that `capability` does not name is not limited",
            "guarantees of others": differs("Narrow each queue by itself", "Guarantees of others"),
            "order": "Higher `priority` first, then the smaller share of what is deserved",
            "borrowing": differs("No queue uses more than it deserves", "Use beyond what is deserved"),
            "entry": differs(
                "Groups enter while the queue's capability has room",
                "Entry (Pending to Inqueue) under a queue's capability",
            ),
            "state": differs("Nothing of a queue that is not Open gets a node", "Pods in a queue that is closing"),
        },
    ),
    section(
        "scheduler 3.6",
        "capacity",
        {
            "deserved": "A queue deserves what `deserved` states",
            "deserved, not below": "But no less than its guarantee",
            "borrowing": "A queue may use more, up to its capability",
            "reclaim": "What it borrows is taken back for queues within what they deserve",
            "share": "Its share is the largest part of what it deserves that it uses",
            "nothing deserved": "A queue that deserves nothing comes after those below what they deserve",
            "ancestors": "Capabilities of all queues above hold as well",
            "ancestors' order": differs("Is fixed for the cycle", "Order of queues whose parents differ"),
            "inner queues": differs(
                "A job in a queue with children stops all scheduling", "Pods in a queue that has children"
            ),
            "wrong tree": differs(
                "A parent that is missing, or a circle, stops all scheduling",
                "A tree of queues that is none (a parent that is missing, a circle)",
            ),
            "victims' order": "Of queues that give those nearest in the tree come first",
            "ancestorReclaimLevel": differs("How far up one looks", "`reclaim` between queues with different parents"),
            "DRA": decided(
                "`deviceclass/…` limits devices of claims", "Quotas of devices of claims (`deviceclass/…` in a queue)"
            ),
        },
    ),
    section(
        "scheduler 3.7",
        "predicates",
        {
            "pods of a node": "No more pods than the node states",
            "unschedulable": "Cordoned nodes take nobody",
            "node affinity": "Node selector and required node affinity",
            "taints": "Taints that are not tolerated",
            "ports": "Host ports that are taken",
            "pod affinity": "Required affinity to pods, and anti-affinity, also that of others",
            "spreading": "`topologySpreadConstraints` with DoNotSchedule",
            "volumes": differs(
                "Pods wait until their claims are bound", "A pod's volume of a claim that does not exist"
            ),
            "volume binding": decided("Volumes are chosen with the node", "Volumes and nodes"),
            "volume limits, zones": decided("Of volumes on a node", "Volumes and nodes"),
            "DRA": differs("Devices of claims", "`resourceClaims`"),
            "switches": decided("`predicate.…Enable` switches each off", "Switches of rules (`predicate.…Enable`)"),
            "CacheEnable": decided(
                "Answers are kept by template",
                "What Volcano's scheduler remembers of nodes (`predicateErrorCacheEnable`, `predicate.CacheEnable`)",
            ),
        },
    ),
    section(
        "scheduler 3.8",
        "nodeorder",
        {
            "leastrequested.weight": "Free CPU and memory; 1",
            "mostrequested.weight": "Used CPU and memory; 0",
            "no requests": differs(
                "A container without a request counts as 100m and 200 MB",
                "`leastrequested.weight`, `mostrequested.weight`",
            ),
            "balancedresource.weight": "CPU, memory and GPUs used alike; 1",
            "nodeaffinity.weight": "Preferred node affinity; 2",
            "podaffinity.weight": "Preferred affinity to pods; 2",
            "tainttoleration.weight": differs(
                "Taints with PreferNoSchedule; 3", "Taints with the effect PreferNoSchedule"
            ),
            "imagelocality.weight": decided("Nodes that have the image; 1", "`imagelocality.weight`"),
            "podtopologyspread.weight": "ScheduleAnyway; 2",
            "among which nodes": differs(
                "Preferences are compared among the nodes that were looked at",
                "Nodes among which preferences are compared",
            ),
            "Services": differs(
                "Pods of a Service or StatefulSet are spread softly",
                "Pods of a Service or StatefulSet without constraints of their own",
            ),
            "not listed, preferences": differs(
                "Preferences have no effect",
                "What pods prefer (preferred affinity to nodes and pods, ScheduleAnyway, PreferNoSchedule) where `nodeorder` is not listed",
            ),
            "not listed": differs("Compiled in: pods are spread over nodes", "Without a configuration"),
        },
    ),
    section(
        "scheduler 3.9",
        "binpack",
        {
            "binpack.weight": "1; 0 switches it off",
            "binpack.cpu, binpack.memory": "1 each",
            "binpack.resources": "Others by name, with `binpack.resources.NAME`",
            "score": "The fuller node, by the weights of what the pod asks for",
        },
    ),
    section(
        "scheduler 3.10",
        "overcommit",
        {
            "overcommit-factor": "So many times the cluster is let in; 1.2, and not below 1",
            "listed": "Not listed, the cluster is no limit",
            "what entered": differs("Counts in full", "What groups that entered may still take"),
        },
    ),
)
