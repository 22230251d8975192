"""The fields of a job: what they mean, their defaults and bounds, and which may change (reference: volcano-job §1)."""

from __future__ import annotations

from proof.conformance.items import differs, section

SECTIONS = (
    section(
        "1.1",
        "Fields of JobSpec",
        {
            "schedulerName": "The scheduler of the pods whose template names none; `volcano` where it is left out, 63 characters at most",
            "minAvailable": "How many pods must be placed together; where it is left out or 0, the sum of the tasks' minimums",
            "minAvailable bounds": "`minAvailable` is not negative and at most the number of pods",
            "volumes": "Volumes that every pod gets",
            "tasks": "The kinds of pods; at least one",
            "policies": "What answers events where no policy of the task does",
            "plugins": "Plugins by name, each with its arguments; only known names",
            "runningEstimate": differs(
                "How long the job is expected to run: a duration, kept and read by nothing",
                "`runningEstimate` of a job",
            ),
            "queue": "The queue; `default` where it is left out. A name as of a DNS subdomain",
            "maxRetry": "How often the job may restart; 3 where it is left out or 0, never negative",
            "ttlSecondsAfterFinished": "After how many seconds a finished job is deleted; never where it is left out. Not negative",
            "priorityClassName": "The priority class of the pod group, and of the pods whose template names none. A name as of a DNS subdomain",
            "minSuccess": "How many pods must succeed for the job to be complete; at least 1",
            "networkTopology": "How far apart in the network the pods may be: `hard` (the default) or `soft`, up to a tier by number or by name",
        },
    ),
    section(
        "1.2",
        "Fields of TaskSpec",
        {
            "name": "The name of the task; `default0`, `default1` … where it is left out. A DNS label",
            "replicas": "How many pods; 0 where it is left out, never negative",
            "minAvailable": "How many of them the job needs; where it is left out those of `minPartitions`, or else all. Not negative, at most `replicas`",
            "template": "What its pods are made from; the name in it counts for nothing, labels and annotations are kept",
            "policies": "What answers events of its pods before the job's policies are asked",
            "topologyPolicy": "One of `none`, `best-effort`, `restricted`, `single-numa-node`, told to the scheduler by an annotation",
            "maxRetry": "After how many restarts of its containers the task counts as failed; 3 where it is left out or 0, no limit of its own",
            "dependsOn.name": "The tasks that must be ready before its pods are made",
            "dependsOn.iteration": "`any`: one of the named tasks is enough; anything else: all of them",
            "partitionPolicy.totalPartitions": "How many partitions its pods form; required, at least 1",
            "partitionPolicy.partitionSize": "Pods of a partition; required, at least 1",
            "partitionPolicy.minPartitions": "How many partitions the job needs; 0 where it is left out, never negative",
            "partitionPolicy.networkTopology": "As of the job, for the pods of a partition",
        },
    ),
    section(
        "1.3",
        "Fields of LifecyclePolicy",
        {
            "action": "What is done",
            "event": "The event that it answers, one of those that there are",
            "events": "Further events; `event` is one of them",
            "exitCode": "The exit code that it answers: not 0, and not beside events",
            "timeout": "How long the action waits; at once where it is left out or 0",
        },
    ),
    section(
        "1.4",
        "Fields of VolumeSpec",
        {
            "mountPath": "Where containers see the volume; required, without a colon, once in a job",
            "volumeClaimName": "A claim that exists, or the name of the one that was made; a name as of a DNS subdomain",
            "volumeClaim": "A claim that is made for the job; its name is written into `volumeClaimName`",
            "a claim": differs(
                "One of the two is required", "Volume without a claim, or naming one that does not exist"
            ),
        },
    ),
    section(
        "1.5",
        "Fields of JobStatus",
        {
            "state.phase": "Where the job is in its life",
            "state.reason, state.message": differs("Declared, and never written", "`state.reason` and `state.message`"),
            "state.lastTransitionTime": differs(
                "Changes with each write of a sync", "`lastTransitionTime` and conditions"
            ),
            "minAvailable": "What `spec.minAvailable` is, from the first status on",
            "taskStatusCount": "Pods that nobody ends by task and phase",
            "taskStatusCount after a kill": differs("Empty", "Counters of a finished job"),
            "pending, running, succeeded, failed, unknown": "Pods that nobody ends by phase",
            "terminating": "Pods that are being ended",
            "version": "How often all pods were ended",
            "retryCount": "How often the job, or a part of it, was restarted",
            "runningDuration": "How long the job took from its creation until its pods were ended; gone when it runs again",
            "controlledResources": "The plugins at work but hcclrank, and the claims: `plugin-svc`, `volume-pvc-data`",
            "conditions": "Each phase that the job was in, with its time; the latest is the last",
        },
    ),
    section(
        "1.6",
        "What may change after creation",
        {
            "spec.minAvailable": "Within its bounds",
            "spec.priorityClassName": "May change",
            "spec.tasks[].replicas": "Within its bounds, partitions included",
            "spec.tasks[].minAvailable": "Within its bounds, partitions included",
            "spec.volumes[].volumeClaimName": "Only where the volume describes its claim",
            "metadata": "Labels and annotations; pods and pod group that exist keep theirs",
            "everything else": "May not change",
            "number of tasks": "May not change",
            "defaults": differs("Are not filled in again", "Defaults of a job that changes"),
            "minAvailable 0": "A minimum that is lowered to 0 stays 0",
        },
    ),
)
