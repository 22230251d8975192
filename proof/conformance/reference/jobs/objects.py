"""What is made for a job: pods, claims and the pod group (reference: volcano-job §4)."""

from __future__ import annotations

from proof.conformance.items import differs, not_done, section

SECTIONS = (
    section(
        "4.1",
        "Pods",
        {
            "owner": "The job controls them, and blocks its own deletion until they are gone",
            "name": "`<job>-<task>-<index>`, in the job's namespace",
            "template": "Labels, annotations and spec are the template's",
            "schedulerName": "The template's, or else the job's",
            "priorityClassName": "The template's, or else the job's",
            "hostname, subdomain": "As written; the plugin svc fills them in",
            "volumes": "Each volume of the job is mounted in every container, not in init containers",
            "one claim twice": differs("The second mount is dropped", "Two volumes with one claim"),
            "plugins": differs("In random order", "Order of plugins"),
            **{
                f"annotation {name}": title
                for name, title in {
                    "volcano.sh/task-index": "The index",
                    "volcano.sh/task-spec": "The task",
                    "scheduling.k8s.io/group-name": "The pod group",
                    "volcano.sh/job-name": "The job",
                    "volcano.sh/queue-name": "The queue",
                    "volcano.sh/job-version": "The run",
                    "volcano.sh/template-uid": "`<job>-<task>`",
                    "volcano.sh/job-retry-count": "The retries so far",
                    "volcano.sh/numa-topology-policy": "The task's `topologyPolicy`, if it has one",
                    "volcano.sh/preemptable": "The job's",
                    "volcano.sh/cooldown-time": "The job's",
                    "volcano.sh/revocable-zone": "The job's",
                    "volcano.sh/jdb-min-available": "The job's; `volcano.sh/jdb-max-unavailable` only without it",
                    "volcano.sh/controller-out-of-sync": "Set before the controller deletes the pod",
                }.items()
            },
            "annotation volcano.sh/job-forwarding": not_done(
                "Whether the queue reaches other clusters", "There is no federation here; see 2.4/3"
            ),
            **{
                f"label {name}": title
                for name, title in {
                    "volcano.sh/task-index": "The index",
                    "volcano.sh/job-name": "The job",
                    "volcano.sh/task-spec": "The task",
                    "volcano.sh/job-namespace": "The namespace",
                    "volcano.sh/queue-name": "The queue",
                    "volcano.sh/preemptable": "The job's label",
                    "volcano.sh/cooldown-time": "The job's label",
                    "volcano.sh/partition-id": "The partition, where the task has some",
                }.items()
            },
            "over the template's": "These annotations and labels go over those of the template",
        },
    ),
    section(
        "4.2",
        "Tasks that wait for others",
        {
            "any": "With `any` and two names or more, one ready task is enough",
            "all": "Otherwise all must be ready",
            "ready": "A task is ready when as many of its pods as its minimum succeeded, or run with every container ready",
            "pod group": "Asks for all its members all the while",
        },
    ),
    section(
        "4.3",
        "Claims",
        {
            "made": "From `volumeClaim`, owned by the job; the name is stored in the job",
            "name": differs("`<job>-pvc-` and 12 random characters", "Name of a claim that a volume describes"),
            "named": differs("Must exist", "Volume without a claim, or naming one that does not exist"),
            "noted": "In `controlledResources`, both kinds",
            "restart": "Survive restarts, and go with the job",
        },
    ),
    section(
        "4.4",
        "Pod group",
        {
            "name": "`<job>-<uid of the job>`",
            "name of old": not_done(
                "One that has the job's bare name is taken as well",
                "Earlier versions of Volcano made such groups, and nothing of theirs is taken over",
            ),
            "labels, annotations": "The job's, when it is made",
            "minMember": "The job's `minAvailable`; follows it",
            "minTaskMember": "The minimum of each task; follows it",
            "minResources": "See 4.5; follows the job",
            "queue": "The job's",
            "priorityClassName": "The job's; follows it",
            "networkTopology": "The job's: mode, and the tier by number or else by name",
            "subGroupPolicy": "One for each task with partitions: size, minimum, labels, topology; follows the job",
            "made": "Before any pod; each full kill deletes it",
        },
    ),
    section(
        "4.5",
        "Resources of the minimum",
        {
            "pod": "What a quota charges for a pod, and extended resources by their plain names too",
            "order": "Tasks of higher priority first",
            "below the tasks' minimums": "All pods of the first task, then of the next, until there are enough",
            "otherwise": "Each task's minimum, then the rest in the same order",
            "examples": "The worked examples of the reference",
            "e2e": "The amounts that Volcano's own test expects",
        },
    ),
)
