"""What each reason to wait means and what ends it: the closed list that the pages and docs/how-to/why-a-job-waits.md show.

`jobs.rules.reasons` has the words by which lists find the same reasons.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

BEHIND: Final = "ControllersBehind"
"""The reason that no controller can write, as it is about them: the pages find it out when they are read."""


class About(StrEnum):
    """What stands in the way, in the words of the people who ask."""

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


REASONS: Final[dict[str, Waiting]] = {
    "WaitingForQueue": Waiting(
        About.CONTROLLERS,
        "The scheduler has not looked at the job yet.",
        "Nothing; it takes about a second. If it lasts, look whether the scheduler's worker runs.",
        is_passing=True,
    ),
    "ControllersBehind": Waiting(
        About.CONTROLLERS,
        "The job controller or the scheduler has not read the newest change of the job for 10 seconds, so what is said "
        "of it may be old.",
        "Look whether its worker runs and what its log says; while very much changes at once it only takes longer.",
    ),
    "QueueNotFound": Waiting(
        About.REFERENCE,
        "The job names a queue that does not exist.",
        "Create the queue, or submit the job with another one.",
    ),
    "Reserved": Waiting(
        About.OTHERS,
        "The job has waited long behind smaller ones, so room is kept for it on some nodes until what runs there has ended.",
        "Nothing; it starts as soon as it fits, there or elsewhere. End what need not run there to have it sooner, or release the room if others need it more.",
        is_passing=True,
    ),
    "QuotaExceeded": Waiting(
        About.QUOTA,
        "A quota of the namespace has no room for the job's minimum.",
        "Wait until other jobs of the namespace have ended, ask for less, or have the quota raised.",
    ),
    "PodGroupNotFound": Waiting(
        About.REFERENCE,
        "A pod names a pod group that does not exist.",
        "Create the group, or create the pod without naming one.",
    ),
    "ClaimNotBound": Waiting(
        About.REFERENCE,
        "A pod uses a volume claim that has no volume yet.",
        "See why the claim has none; a class that waits for the first pod makes none for pods of this scheduler.",
    ),
    "QueueClosed": Waiting(
        About.QUEUE,
        "Its queue is closed and takes no new work.",
        "Have the queue opened, or submit the job to another one.",
    ),
    "QueueHasChildren": Waiting(
        About.QUEUE,
        "Its queue has queues below it, so it takes no pods itself.",
        "Submit the job to one of the queues below.",
    ),
    "QueueLimit": Waiting(
        About.QUEUE,
        "What its queue uses, or has let in, leaves too little of the queue's capability.",
        "Wait for jobs of the queue, end some of them, or have its capability raised.",
        is_passing=True,
    ),
    "QueueTooSmall": Waiting(
        About.QUEUE,
        "It needs more than the capability of its queue.",
        "Ask for less, choose a larger queue, or have the capability raised.",
    ),
    "QueueOverDeserved": Waiting(
        About.QUEUE,
        "The nodes are full, and its queue would use more than it deserves, so nothing is taken back from others for it.",
        "Wait for what others leave, or have the queue's weight or deserved raised.",
        is_passing=True,
    ),
    "ParentQueueLimit": Waiting(
        About.PARENT,
        "What a queue above its own uses, or has let in, leaves too little of that queue's capability.",
        "Wait for jobs of the queues below it, or have that capability raised.",
        is_passing=True,
    ),
    "ParentQueueTooSmall": Waiting(
        About.PARENT,
        "It needs more than the capability of a queue above its own.",
        "Ask for less, choose a queue elsewhere, or have that capability raised.",
    ),
    "QueueGuarantees": Waiting(
        About.OTHERS,
        "What is left is guaranteed to other queues, and lent to nobody.",
        "Ask for less, have a guarantee lowered, or wait for jobs that use what is not guaranteed where it can start at all.",
        is_passing=True,
    ),
    "QueueOrder": Waiting(
        About.OTHERS,
        "Its queue is first in, first out, and a job before it cannot start yet.",
        "See why that job waits; a higher priority class puts a job before it.",
        is_passing=True,
    ),
    "RoomKept": Waiting(
        About.OTHERS,
        "The room that it needs is free or getting free, and kept for a job that goes first.",
        "Wait, or have the owner of the other job or an operator release its room; a higher priority class puts a job before the other one.",
        is_passing=True,
    ),
    "WaitingForVictims": Waiting(
        About.OTHERS,
        "Pods of others were asked to end, so that it can start.",
        "Nothing; it starts when they are gone.",
        is_passing=True,
    ),
    "NotAllocating": Waiting(
        About.CONTROLLERS,
        "The scheduler's configuration does not name the action allocate.",
        "Add allocate to the actions on the scheduler's page.",
    ),
    "NotEnoughTasks": Waiting(
        About.GANG, "Fewer pods exist than must start together.", "See the job's events for why its pods are not made."
    ),
    "SubGroups": Waiting(
        About.GANG,
        "Fewer sub-groups have room for all of their pods than must start with the gang.",
        "Wait for pods that end, ask for less in each pod, or lower minSubGroups or the partitions' minimum.",
        is_passing=True,
    ),
    "SchedulingGated": Waiting(
        About.GANG,
        "Scheduling gates hold back pods that must start with the others.",
        "Have whoever set the gates take them away.",
    ),
    "NotEnoughResources": Waiting(
        About.NODES,
        "Not enough is free for as many pods as must start together.",
        "Wait for pods that end, ask for less in each pod, or lower minAvailable.",
        is_passing=True,
    ),
    "NeverFits": Waiting(
        About.NODES,
        "It is more than the nodes have, were they empty.",
        "Ask for less in each pod, lower minAvailable, or add nodes.",
    ),
    "NoNodes": Waiting(About.NODES, "The cluster has no nodes.", "Start the node agent, or add nodes."),
    "NodesUnavailable": Waiting(
        About.NODES,
        "No node that it may use is ready and takes new pods.",
        "See the nodes' page for why; uncordon those that are closed to new pods.",
        is_passing=True,
    ),
    "NoMatchingNode": Waiting(
        About.NODES,
        "No node has the labels that its pods select.",
        "Correct nodeSelector or node affinity, or label a node.",
    ),
    "UntoleratedTaint": Waiting(
        About.NODES,
        "The nodes have taints that its pods do not tolerate.",
        "Add tolerations to the pods, or choose other nodes; simulated nodes are asked for by their label.",
    ),
    "NodeGroup": Waiting(
        About.NODES,
        "Its queue uses only certain groups of nodes, and none of them is ready for its pods.",
        "Choose another queue, have the queue's affinity changed, or label a node with the group.",
    ),
    "NetworkTopology": Waiting(
        About.NODES,
        "Its pods must be close together in the network, and no HyperNode of the tier that it allows has room for them.",
        "Allow a higher tier, or wait for pods that end there where it can start at all; the page Network has the sizes of HyperNodes.",
        is_passing=True,
    ),
    "NodesBusy": Waiting(
        About.NODES,
        "The nodes that it may use were busier in the last minutes than the scheduler's configuration allows.",
        "Wait, or have the thresholds of the plugin usage raised.",
        is_passing=True,
    ),
    "RevocableZone": Waiting(
        About.NODES,
        "The nodes that it may use are lent out at certain times of the day, and not now or not to such pods.",
        "Wait until the zone opens, or have the pods say that they may be ended then (volcano.sh/revocable-zone).",
        is_passing=True,
    ),
    "HostPortTaken": Waiting(
        About.RULES,
        "A port of the node that its pods ask for is in use on each node with room.",
        "Wait for that pod, or ask for another port or none.",
        is_passing=True,
    ),
    "PodAffinity": Waiting(
        About.RULES,
        "Its pods must be near others, and there is no room near any.",
        "Start the pods that it is to be near, or correct the affinity's selector.",
    ),
    "PodAntiAffinity": Waiting(
        About.RULES,
        "Its pods must be apart from others, and those are wherever there is room.",
        "Wait for them, or loosen the anti-affinity.",
        is_passing=True,
    ),
    "Repelled": Waiting(
        About.RULES,
        "Other pods keep such pods away from wherever there is room.",
        "Wait for those pods, or change the labels by which they keep it away.",
        is_passing=True,
    ),
    "TopologySpread": Waiting(
        About.RULES,
        "Its pods would be spread more unevenly than they allow.",
        "Wait for room in the other parts, or raise maxSkew.",
        is_passing=True,
    ),
    "UnknownConstraint": Waiting(
        About.RULES,
        "Its pods demand something that the scheduler does not know or cannot read.",
        "Correct the field that the sentence names.",
    ),
    "Unschedulable": Waiting(
        About.NODES,
        "The scheduler that works here says that it does not fit, and gives no reason that is known here.",
        "Read what it says below the sentence.",
    ),
    "FailedCreate": Waiting(
        About.QUOTA,
        "A quota or another bound of the namespace has no room for all pods of its minimum.",
        "Wait for pods of the namespace, ask for less, or have the quota raised.",
    ),
    "PluginBlocked": Waiting(
        About.REFERENCE,
        "An object has the name that one of its plugins needs.",
        "Delete that object, or submit the job under another name.",
    ),
    "NamesTaken": Waiting(
        About.REFERENCE,
        "A pod that is not its own has the name of one of its pods.",
        "Delete that pod, or submit the job under another name.",
    ),
    "WaitingForTasks": Waiting(
        About.DEPENDENCY,
        "Tasks wait for others that they depend on.",
        "Nothing, while those others get on; otherwise restart the job.",
        is_passing=True,
    ),
    "TaskDeadlock": Waiting(
        About.DEPENDENCY,
        "A task that must start with the others waits for one of them, so no pod of the gang can ever run.",
        "Set minAvailable, or the minimum of the task that waits, so low that the others may start without it.",
    ),
    "NoReplicas": Waiting(
        About.DEPENDENCY, "Every task has 0 replicas.", "Raise the replicas of a task, or delete the job."
    ),
    "ImageMissing": Waiting(
        About.CONTAINERS,
        "An image cannot be pulled, and is not on the node.",
        "Correct the image's name, or see what the registry says; it is tried again by itself.",
    ),
    "SecretMissing": Waiting(
        About.CONTAINERS,
        "A Secret that a container names, or a key of it, does not exist.",
        "Create the Secret; the pods start by themselves.",
    ),
    "ConfigMapMissing": Waiting(
        About.CONTAINERS,
        "A ConfigMap that a container names, or a key of it, does not exist.",
        "Create the ConfigMap; the pods start by themselves.",
    ),
    "VolumeMissing": Waiting(
        About.CONTAINERS,
        "A volume that a container mounts cannot be had on the node.",
        "See what is said of the volume; the pods start by themselves when it is there.",
    ),
    "DeviceMissing": Waiting(
        About.CONTAINERS,
        "A device that a container asks for is not there or not free on the node.",
        "See the node's page for its devices; the pods start by themselves when enough are free.",
    ),
    "ConfigurationWrong": Waiting(
        About.CONTAINERS,
        "The node cannot make a container as it is described.",
        "Correct what the sentence names in a new job.",
    ),
    "CommandNotStarted": Waiting(
        About.CONTAINERS,
        "The node cannot start the command of a container.",
        "Correct the command in a new job, or install what it needs on the node.",
    ),
    "CrashLoop": Waiting(
        About.CONTAINERS,
        "Containers end again and again, and are started again later each time.",
        "Read the logs of the pods; the restart policy Never makes a pod fail the first time.",
    ),
    "ContainersEnded": Waiting(
        About.CONTAINERS,
        "The containers of pods have ended, and have not been started again yet.",
        "Nothing; the node starts them again. If it lasts, look whether the node is ready.",
        is_passing=True,
    ),
    "ContainerWaits": Waiting(
        About.CONTAINERS, "A container waits for something that the node names.", "See its pods for why they wait."
    ),
    "TooManyPending": Waiting(
        About.GANG,
        "It ran, and fewer pods run now than must run together.",
        "See its pods for why they wait.",
        is_passing=True,
    ),
}


def rows() -> list[str]:
    """Return the list as rows of a table in Markdown, sorted by what stands in the way."""
    order = list(About)
    listed = sorted(REASONS.items(), key=lambda item: order.index(item[1].about))
    return [
        f"| {each.about} | `{reason}` | {each.means} | {each.remedy} | {'yes' if each.is_passing else 'no'} |"
        for reason, each in listed
    ]
