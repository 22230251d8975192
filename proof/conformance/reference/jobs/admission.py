"""What is filled in and what is refused (reference: volcano-job §7)."""

from __future__ import annotations

from proof.conformance.items import differs, not_done, section

SECTIONS = (
    section(
        "7.1",
        "Defaults and bounds of the schema",
        {
            "queue": "`default`",
            "maxRetry": "3",
            "networkTopology.mode": "`hard`",
            "partitionPolicy.minPartitions": "0",
            "words": "The words that Volcano's own tests look for",
        },
    ),
    section(
        "7.2",
        "What is filled in when a job is created",
        {
            "1": "No queue: `default`",
            "2": "No scheduler: `volcano`",
            "3": "`maxRetry` 0: 3",
            "4": "A task without a name: `default<number>`",
            "5": "The network of the host and no `dnsPolicy`: `ClusterFirstWithHostNet`",
            "6": "A task without a minimum: that of its partitions, or all its pods",
            "7": "`maxRetry` 0 of a task: 3",
            "8": "`minAvailable` 0: the sum of the tasks' minimums",
            "9": "tensorflow, mpi, pytorch or ray without svc: svc as well",
            "10": "mpi without ssh: ssh as well",
        },
    ),
    section(
        "7.3",
        "What is refused when a job is created",
        {
            "all at once": "Messages come together",
            "1": "No task",
            "2": "mpi without its master task",
            "3": "Two tiers of the job's network topology",
            "4": "A task's minimum above its replicas",
            "5": "Two tasks of one name",
            "6": "Policies of a task: see 7.3 policies",
            "7": differs("A pod's name that is too long, by the task's index", "Length of pod names"),
            "8": "A template that Kubernetes would refuse",
            "9": "`topologyPolicy` without whole CPUs",
            "10": "Partitions that do not add up",
            "11": "A job's name that is none",
            "12": "A minimum above all replicas",
            "13": "Policies of the job: see 7.3 policies",
            "14": "A plugin that there is not",
            "15": "A volume without a path, twice at one path, with both claims, with a name that is none",
            "15 no claim": differs("Neither claim", "Volume without a claim, or naming one that does not exist"),
            "16": "A queue that there is not",
            "17": "A queue that is not Open",
            "18": "The queue `root`",
            "19": "A queue with children",
            "20": "Dependencies in a circle, on unknown tasks, or twice on one",
        },
    ),
    section(
        "7.3 policies",
        "What is refused in a list of policies",
        {
            "event and exit code": "Both in one policy",
            "neither": "None of the two",
            "event": "An event that is none, or internal",
            "action": "An action that is none, or internal",
            "event twice": "One event in two policies; twice in one is fine",
            "exit code 0": "Exit code 0",
            "exit code twice": "One exit code in two policies",
            "star alone": "`*` beside other events; exit codes may stand beside it",
        },
    ),
    section(
        "7.4",
        "What is refused when a job changes",
        {
            "1": "Replicas and minimums of tasks out of bounds",
            "2": "`minAvailable` out of bounds",
            "3": "Two tiers of the network topology; as it may not change, only as a change",
            "4": "Tasks that are added or removed",
            "5": "Anything else that may not change",
            "not checked": "The queue is not looked at again",
        },
    ),
    section(
        "7.5",
        "Policies in CEL in place of the webhooks",
        {
            "subset": not_done(
                "The chart may install a weaker set of rules",
                "Admission is built in and cannot be replaced by less of it",
            )
        },
    ),
)
