"""Deletion, time to live and Commands (reference: volcano-job §6)."""

from __future__ import annotations

from proof.conformance.items import differs, not_done, section

SECTIONS = (
    section(
        "6.1",
        "Deletion",
        {
            "owners": "No finalizer; what was made for the job goes with it",
            "while it is deleted": "The controller does nothing more",
        },
    ),
    section(
        "6.2",
        "Time to live",
        {
            "which": "Completed, Failed and Terminated jobs, not Aborted ones",
            "since": "The last transition",
            "0": "Deleted at once",
            "how": "In the foreground, and only that very job",
        },
    ),
    section(
        "6.3",
        "Commands",
        {
            "vcctl's": "Named `<job>-<action>-…`, owned by the job, with the job as target",
            "suspend, resume": "AbortJob, ResumeJob",
            "other targets": "Are left to others",
            "taken": differs("Deleted first, then carried out", "A Command and its effect"),
            "target": differs("Whoever has the name", "Command to a job of the same name, made since"),
            "action": differs("Any text", "Command of an unknown action"),
        },
    ),
    section(
        "6.4",
        "Options of the process",
        {
            "options": not_done(
                "Worker threads, requeues, scheduler names, controllers by name, feature gates",
                "Settings of another process; what is set here stands in docs/settings.md",
            )
        },
    ),
)
