"""The appearance of every phase and state: one icon and one colour for each word.

The words are Kubernetes' and Volcano's own. A word means the same wherever it
appears, so one table serves jobs, pods, pod groups, queues, nodes and the
outcomes of the audit log.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Appearance(NamedTuple):
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

LOOKS: Final[dict[str, Appearance]] = {
    "Pending": Appearance("hourglass", "amber", "Waits to be scheduled or started"),
    "Inqueue": Appearance("list-start", "yellow", "Admitted to its queue; pods may be created"),
    "Running": Appearance("play", "blue", "Runs"),
    "Restarting": Appearance("rotate-cw", "violet", "Old pods are released, then new ones start"),
    "Restarted": Appearance("rotate-cw", "violet", "Its pods were ended; another run began"),
    "Completing": Appearance("loader", "teal", "Enough tasks have finished; the rest is cleaned up"),
    "Completed": Appearance("circle-check", "green", "Every task finished successfully"),
    "Succeeded": Appearance("circle-check", "green", "Finished successfully"),
    "Aborting": Appearance("circle-pause", "orange", "Is being suspended; pods are released"),
    "Aborted": Appearance("pause", "brown", "Suspended; it can be resumed"),
    "Terminating": Appearance("log-out", "pink", "Is being ended; pods are released"),
    "Terminated": Appearance("square", "plum", "Ended before its time, for example by an event"),
    "Failed": Appearance("circle-x", "red", "Failed"),
    "Deleted": Appearance("trash-2", "grey", "Was deleted; its record is kept for a while"),
    "Stopped": Appearance("square", "grey", "Was asked to end, or removed, before it had ended"),
    "Unknown": Appearance("circle-help", "grey", "Its state is not known at present"),
    "Succeed": Appearance("circle-check", "green", "All jobs have completed"),
    "Waiting": Appearance("circle-dashed", "grey", "Not created yet: it waits for other jobs of its flow"),
    "Scheduled": Appearance("calendar-clock", "green", "Creates jobs by its schedule"),
    "Suspended": Appearance("pause", "brown", "Creates no jobs until it is resumed"),
    "Open": Appearance("door-open", "green", "Takes new jobs"),
    "Closing": Appearance("door-closed", "amber", "Takes no new jobs; what is in it still runs"),
    "Closed": Appearance("lock", "grey", "Takes no new jobs and is empty"),
    "Ready": Appearance("circle-check", "green", "Takes pods"),
    "NotReady": Appearance("unplug", "red", "Does not answer or cannot take pods"),
    "Unschedulable": Appearance("ban", "amber", "Takes no new pods"),
    "Normal": Appearance("info", "grey", "For information"),
    "Warning": Appearance("triangle-alert", "amber", "Something needs a look"),
    "Not begun": Appearance("circle-dashed", "grey", "Its turn has not come"),
    "Asked": Appearance("loader", "blue", "Was accepted; its outcome is not seen yet"),
    "Done": Appearance("circle-check", "green", "The job shows that it was done"),
    "Skipped": Appearance("skip-forward", "grey", "Does not apply to the job as it is"),
    "Refused": Appearance("ban", "red", "A right or a rule is against it"),
    "Gone": Appearance("trash-2", "grey", "The job was deleted before"),
    "Timed out": Appearance("clock", "amber", "Was accepted, and has had no effect in 30 s"),
    "Not asked": Appearance("circle-stop", "grey", "Was not asked, because the operation was stopped"),
    "Waits": Appearance("hourglass", "amber", "Was not placed, for the reason beside it"),
    "Let in": Appearance("list-start", "yellow", "Was let into its queue after it had waited"),
    "Bound": Appearance("check", "green", "Pods got nodes"),
    "Taken back": Appearance("undo-2", "orange", "Pods of half a gang lost their nodes"),
    "Evicted": Appearance("log-out", "pink", "Pods were asked to end, so that others get their room"),
    "done": Appearance("check", "green", "Was done"),
    "denied": Appearance("ban", "red", "Was denied: the right to do it is missing"),
    "refused": Appearance("circle-alert", "amber", "Was refused because of a rule or a mistake"),
}
UNKNOWN: Final = Appearance("circle-help", "grey", "A phase that this page does not know")


def appearance(word: str) -> Appearance:
    """Return how a phase or state is shown; an unknown word is grey, and not an error."""
    return LOOKS.get(word, UNKNOWN)
