"""Queues: fields, admission, states (reference: volcano-queue-podgroup §1 and §2; what a job may name: §4)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

WISH = "Wish and fact"
COUNTERS = "Counters in the status"
NODE_GROUPS = "Stored; nodegroup is not at work yet, see scheduler 3.11 nodegroup"

_KIND = (
    section(
        "queues 1.1",
        "Kind",
        {
            "Queue": "`queues` of `scheduling.volcano.sh/v1beta1`, in no namespace",
            "short names": "`q`, `queue-v1beta1`",
            "status": "With a status of its own",
            "columns": "PARENT",
        },
    ),
    section(
        "queues 1.2",
        "Fields of the spec",
        {
            "weight": "From 1 to 65535; 1 where it is left out",
            "capability": "The most that it may use; what it does not name is not limited",
            "deserved": "What it is entitled to",
            "guarantee": "What is kept for it",
            "reclaimable": "Whether others take back from it; true where it is left out",
            "parent": differs("The queue above it; written later where it is left out", "`spec.parent`"),
            "priority": "Who is served first; 0 where it is left out",
            "dequeueStrategy": "`traverse` where it is left out, or `fifo`",
            "affinity": "Which nodes it uses",
            "type": "Free text, kept",
            "extendClusters": decided("Other clusters", "`spec.extendClusters` of a queue"),
            "state": differs("There is none", WISH),
        },
    ),
    section(
        "queues 1.3",
        "Fields of the status",
        {
            "state": "Open, Closed, Closing",
            "state of a new queue": differs("Empty at first", "New queue"),
            "allocated": "What its pods hold, also in the queues above",
            "reservation": decided("Room that is kept; nobody writes it", "`status.reservation` of a queue"),
            "pending, running, unknown, inqueue, completed": differs("Nobody writes them", COUNTERS),
        },
    ),
    section(
        "queues 1.4",
        "Annotations",
        {
            "hierarchy": "`volcano.sh/hierarchy` and its weights are checked and kept; a path begins at root",
            "closed-by-parent": differs("Remembers who closed a queue", "Queues below a closed one"),
            "nodegroup-resource-limits": decided(
                "Limits on groups of nodes", "`nodegroup`: the annotation `volcano.sh/nodegroup-resource-limits`"
            ),
        },
    ),
    section(
        "queues 1.5",
        "Queues that are always there",
        {
            "root": "Above all; takes no jobs, is never closed or deleted, its resources stay as they are",
            "default": "Takes what names no queue; may be closed, is never deleted",
        },
    ),
)

_ADMISSION = (
    section(
        "queues 1.7",
        "What is filled in",
        {
            "hierarchy": "A path that does not begin at root gets it",
            "reclaimable": "true",
            "weight": "1",
            "rootless": differs(
                "A path such as `rootless/x` is taken for one that begins at root", "Path of the annotations"
            ),
        },
    ),
    section(
        "queues 1.9",
        "What is refused",
        {
            "all at once": "Messages come together",
            "weight": "Below 1 or above 65535",
            "quantity sign": "An amount below 0",
            "integers": "A part of a device",
            "guarantee, no deserved": "A guarantee of what `deserved` does not name",
            "guarantee above deserved": "A guarantee above what is deserved",
            "deserved above capability": "Deserving more than the capability, where it names the resource",
            "state": "A state other than Open and Closed",
            "hierarchy length": "Path and weights of different lengths",
            "hierarchy weights": "A weight that is no number, or not above 0",
            "hierarchy path": "A path that that of another queue goes through",
            "self": "Its own parent",
            "circle": differs("Circles of parents are accepted", "Circle of parents"),
            "depth": "More than five queues on a path below root",
            "parent missing": "A parent that does not exist",
            "parent busy": "A parent without children whose pods run",
            "root": "Another capability, deserved or guarantee of root",
            "ancestor's capability": "A capability above that of a queue above it",
            "siblings": "Siblings that together deserve, or are guaranteed, more than their parent",
            "root's children": "Of root's children no sums are made",
            "descendants' capability": "A capability below that of a queue below it",
            "children": "Deserving less, or a lower guarantee, than the children together",
            "Closing": differs("A queue that is closing may not be changed", "Updates of a Closing queue"),
            "options": decided("Limits of the webhook are options", "Options of the admission of queues"),
            "exempt": decided("What is in kube-system is not checked", "Options of the admission of queues"),
        },
    ),
    section(
        "queues 1.10",
        "Deletion",
        {
            "default": "Never",
            "root": "Never",
            "children": "Not with children",
            "state": differs("In any state", "Deletion"),
            "allocated pods": decided("By an option: not while pods run", "Options of the admission of queues"),
        },
    ),
    section(
        "queues 1.11",
        "Policies in CEL in place of the webhooks",
        {"subset": decided("The chart may install a weaker set of rules", "Options of the admission of queues")},
    ),
)

_STATES = (
    section(
        "queues 2.2",
        "Commands",
        {
            "target": "A Command whose target is a queue opens or closes it",
            "once": differs("The Command is deleted first, then carried out", "A Command and its effect"),
            "unknown action": "Nothing but a look at the queue",
            "target gone": differs(
                "Stored, and then taken without effect", "Command to a job or queue that does not exist"
            ),
        },
    ),
    section(
        "queues 2.3",
        "States",
        {
            "Open, OpenQueue": "Open",
            "Open, CloseQueue, empty": "Closed",
            "Open, CloseQueue, in use": "Closing",
            "Closing, OpenQueue": "Open",
            "Closing, CloseQueue": "Closing, or Closed when empty",
            "Closing, nothing left": differs("Closed when the last pod group is deleted", "Closing"),
            "Closed, OpenQueue": "Open",
            "Closed, CloseQueue": "Closed",
            "Closed, SyncQueue": "Closed",
            "Unknown": "Is never reached; OpenQueue leads to Open",
        },
    ),
    section(
        "queues 2.4",
        "Opening and closing",
        {
            "root": "Cannot be closed",
            "children close": "Children close with their parent",
            "children open": "And open with it, unless they were closed by themselves",
            "below a closed one": differs(
                "Opening is tried again until the parent is open", "Queues below a closed one"
            ),
            "event": differs("CloseQueue", "Events of queues"),
        },
    ),
    section(
        "queues 2.5",
        "Parent and child",
        {
            "new child of a closed queue": "Is closed with it",
            "moved": "A queue that is moved below a closed one closes, below an open one opens",
        },
    ),
    section(
        "queues 2.6",
        "Errors and metrics",
        {
            "tried again": "What fails is tried again",
            "given up": differs("After 15 tries an event says so", "Writes that fail"),
            "metrics": "Counts of pod groups for Prometheus",
        },
    ),
    section(
        "queues 2.8",
        "The scheduler and queues that are not Open",
        {
            "entry": "No group is let in that is not in yet",
            "no minResources": differs(
                "Groups that state no `minResources` are let in all the same", "Pods in a queue that is closing"
            ),
            "pods that wait": differs("Get no nodes", "Pods in a queue that is closing"),
            "pods that run": "Stay",
        },
    ),
)

_JOBS = (
    section(
        "queues 4",
        "Which queue a job may name",
        {
            "none": "`default`",
            "missing": "Refused",
            "no name": "What is no name is refused",
            "Open": "Accepted",
            "no state yet": differs("Refused", "New queue"),
            "Closed, Closing": "Refused",
            "root": "Refused",
            "with children": "Refused",
            "later": "It may not be changed",
            "closed in between": "Jobs that a queue has stay when it closes",
        },
    ),
)

SECTIONS = (*_KIND, *_ADMISSION, *_STATES, *_JOBS)
