"""How every phase and state is shown: one icon and one colour for each word.

The words are Kubernetes' and Volcano's own. A word means the same wherever it
appears, so one table serves jobs, pods, pod groups, queues, nodes and the
outcomes of the audit log.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Look(NamedTuple):
    """The icon's name in the sprite, the hue of tokens.css, and a short explanation."""

    icon: str
    hue: str
    meaning: str


JOB_PHASES: Final = (
    "Pending",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Aborting",
    "Aborted",
    "Terminating",
    "Terminated",
    "Failed",
)
JOB_OUTCOMES: Final = (*JOB_PHASES, "Deleted")
POD_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
QUEUE_STATES: Final = ("Open", "Closing", "Closed", "Unknown")
FLOW_PHASES: Final = ("Pending", "Running", "Succeed", "Failed", "Terminating")
CRON_STATES: Final = ("Scheduled", "Suspended")
NODE_STATES: Final = ("Ready", "NotReady", "Unknown")
EVENT_TYPES: Final = ("Normal", "Warning")
OUTCOMES: Final = ("done", "denied", "refused")

LOOKS: Final[dict[str, Look]] = {
    "Pending": Look("hourglass", "amber", "Waits to be scheduled or started"),
    "Inqueue": Look("list-start", "yellow", "Admitted to its queue; pods may be created"),
    "Running": Look("play", "blue", "Runs"),
    "Restarting": Look("rotate-cw", "violet", "Old pods are released, then new ones start"),
    "Restarted": Look("rotate-cw", "violet", "Its pods were ended; another run began"),
    "Completing": Look("loader", "teal", "Enough tasks have finished; the rest is cleaned up"),
    "Completed": Look("circle-check", "green", "Every task finished successfully"),
    "Succeeded": Look("circle-check", "green", "Finished successfully"),
    "Aborting": Look("circle-pause", "orange", "Is being suspended; pods are released"),
    "Aborted": Look("pause", "brown", "Suspended; it can be resumed"),
    "Terminating": Look("log-out", "pink", "Is being ended; pods are released"),
    "Terminated": Look("square", "plum", "Ended before its time, for example by an event"),
    "Failed": Look("circle-x", "red", "Failed"),
    "Deleted": Look("trash-2", "grey", "Was deleted; what is known of it is kept for a while"),
    "Stopped": Look("square", "grey", "Was asked to end, or removed, before it had ended"),
    "Unknown": Look("circle-help", "grey", "Nothing is known at present"),
    "Succeed": Look("circle-check", "green", "All jobs have completed"),
    "Waiting": Look("circle-dashed", "grey", "Not made yet: it waits for other jobs of its flow"),
    "Scheduled": Look("calendar-clock", "green", "Makes jobs at its times"),
    "Suspended": Look("pause", "brown", "Makes no jobs until it is resumed"),
    "Open": Look("door-open", "green", "Takes new jobs"),
    "Closing": Look("door-closed", "amber", "Takes no new jobs; what is in it still runs"),
    "Closed": Look("lock", "grey", "Takes no new jobs and is empty"),
    "Ready": Look("circle-check", "green", "Takes pods"),
    "NotReady": Look("unplug", "red", "Does not answer or cannot take pods"),
    "Unschedulable": Look("ban", "amber", "Takes no new pods"),
    "Normal": Look("info", "grey", "For information"),
    "Warning": Look("triangle-alert", "amber", "Something needs a look"),
    "Not begun": Look("circle-dashed", "grey", "Its turn has not come"),
    "Asked": Look("loader", "blue", "Was accepted; its outcome is not seen yet"),
    "Done": Look("circle-check", "green", "The job shows that it was done"),
    "Skipped": Look("skip-forward", "grey", "Does not apply to the job as it is"),
    "Refused": Look("ban", "red", "A right or a rule is against it"),
    "Gone": Look("trash-2", "grey", "The job was deleted before"),
    "Timed out": Look("clock", "amber", "Was accepted, and has had no effect in 30 s"),
    "Not asked": Look("circle-stop", "grey", "Was not asked, because the operation was stopped"),
    "Waits": Look("hourglass", "amber", "Was not placed, for the reason beside it"),
    "Let in": Look("list-start", "yellow", "Was let into its queue after it had waited"),
    "Bound": Look("check", "green", "Pods got nodes"),
    "Taken back": Look("undo-2", "orange", "Pods of half a gang lost their nodes"),
    "Evicted": Look("log-out", "pink", "Pods were asked to end, so that others get their room"),
    "done": Look("check", "green", "Was done"),
    "denied": Look("ban", "red", "Was denied for want of a right"),
    "refused": Look("circle-alert", "amber", "Was refused because of a rule or a mistake"),
}
UNHEARD_OF: Final = Look("circle-help", "grey", "A phase that this page does not know")


def look(word: str) -> Look:
    """Return how a phase or state is shown; an unheard-of word is grey, never an error."""
    return LOOKS.get(word, UNHEARD_OF)
