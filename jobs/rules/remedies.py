"""What each reason to wait means and what ends it: the closed list that the pages and docs/how-to/why-a-job-waits.md show.

`jobs.rules.reasons` has the words by which lists find the same reasons.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

BEHIND: Final = "ControllersBehind"
"""The reason that no controller writes, as it is about them: the pages determine it when they are read."""


class About(StrEnum):
    """What a reason is about, in the words that people read."""

    REFERENCE = "something that it names"
    QUEUE = "its queue"
    PARENT = "a queue above its own"
    OTHERS = "who goes first"
    GANG = "its gang"
    CONTAINERS = "its containers"
    NODES = "the nodes"
    RULES = "rules about other pods"
    QUOTA = "bounds of the namespace"
    DEPENDENCY = "its own tasks"
    CONTROLLERS = "the controllers"


class Waiting(NamedTuple):
    """What a reason is about, what it means, and what to do; `is_passing`: it ends by itself."""

    about: About
    means: str
    remedy: str
    is_passing: bool = False


PASSES: Final = True  # it ends by itself
_REASONS: Final[dict[About, dict[str, tuple[str, str] | tuple[str, str, bool]]]] = {
    About.REFERENCE: {
        "QueueNotFound": (
            "The job names a queue that does not exist.",
            "Create the queue, or submit the job with another one.",
        ),
        "PodGroupNotFound": (
            "A pod names a pod group that does not exist.",
            "Create the group, or create the pod without naming one.",
        ),
        "ClaimNotBound": (
            "A pod uses a volume claim that has no volume yet.",
            "See why the claim has none; a class that waits for the first pod makes none for pods of this scheduler.",
        ),
        "PluginBlocked": (
            "An object has the name that one of its plugins needs.",
            "Delete that object, or submit the job under another name.",
        ),
        "NamesTaken": (
            "A pod that is not its own has the name of one of its pods.",
            "Delete that pod, or submit the job under another name.",
        ),
    },
    About.QUEUE: {
        "QueueClosed": (
            "Its queue is closed and takes no new work.",
            "Have the queue opened, or submit the job to another one.",
        ),
        "QueueHasChildren": (
            "Its queue has queues below it, so it takes no pods itself.",
            "Submit the job to one of the queues below.",
        ),
        "QueueLimit": (
            "What its queue uses, or has let in, leaves too little of the queue's capability.",
            "Wait for jobs of the queue, end some of them, or have its capability raised.",
            PASSES,
        ),
        "QueueTooSmall": (
            "It needs more than the capability of its queue.",
            "Ask for less, choose a larger queue, or have the capability raised.",
        ),
        "QueueOverDeserved": (
            "The nodes are full, and its queue would use more than it deserves, so nothing is taken back from others for it.",
            "Wait for what others leave, or have the queue's weight or deserved raised.",
            PASSES,
        ),
    },
    About.PARENT: {
        "ParentQueueLimit": (
            "What a queue above its own uses, or has let in, leaves too little of that queue's capability.",
            "Wait for jobs of the queues below it, or have that capability raised.",
            PASSES,
        ),
        "ParentQueueTooSmall": (
            "It needs more than the capability of a queue above its own.",
            "Ask for less, choose a queue elsewhere, or have that capability raised.",
        ),
    },
    About.OTHERS: {
        "Reserved": (
            "The job has waited long behind smaller ones, so room is kept for it on some nodes until what runs there has ended.",
            "Nothing; it starts as soon as it fits, there or elsewhere. End what need not run there to have it sooner, or release the room if others need it more.",
            PASSES,
        ),
        "QueueGuarantees": (
            "What is left is guaranteed to other queues, and lent to nobody.",
            "Ask for less, have a guarantee lowered, or wait for jobs that use what is not guaranteed where it can start at all.",
            PASSES,
        ),
        "QueueOrder": (
            "Its queue is first in, first out, and a job before it cannot start yet.",
            "See why that job waits; a higher priority class puts a job before it.",
            PASSES,
        ),
        "RoomKept": (
            "The room that it needs is free or getting free, and kept for a job that goes first.",
            "Wait, or have the owner of the other job or an operator release its room; a higher priority class puts a job before the other one.",
            PASSES,
        ),
        "WaitingForVictims": (
            "Pods of others were asked to end, so that it can start.",
            "Nothing; it starts when they are gone.",
            PASSES,
        ),
    },
    About.GANG: {
        "NotEnoughTasks": (
            "Fewer pods exist than must start together.",
            "See the job's events for why its pods are not made.",
        ),
        "SubGroups": (
            "Fewer sub-groups have room for all of their pods than must start with the gang.",
            "Wait for pods that end, ask for less in each pod, or lower minSubGroups or the partitions' minimum.",
            PASSES,
        ),
        "SchedulingGated": (
            "Scheduling gates hold back pods that must start with the others.",
            "Have whoever set the gates take them away.",
        ),
        "TooManyPending": (
            "It ran, and fewer pods run now than must run together.",
            "See its pods for why they wait.",
            PASSES,
        ),
    },
    About.CONTAINERS: {
        "ImageMissing": (
            "An image cannot be pulled, and is not on the node.",
            "Correct the image's name, or see what the registry says; it is tried again by itself.",
        ),
        "SecretMissing": (
            "A Secret that a container names, or a key of it, does not exist.",
            "Create the Secret; the pods start by themselves.",
        ),
        "ConfigMapMissing": (
            "A ConfigMap that a container names, or a key of it, does not exist.",
            "Create the ConfigMap; the pods start by themselves.",
        ),
        "VolumeMissing": (
            "A volume that a container mounts cannot be had on the node.",
            "See what is said of the volume; the pods start by themselves when it is there.",
        ),
        "DeviceMissing": (
            "A device that a container asks for is not there or not free on the node.",
            "See the node's page for its devices; the pods start by themselves when enough are free.",
        ),
        "ConfigurationWrong": (
            "The node cannot make a container as it is described.",
            "Correct what the sentence names in a new job.",
        ),
        "CommandNotStarted": (
            "The node cannot start the command of a container.",
            "Correct the command in a new job, or install what it needs on the node.",
        ),
        "CrashLoop": (
            "Containers end again and again, and are started again later each time.",
            "Read the logs of the pods; the restart policy Never makes a pod fail the first time.",
        ),
        "ContainersEnded": (
            "The containers of pods have ended, and have not been started again yet.",
            "Nothing; the node starts them again. If it lasts, look whether the node is ready.",
            PASSES,
        ),
        "ContainerWaits": ("A container waits for something that the node names.", "See its pods for why they wait."),
    },
    About.NODES: {
        "NotEnoughResources": (
            "Not enough is free for as many pods as must start together.",
            "Wait for pods that end, ask for less in each pod, or lower minAvailable.",
            PASSES,
        ),
        "NeverFits": (
            "It is more than the nodes have, were they empty.",
            "Ask for less in each pod, lower minAvailable, or add nodes.",
        ),
        "NoNodes": ("The cluster has no nodes.", "Start the node agent, or add nodes."),
        "NodesUnavailable": (
            "No node that it may use is ready and takes new pods.",
            "See the nodes' page for why; uncordon those that are closed to new pods.",
            PASSES,
        ),
        "NoMatchingNode": (
            "No node has the labels that its pods select.",
            "Correct nodeSelector or node affinity, or label a node.",
        ),
        "UntoleratedTaint": (
            "The nodes have taints that its pods do not tolerate.",
            "Add tolerations to the pods, or choose other nodes; simulated nodes are asked for by their label.",
        ),
        "NodeGroup": (
            "Its queue uses only certain groups of nodes, and none of them is ready for its pods.",
            "Choose another queue, have the queue's affinity changed, or label a node with the group.",
        ),
        "NetworkTopology": (
            "Its pods must be close together in the network, and no HyperNode of the tier that it allows has room for them.",
            "Allow a higher tier, or wait for pods that end there where it can start at all; the page Network has the sizes of HyperNodes.",
            PASSES,
        ),
        "NodesBusy": (
            "The nodes that it may use were busier in the last minutes than the scheduler's configuration allows.",
            "Wait, or have the thresholds of the plugin usage raised.",
            PASSES,
        ),
        "RevocableZone": (
            "The nodes that it may use are lent out at certain times of the day, and not now or not to such pods.",
            "Wait until the zone opens, or have the pods say that they may be ended then (volcano.sh/revocable-zone).",
            PASSES,
        ),
        "Unschedulable": (
            "The scheduler that works here says that it does not fit, and gives no reason that is known here.",
            "Read what it says below the sentence.",
        ),
    },
    About.RULES: {
        "HostPortTaken": (
            "A port of the node that its pods ask for is in use on each node with room.",
            "Wait for that pod, or ask for another port or none.",
            PASSES,
        ),
        "PodAffinity": (
            "Its pods must be near others, and there is no room near any.",
            "Start the pods that it is to be near, or correct the affinity's selector.",
        ),
        "PodAntiAffinity": (
            "Its pods must be apart from others, and those are wherever there is room.",
            "Wait for them, or loosen the anti-affinity.",
            PASSES,
        ),
        "Repelled": (
            "Other pods keep such pods away from wherever there is room.",
            "Wait for those pods, or change the labels by which they keep it away.",
            PASSES,
        ),
        "TopologySpread": (
            "Its pods would be spread more unevenly than they allow.",
            "Wait for room in the other parts, or raise maxSkew.",
            PASSES,
        ),
        "UnknownConstraint": (
            "Its pods demand something that the scheduler does not know or cannot read.",
            "Correct the field that the sentence names.",
        ),
    },
    About.QUOTA: {
        "QuotaExceeded": (
            "A quota of the namespace has no room for the job's minimum.",
            "Wait until other jobs of the namespace have ended, ask for less, or have the quota raised.",
        ),
        "FailedCreate": (
            "A quota or another bound of the namespace has no room for all pods of its minimum.",
            "Wait for pods of the namespace, ask for less, or have the quota raised.",
        ),
    },
    About.DEPENDENCY: {
        "WaitingForTasks": (
            "Tasks wait for others that they depend on.",
            "Nothing, while those others get on; otherwise restart the job.",
            PASSES,
        ),
        "TaskDeadlock": (
            "A task that must start with the others waits for one of them, so no pod of the gang can ever run.",
            "Set minAvailable, or the minimum of the task that waits, so low that the others may start without it.",
        ),
        "NoReplicas": ("Every task has 0 replicas.", "Raise the replicas of a task, or delete the job."),
    },
    About.CONTROLLERS: {
        "WaitingForQueue": (
            "The scheduler has not looked at the job yet.",
            "Nothing; it takes about a second. If it lasts, look whether the scheduler's worker runs.",
            PASSES,
        ),
        "ControllersBehind": (
            "The job controller or the scheduler has not read the newest change of the job for 10 seconds, so what is said of it may be old.",
            "Look whether its worker runs and what its log says; while very much changes at once it only takes longer.",
        ),
        "NotAllocating": (
            "The scheduler's configuration does not name the action allocate.",
            "Add allocate to the actions on the scheduler's page.",
        ),
    },
}
REASONS: Final[dict[str, Waiting]] = {
    reason: Waiting(about, *texts) for about, reasons in _REASONS.items() for reason, texts in reasons.items()
}


def rows() -> list[str]:
    """Return the list as rows of a table in Markdown."""
    return [
        f"| {each.about} | `{reason}` | {each.means} | {each.remedy} | {'yes' if each.is_passing else 'no'} |"
        for reason, each in REASONS.items()
    ]
