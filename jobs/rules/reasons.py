"""Why a job waits, failed or was ended: the closed set of reasons by which lists filter jobs, and the text for each.

A reason is that of the job's state or, while its pod group is unschedulable, the one that the scheduler gives;
for pods that are bound and do not run, it is the cause.
"""

from __future__ import annotations

from typing import Final

WAITING: Final[dict[str, str]] = {
    "WaitingForQueue": "Waits: not yet let into its queue",
    "NotEnoughResources": "Waits: not enough is free",
    "NotEnoughTasks": "Waits: pods of the gang are missing",
    "NeverFits": "Waits: larger than any node",
    "NoNodes": "Waits: there is no node",
    "NodesUnavailable": "Waits: no node is ready",
    "NoMatchingNode": "Waits: no node has what it asks for",
    "UntoleratedTaint": "Waits: nodes are tainted",
    "NodeGroup": "Waits: its queue uses other nodes",
    "NodesBusy": "Waits: nodes are busy",
    "RevocableZone": "Waits: nodes are lent out at other times",
    "HostPortTaken": "Waits: a port is taken on the nodes",
    "PodAffinity": "Waits: not near pods that it needs",
    "PodAntiAffinity": "Waits: near pods that it avoids",
    "Repelled": "Waits: other pods keep it away",
    "TopologySpread": "Waits: its pods would be spread unevenly",
    "NetworkTopology": "Waits: no room close enough together in the network",
    "SubGroups": "Waits: its sub-groups do not fit whole",
    "UnknownConstraint": "Waits: a constraint is not understood",
    "ClaimNotBound": "Waits: a claim has no volume",
    "NotAllocating": "Waits: the scheduler places nothing",
    "SchedulingGated": "Waits: scheduling gates",
    "WaitingForVictims": "Waits: pods that make room for it are ending",
    "Reserved": "Waits: room is kept for it",
    "RoomKept": "Waits: room is kept for a job that goes first",
    "QueueLimit": "Waits: the queue is at its limit",
    "QueueTooSmall": "Waits: larger than its queue may be",
    "ParentQueueLimit": "Waits: a queue above is at its limit",
    "ParentQueueTooSmall": "Waits: larger than a queue above may be",
    "QueueOverDeserved": "Waits: the queue has what it deserves",
    "QueueGuarantees": "Waits: the rest is guaranteed to other queues",
    "QueueOrder": "Waits: the queue is first in, first out",
    "QuotaExceeded": "Waits: the quota of its namespace is used up",
    "QueueNotFound": "Waits: there is no such queue",
    "QueueClosed": "Waits: the queue is closed",
    "QueueHasChildren": "Waits: the queue has queues below it",
    "PodGroupNotFound": "Waits: there is no such pod group",
    "Unschedulable": "Waits: the scheduler gives no reason",
    "FailedCreate": "Waits: bounds of the namespace",
    "PluginBlocked": "Waits: a plugin's name is taken",
    "NamesTaken": "Waits: a pod's name is taken",
    "WaitingForTasks": "Waits: tasks that depend on others",
    "TaskDeadlock": "Waits: its tasks wait for each other",
    "NoReplicas": "Waits: no task has replicas",
    "TooManyPending": "Waits: too many pods do not run any more",
}
# Of bound pods, from `kube.pod_health.Cause`; the job may be Pending or Running.
START_OBSTACLES: Final[dict[str, str]] = {
    "ImageMissing": "Does not run: an image cannot be had",
    "SecretMissing": "Does not run: a Secret is missing",
    "ConfigMapMissing": "Does not run: a ConfigMap is missing",
    "VolumeMissing": "Does not run: a volume cannot be had",
    "DeviceMissing": "Does not run: a device is missing",
    "ConfigurationWrong": "Does not run: its containers are wrongly configured",
    "CommandNotStarted": "Does not run: its command cannot be started",
    "CrashLoop": "Does not run: it ends again and again",
    "ContainersEnded": "Does not run: its containers have ended and none was started again",
    "ContainerWaits": "Does not run: a container waits for something else",
}
FAILED: Final[dict[str, str]] = {
    "TooFewSucceeded": "Failed: too few pods succeeded",
    "TaskMinimumMissed": "Failed: too few pods of a task succeeded",
    "MinSuccessMissed": "Failed: fewer than minSuccess succeeded",
    "RetriesUsedUp": "Failed: retries are used up",
}
ENDED: Final[dict[str, str]] = {"Aborted": "Suspended", "Terminated": "Terminated"}
WORDS: Final[dict[str, str]] = {**WAITING, **START_OBSTACLES, **FAILED, **ENDED}
# Reasons that are usual or were requested: such jobs are found by their phase, not by a cause.
USUAL: Final = frozenset(
    {
        "WaitingForPods",
        "PodsRunning",
        "AllPodsEnded",
        "MinSuccessReached",
        "Restarted",
        "RestartRequested",
        "Resumed",
        "WaitingForPodsToEnd",
        "PodsKept",
        "AbortRequested",
        "TerminateRequested",
        "CompleteRequested",
        "CompletedOnRequest",
        "CompletedByPolicy",
    }
)
