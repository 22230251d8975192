"""What `kubectl explain` says of the fields of Volcano's kinds: one sentence or two for each.

Keys are the struct's name and the field's JSON name. The meanings are those of
docs/differences.md and of Volcano's own documentation, where they agree.
"""

from __future__ import annotations

from cluster.apiserver.openapi import facts

# Fields that mean the same in every kind.
COMMON = {
    "metadata": "Standard metadata of an object: name, namespace, labels, annotations, owners.",
    "spec": "What is wished.",
    "status": "What is the case; written by the controllers.",
}

FIELDS = {
    # Job
    "Job.spec": "What is wished of the job: its tasks, queue and policies.",
    "Job.status": "How far the job has come; written by the job controller.",
    "JobSpec.schedulerName": "The scheduler of the job's pods, unless their template names another. Default: volcano.",
    "JobSpec.minAvailable": "How many pods must be able to run at the same time before any of them is started, and below "
    "which the job is not running. Default: the sum of the tasks' minAvailable.",
    "JobSpec.volumes": "Volumes that all pods of the job see.",
    "JobSpec.tasks": "The tasks of the job: each is a number of pods made from one template.",
    "JobSpec.policies": "What to do when something happens to the job. A task's own policies come first.",
    "JobSpec.plugins": "Plugins by name, each with its arguments: svc (host names), ssh (keys), env (the index of a pod), "
    "and pytorch, tensorflow, mpi, ray for those frameworks.",
    "JobSpec.runningEstimate": "How long the job will run, as a duration such as 1h30m. The scheduler uses it to let short "
    "jobs use what is reserved for a waiting one.",
    "JobSpec.queue": "The queue whose share of the cluster the job uses. Default: default.",
    "JobSpec.maxRetry": "How often the job is restarted before it fails. Default: 3.",
    "JobSpec.ttlSecondsAfterFinished": "After how many seconds a finished job is deleted with its pods; 0 means at once, "
    "absent means never.",
    "JobSpec.priorityClassName": "The priority class of the job, and of its pods unless their template names another.",
    "JobSpec.minSuccess": "How many pods must succeed for the job to be completed before all pods have ended.",
    "JobSpec.networkTopology": "How close together in the network the job's pods must be.",
    "TaskSpec.name": "The name of the task, part of its pods' names. Default: default with the task's number.",
    "TaskSpec.replicas": "How many pods the task has.",
    "TaskSpec.minAvailable": "How many pods of the task must be able to run for the job to run. Default: replicas.",
    "TaskSpec.template": "What the pods of the task look like.",
    "TaskSpec.policies": "What to do when something happens to a pod of this task; these go before the job's policies.",
    "TaskSpec.topologyPolicy": "How the CPUs and memory of a pod must lie on the NUMA nodes of a machine.",
    "TaskSpec.maxRetry": "After how many restarts of a pod the event TaskFailed happens. Default: 3.",
    "TaskSpec.dependsOn": "Tasks that must be ready before pods of this task are made.",
    "TaskSpec.partitionPolicy": "How the pods of the task form smaller gangs that are scheduled together.",
    "LifecyclePolicy.action": "What to do: AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, "
    "CompleteJob or ResumeJob.",
    "LifecyclePolicy.event": "On which event to do it. Only one of event, events and exitCode is given.",
    "LifecyclePolicy.events": "On which events to do it, each of them; * is any event.",
    "LifecyclePolicy.exitCode": "On which exit code of a container to do it; not 0.",
    "LifecyclePolicy.timeout": "How long to wait between the event and the action, as a duration such as 5m.",
    "VolumeSpec.mountPath": "Where the containers see the volume; without a colon.",
    "VolumeSpec.volumeClaimName": "The name of the claim. Of one that exists, or written here once volumeClaim was made.",
    "VolumeSpec.volumeClaim": "The claim to make for the job. Without it and without a name each pod gets an empty directory.",
    "DependsOn.name": "The names of the tasks to wait for.",
    "DependsOn.iteration": "Whether one of the tasks (any) or each of them (all) must be ready. Default: all.",
    "PartitionPolicy.totalPartitions": "How many partitions the task has; times partitionSize it is replicas.",
    "PartitionPolicy.partitionSize": "How many pods a partition has.",
    "PartitionPolicy.minPartitions": "How many partitions must be able to run for the job to run.",
    "PartitionPolicy.networkTopology": "How close together in the network the pods of a partition must be.",
    "JobState.phase": "The phase of the job.",
    "JobState.reason": "Why it is in this phase, in one word.",
    "JobState.message": "Why it is in this phase, and what a person can do about it.",
    "JobState.lastTransitionTime": "Since when it is in this phase.",
    "JobCondition.status": "A phase that the job was in.",
    "JobCondition.lastTransitionTime": "When it last came to this phase.",
    "TaskState.phase": "How many pods of the task are in which phase, by the name of the phase.",
    "JobStatus.state": "The phase of the job, why, and since when.",
    "JobStatus.minAvailable": "The minAvailable that the status goes by.",
    "JobStatus.taskStatusCount": "How many pods of each task are in which phase, by the name of the task.",
    "JobStatus.pending": "How many pods wait for a node or for their containers to start.",
    "JobStatus.running": "How many pods run.",
    "JobStatus.succeeded": "How many pods ended with exit code 0.",
    "JobStatus.failed": "How many pods failed.",
    "JobStatus.terminating": "How many pods are being stopped.",
    "JobStatus.unknown": "How many pods are in an unknown state, because their node does not answer.",
    "JobStatus.version": "How often all pods of the job were stopped together. Pods carry it, so that late news of old pods is "
    "not taken for news of the new ones.",
    "JobStatus.retryCount": "How often the job was restarted.",
    "JobStatus.runningDuration": "How long the job ran, as a duration.",
    "JobStatus.controlledResources": "What was made for the job beside its pods: plugins and claims by name.",
    "JobStatus.conditions": "The phases that the job went through, the latest last.",
    # Command
    "Command.action": "What to do: AbortJob, RestartJob, ResumeJob, TerminateJob and the like for a job; OpenQueue or "
    "CloseQueue for a queue.",
    "Command.target": "The job or queue that is meant.",
    "Command.reason": "Why, in one word.",
    "Command.message": "Why, for people.",
    # Queue
    "Queue.spec": "What is wished of the queue: its weight, limits and place among the queues.",
    "Queue.status": "What the queue holds; written by the queue controller and the scheduler.",
    "QueueSpec.weight": "The share of the cluster in proportion to the weights of the other queues. Default: 1.",
    "QueueSpec.capability": "What the queue may use at most, by resource. A resource that is not named has no limit.",
    "QueueSpec.deserved": "What the queue is entitled to, by resource. What it uses beyond can be reclaimed by others.",
    "QueueSpec.guarantee": "What is kept for the queue and never lent to others.",
    "QueueSpec.reclaimable": "Whether other queues may take back what this queue uses beyond its share. Default: true.",
    "QueueSpec.parent": "The queue of which this one is a part. Default: root.",
    "QueueSpec.state": "The wish that the queue be Open or Closed. A queue that is closed takes no new jobs; those in it run "
    "to their end.",
    "QueueSpec.affinity": "Groups of nodes that the queue's pods use or avoid.",
    "QueueSpec.type": "A word for people and tools; nothing depends on it.",
    "QueueSpec.extendClusters": "Other clusters that jobs of the queue may be sent to.",
    "QueueSpec.priority": "Queues of higher priority are served first and give back last. Default: 0.",
    "QueueSpec.dequeueStrategy": "What happens when the first job of the queue does not fit: fifo waits for it, traverse tries "
    "the next. Default: traverse.",
    "Guarantee.resource": "The amounts that are kept, by resource.",
    "QueueAffinity.nodeGroupAffinity": "Groups of nodes to use.",
    "QueueAffinity.nodeGroupAntiAffinity": "Groups of nodes to avoid.",
    "NodeGroups.requiredDuringSchedulingIgnoredDuringExecution": "Names of node groups without which nothing is scheduled. A "
    "node is in the group that its label volcano.sh/nodegroup-name names.",
    "NodeGroups.preferredDuringSchedulingIgnoredDuringExecution": "Names of node groups that are tried first.",
    "ExtendCluster.name": "The name of the cluster.",
    "ExtendCluster.weight": "Its share of the jobs.",
    "ExtendCluster.capacity": "What it can hold, by resource.",
    "QueueStatus.state": "Whether the queue is Open, Closing (jobs are left in it) or Closed.",
    "QueueStatus.reason": "Why it is in this state, in one word.",
    "QueueStatus.message": "Why it is in this state, for people.",
    "QueueStatus.allocated": "What the queue's pods use, by resource, those of the queues below it included.",
    "QueueStatus.reservation": "Nodes and amounts that are reserved for the queue; kept for older clients.",
    "QueueStatus.pending": "How many pod groups wait.",
    "QueueStatus.running": "How many pod groups run.",
    "QueueStatus.unknown": "How many pod groups are in an unknown state.",
    "QueueStatus.inqueue": "How many pod groups were let in and wait for nodes.",
    "QueueStatus.completed": "How many pod groups have ended.",
    # PodGroup
    "PodGroup.spec": "How many pods must start together, and with what.",
    "PodGroup.status": "How far the group has come; written by the scheduler.",
    "PodGroupSpec.minMember": "How many pods must be able to start together; below that none is started.",
    "PodGroupSpec.minTaskMember": "How many pods of each task must be able to start, by the name of the task.",
    "PodGroupSpec.queue": "The queue whose share of the cluster the group uses. Default: default.",
    "PodGroupSpec.priorityClassName": "The priority class of the group.",
    "PodGroupSpec.minResources": "What must be free before the group is let in, by resource.",
    "PodGroupSpec.networkTopology": "How close together in the network the group's pods must be.",
    "PodGroupSpec.subGroupPolicy": "How the pods of the group form smaller gangs.",
    "SubGroupPolicy.name": "The name of the policy.",
    "SubGroupPolicy.labelSelector": "Which pods of the group it is for.",
    "SubGroupPolicy.matchLabelKeys": "Labels by whose values the pods fall into sub-groups.",
    "SubGroupPolicy.subGroupSize": "How many pods a sub-group has, which start together. Default: 1.",
    "SubGroupPolicy.minSubGroups": "How many sub-groups must be able to start.",
    "SubGroupPolicy.networkTopology": "How close together in the network the pods of a sub-group must be.",
    "PodGroupStatus.phase": "Where the group is: Pending, Inqueue, Running, Unknown or Completed.",
    "PodGroupStatus.conditions": "What the scheduler says of the group, such as why it is not scheduled.",
    "PodGroupStatus.running": "How many pods of the group run.",
    "PodGroupStatus.succeeded": "How many pods of the group succeeded.",
    "PodGroupStatus.failed": "How many pods of the group failed.",
    # NetworkTopology
    "NetworkTopology.mode": "Whether the topology must be kept (hard) or is a preference (soft). Default: hard.",
    "NetworkTopology.highestTierAllowed": "The highest tier of the network that the pods may span; lower is closer.",
    "NetworkTopology.highestTierName": "The same by the tier's name; only one of the two is given.",
    # Condition
    "Condition.type": "What the condition is about, such as Scheduled.",
    "Condition.status": "Whether it is so: True, False or Unknown.",
    "Condition.reason": "Why, in one word.",
    "Condition.message": "Why, for people.",
    "Condition.lastTransitionTime": "When status last changed.",
    "Condition.lastUpdateTime": "When the condition was last written.",
    "Condition.lastProbeTime": "When it was last looked at.",
    "Condition.lastHeartbeatTime": "When it was last confirmed.",
    "Condition.transitionID": "The scheduling cycle that last changed it.",
    "Condition.observedGeneration": "The generation of the object that it is about.",
}

# Older spellings that admission accepts, by struct: the seeds' and the coscheduling proposal's.
ALIASES = {
    "JobSpec": {"taskSpecs": "tasks"},
    "PodGroupSpec": {"minMembers": "minMember", "numMember": "minMember", "totalResources": "minResources"},
}

# Fields that the structs pass through, and which definition describes them.
REFERENCES = {
    "SubGroupPolicy.labelSelector": f"{facts.META}.LabelSelector",
}
