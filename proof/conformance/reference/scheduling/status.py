"""What the scheduler says of groups, pods and queues (reference: volcano-scheduler §5, volcano-queue-podgroup §3.3, §3.4)."""

from __future__ import annotations

from proof.conformance.items import differs, section

LOST = "Phase of a group that lost pods"
CONDITIONS = "Conditions of a pod group"

SECTIONS = (
    section(
        "scheduler 5.1",
        "Phases of a pod group",
        {
            "Pending": "Not let in, or none of its pods is left",
            "Inqueue": "Let in; its minimum does not have nodes",
            "Running": "As many pods as the minimum have nodes or have ended, and not all have ended",
            "Completed": "All of those have ended, failed ones too",
            "Unknown": "Some run, and the minimum cannot be brought together",
            "at once": differs("Running is said a cycle after the binding", "Running, of a pod group"),
            "back to Pending": differs("A group that falls below its minimum has to be let in again", LOST),
            "counters": "`running`, `succeeded` and `failed` count its pods",
            "written": "Only when something changed",
        },
    ),
    section(
        "scheduler 5.2",
        "Conditions of a pod group",
        {
            "Unschedulable": "True while the minimum has no nodes",
            "Scheduled": "True when it has: `tasks in gang are ready to be scheduled`",
            "both": differs("Neither ever becomes False", CONDITIONS),
            "reasons": differs("NotEnoughResources, whatever it is", "Why a group waits"),
        },
    ),
    section(
        "scheduler 5.3",
        "Texts",
        {
            "group": "`1/2 tasks in gang unschedulable: pod group is not ready, …` with the pods by state, after a sentence of ours",
            "nodes": "`0/3 nodes are unavailable: 2 Insufficient cpu.` with the nodes by cause",
            "causes": "Words of kube-scheduler for taints, ports, affinity, spreading",
        },
    ),
    section(
        "scheduler 5.4",
        "Events and conditions of pods",
        {
            "group waits": differs("Warning Unschedulable in each cycle", "Event Unschedulable"),
            "group is ready": differs("Scheduled: `pod group is ready`", "Event Scheduled (`pod group is ready`)"),
            "entry refused": differs("Normal Unschedulable", "Event Unschedulable"),
            "pods": differs(
                "PodScheduled=False and an event FailedScheduling for each pod", "Pods that are told why they wait"
            ),
            "gated": "Gated pods keep SchedulingGated",
            "queues": "`status.allocated` of a queue and those above it",
        },
    ),
)
