"""Odd behaviour of Volcano, each either copied or put right (reference: volcano-job §10)."""

from __future__ import annotations

from proof.conformance.items import differs, section

SECTIONS = (
    section(
        "10",
        "Oddities",
        {
            "Q-1": differs("A finished job has no counters", "Counters of a finished job"),
            "Q-2": differs("Pods that run count as Pending when the controller starts", "PodPending"),
            "Q-3": differs("Scaling down evicts", "Scale-down"),
            "Q-4": differs("Unknown is answered in the first run only", "Unknown"),
            "Q-5": differs(
                "Restarts of parts delete what plugins made",
                "Objects of plugins when a pod, task or partition is restarted",
            ),
            "Q-6": "Restarts of parts use up the job's retries",
            "Q-7": differs("Resuming uses up a retry", "Resuming a job"),
            "Q-8": differs("A missing claim, queue or plugin ends the job after a while", "Writes that fail"),
            "Q-9": differs(
                "The time of the last transition is that of the last write", "`lastTransitionTime` and conditions"
            ),
            "Q-10": "`version` grows; by how much says nothing",
            "Q-11": differs("Actions that wait survive their job", "Delayed actions"),
            "Q-12": differs("While an action waits nothing else is done", "An event whose action is delayed"),
            "Q-13": "A job that restarts, completes or terminates heeds no Command but ends its pods once more",
            "Q-14": differs(
                "A job may be over before its policy is asked", "A policy and what would come of the event by itself"
            ),
            "Q-15": differs("The length of pod names is checked by the task's index", "Length of pod names"),
            "Q-16": differs("Actions of exit codes are not checked", "Exit-code policy without a valid action"),
            "Q-17": differs(
                "Only the first container's exit code counts; a pod that had succeeded may be evicted",
                "Exit codes of a pod with several containers",
            ),
            "Q-18": "A pod that fails and is then deleted has done both; each is answered",
            "Q-19": differs("A job without retries makes pods before it fails", "A job whose retries are used up"),
            "Q-20": differs("While the pod group waits nothing is counted", "Counters while the pod group waits"),
            "Q-21": differs("Plugins work in random order", "Order of plugins"),
            "Q-22": differs("A resumed job keeps the pods that had ended", "Resuming a job"),
            "Q-23": differs("Of two volumes with one claim the second is dropped", "Two volumes with one claim"),
        },
    ),
)
