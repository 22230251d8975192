"""Events, actions, how one leads to the other, and what people are told (reference: volcano-job §3)."""

from __future__ import annotations

from proof.conformance.items import differs, section

SECTIONS = (
    section(
        "3.1",
        "Events",
        {
            "*": "All that may be answered, and nothing internal",
            "PodFailed": "A pod failed",
            "PodEvicted": "Somebody else deleted a pod",
            "PodPending": differs("A pod is Pending; answered only after a `timeout`", "PodPending"),
            "Unknown": differs("The pod group became Unknown", "Unknown"),
            "TaskCompleted": "As many pods of a task as it has replicas succeeded",
            "TaskFailed": differs("Containers of a task were started again as often as its `maxRetry`", "TaskFailed"),
            "JobUpdated": "May be written, and never happens",
            "PodRunning": "Internal; refused in policies",
            "OutOfSync": "Internal; refused in policies",
            "CommandIssued": "Internal; refused in policies",
        },
    ),
    section(
        "3.2",
        "Actions",
        {
            "AbortJob": "Stops all; may be resumed",
            "RestartJob": "Starts everything again",
            "RestartTask": "Starts all pods of the task again",
            "RestartPod": "Starts the pod again",
            "RestartPartition": "Starts the pods of the partition again",
            "TerminateJob": "Stops all for good",
            "CompleteJob": "Stops all; the job is complete",
            "ResumeJob": "Runs an aborted job again; may stand in a policy, where it does nothing",
            "SyncJob": "Internal; refused in policies",
            "EnqueueJob": "As SyncJob; refused in policies",
            "SyncQueue, OpenQueue, CloseQueue": "Are of queues: refused in policies, and nothing to a job",
        },
    ),
    section(
        "3.3",
        "From what changes to events",
        {
            "job": "A new job, another spec or another phase: the job is looked at",
            "job deleted": "What was known of it is forgotten",
            "pods of others": "Pods that no job of this kind controls are passed over",
            "pod added": differs("PodPending, whatever its phase", "PodPending"),
            "pod marked": "What the controller ends itself is no event",
            "pod failed": differs(
                "PodFailed, with the exit code of the first container", "Exit codes of a pod with several containers"
            ),
            "pod succeeded": "TaskCompleted with the last one of its task",
            "pod runs": "PodRunning, which no policy answers",
            "pod restarted": "TaskFailed when the restarts of the task's living pods reach `maxRetry`; 0 is 3, -1 is never",
            "pod deleted": "PodEvicted, also of a pod that had ended",
            "group Unknown": "Unknown, without a task",
            "group otherwise": "The job is looked at",
        },
    ),
    section(
        "3.4",
        "Which action follows",
        {
            "1": differs("A Command's action is taken as it is", "Command of an unknown action"),
            "2": "What is internal is a sync",
            "3": "Of an earlier job of the name: nothing",
            "4": "Of pods of an earlier run: nothing",
            "5": "The policies of the task in their order",
            "5a": "By event, or `*`; PodPending only with a `timeout`",
            "5b": "By exit code",
            "6": "Then those of the job; the task's do not switch them off",
            "7": "None: nothing but a sync",
            "target": "A restart of a part is about the task, the pod, or the partition of the pod",
            "no target": "An event or Command without a task ends no pod, but restarts the job",
        },
    ),
    section(
        "3.5",
        "Actions that wait",
        {
            "place": "One place for each pod: the same action keeps its time",
            "another action": differs(
                "Takes the place, and the first goes on as well", "Another delayed action for the same pod"
            ),
            "meanwhile": differs("Nothing else is done", "An event whose action is delayed"),
            "told": "An event says which action follows, and after what time",
            "due": differs("Carried out on the job as it is then, beside its queue", "Delayed actions"),
            "runs again": "What waits since the pod failed or was evicted is called off when it runs",
            "not pending": "What waits since the pod is Pending is called off when it is not",
            "carried out": "What else waits for the same part is called off",
            "partition": differs("By its number alone", "Delayed restarts of partitions"),
            "not called off": "By the completion or failure of a task",
            "job deleted": differs("Survives the job", "Delayed actions"),
        },
    ),
    section(
        "3.6",
        "Errors",
        {
            "tried again": "What could not be written is tried again, later each time",
            "given up": differs("After 15 tries the job is terminated", "Writes that fail"),
        },
    ),
    section(
        "3.7",
        "What people are told",
        {
            "ExecuteAction": "Which action is carried out, or will be",
            "CommandIssued": differs("A Command was taken", "Event of a Command"),
            "PluginError": "A plugin cannot make what it wants",
            "PVCError": differs("A claim is missing", "Volume without a claim, or naming one that does not exist"),
            "PodGroupError, JobStatusError, FailedDelete": differs("A write failed", "Writes that fail"),
            "PodGroupPending": "The pod group is not placed, and why",
            "FailedCreate": "Pods may not be made, and why",
            "SuccessfulCreate, SuccessfulDelete": differs("Are not told", "Events"),
        },
    ),
)
