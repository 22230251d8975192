"""The phases of a job, and what each action does in each of them (reference: volcano-job §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proof.conformance.items import Item, differs, not_done, section

ACTIONS = (
    "SyncJob",
    "EnqueueJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
_SYNC = "Brings pods in line with the spec, then decides by the rules of {}"
_TARGET = "Ends the pods it is about, whatever their phase; the group stays. Restarting, one retry more"
_ALIVE = {
    "SyncJob": _SYNC,
    "EnqueueJob": _SYNC,
    "RestartJob": "Ends every pod. Restarting, one retry more",
    "RestartTask": _TARGET,
    "RestartPod": _TARGET,
    "RestartPartition": _TARGET,
    "AbortJob": "Ends the pods that have not ended. Aborting",
    "TerminateJob": "Ends the pods that have not ended. Terminating",
    "CompleteJob": "Ends the pods that have not ended. Completing",
    "ResumeJob": _SYNC,
}
_ANEW = "Ends every pod once more, without a retry, then decides by the rules of {}"
_RESTARTING = {
    **dict.fromkeys(ACTIONS, _ANEW),
    "SyncJob": _SYNC,
    "EnqueueJob": _SYNC,
    **dict.fromkeys(
        ("RestartTask", "RestartPod", "RestartPartition"),
        "Ends the pods it is about, without a further retry, then decides by the rules of {}",
    ),
}
_ENDING = dict.fromkeys(ACTIONS, "Ends the pods that have not ended; {} until there are none")
_OVER = dict.fromkeys(ACTIONS, "Ends the pods that have not ended; stays {}")
_RESUMED = {"ResumeJob": differs("Restarting, one retry more", "Resuming a job")}
_ROWS: dict[str, Mapping[str, str | Item]] = {
    "Pending": _ALIVE,
    "Running": _ALIVE,
    "Restarting": _RESTARTING,
    "Aborting": {**_ENDING, **_RESUMED},
    "Aborted": {**_OVER, **_RESUMED},
    "Completing": _ENDING,
    "Completed": _OVER,
    "Terminating": _ENDING,
    "Terminated": _OVER,
    "Failed": _OVER,
}


def _cells() -> Iterator[tuple[str, str | Item]]:
    for phase, row in _ROWS.items():
        for action, cell in row.items():
            yield f"{phase}×{action}", cell.format(phase) if isinstance(cell, str) else cell


SECTIONS = (
    section(
        "2.1",
        "Building blocks",
        {
            "unknown phase": "A job without a phase, or with one that is none, is Pending",
            "one job, one worker": "What happens to one job is handled in one place, in order",
            "older version": "An older version of a job is not taken over a newer one",
            "leftover pods": "Pods of an earlier job of the name are not the job's",
        },
    ),
    section(
        "2.2",
        "Ending all pods",
        {
            "1": "A job that is being deleted is left alone",
            "2": "`version` grows",
            "3": "Pods that are being ended already are counted; those that ended stay where the action says so",
            "3 last retry": "With the last retry, pods that ended stay for their logs",
            "4": "Pods that the controller ends are marked first",
            "5": "They are deleted, and count as terminating",
            "6": differs("A failure is an event, and the request is tried again", "Writes that fail"),
            "7": differs("Counters are zero but `terminating`", "Counters of a finished job"),
            "8": "Then the phase is decided; with a new one come its time and its condition",
            "9": "`runningDuration` is written",
            "10": "What plugins made is deleted",
            "12": "The pod group is deleted, claims are not",
        },
    ),
    section(
        "2.3",
        "Ending some pods",
        {
            "pods": "Only those of the task, the pod or the partition, whatever their phase",
            "version": "Does not grow",
            "pod group": "Stays",
            "plugins": differs(
                "What they made is deleted", "Objects of plugins when a pod, task or partition is restarted"
            ),
            "no such partition": "Changes nothing",
            "no such task or pod": "Restarts the job without ending a pod",
        },
    ),
    section(
        "2.4",
        "Sync",
        {
            "1": "A job that is being deleted is left alone",
            "2": differs("The queue must exist", "A queue that is gone"),
            "3": not_done(
                "Jobs of a queue with `extendClusters` are marked as forwarded",
                "It tells other clusters of a federation which jobs to take, and there is no federation here",
            ),
            "4a": "The first status: Pending, with its time, minimum and condition",
            "4b-d": "Then what plugins want, claims and the pod group",
            "4 later": "A pod group that is gone is made again in any phase in which pods run",
            "5": "Pods are made only when the scheduler has let the pod group in",
            "6": differs("Otherwise nothing is counted", "Counters while the pod group waits"),
            "7 absent": "A missing pod is made",
            "7 terminating": "One that is being deleted holds its name until it is gone",
            "7 surplus": "Those beyond the replicas are deleted, highest index first",
            "7 ended": "One that ended is not made again",
            "8 dependsOn": "A task that waits for others makes no pods; it is no error",
            "8 errors": differs("A pod that cannot be made is an event, and all is tried again", "Writes that fail"),
            "9": differs("Surplus pods are deleted without a mark", "Scale-down"),
            "10": "A status that says nothing new is not written",
        },
    ),
    section(
        "2.5",
        "Which phase follows",
        {
            "Pending": "Running when as many pods as the minimum have started",
            "Pending, minAvailable 0": "Running at once, also before the pod group is let in",
            "Running 1": "No replicas: stays",
            "Running 2": "`minSuccess` pods succeeded: Completed",
            "Running 3": "All ended, and a task has fewer successes than its minimum: Failed, unless the job asks for less than the tasks together",
            "Running 4": "All ended, fewer than `minSuccess` succeeded: Failed",
            "Running 5": "All ended, `minAvailable` succeeded: Completed",
            "Running 6": "All ended otherwise: Failed",
            "Running 7": "More pending than the job can do without: Pending",
            "Running 8": "Otherwise: stays",
            "Restarting, no retries": "Failed when the retries are used up: the third restart of three",
            "Restarting": "Pending when enough pods are gone for the minimum to start",
            "Aborting": "Aborted when no pod is left to end",
            "Completing": "Completed when no pod is left to end",
            "Terminating": "Terminated when no pod is left to end",
        },
    ),
    section(
        "2.6",
        "What an action does in a phase",
        {
            **dict(_cells()),
            "any×unknown action": differs("As the last column of Volcano's table", "Command of an unknown action"),
        },
    ),
    section(
        "2.7",
        "Transitions",
        {
            "only these": "No other transitions than those of §2.5 and §2.6 are made",
            "finished": "Nothing leaves Completed, Failed and Terminated",
            "gave up": differs("Terminating, after errors without end", "Writes that fail"),
        },
    ),
    section(
        "2.8",
        "Walk-throughs",
        {
            "normal life": "Pending, pods when the group is let in, Running, Completed",
            "restart": "All pods end, a new pod group, Pending, Running",
            "restart of a pod": "One pod ends and is made again",
            "suspend and resume": "Aborting, Aborted, Restarting, Pending, Running",
            "scale": "Pods, pod group and host lists follow the replicas",
            "scale to 0": "Stays Running",
        },
    ),
    section(
        "2.9",
        "Metrics",
        {
            name: not_done(
                title,
                "`/metrics` tells of the API server; the workers in which controllers run are not asked by anybody",
            )
            for name, title in {
                "volcano_job_completed_phase_count": "How often a job was completed",
                "volcano_job_failed_phase_count": "How often a job failed",
                "volcano_controller_job_to_pod_creation_latency_milliseconds": "Time from a job to its pods",
            }.items()
        },
    ),
)
