"""What the kinds are called, and what the design of 2018 asked for (reference: volcano-job §0, §9.1)."""

from __future__ import annotations

from proof.conformance.items import differs, section

NAMES = (
    section(
        "0",
        "Kinds",
        {
            "Job": "`jobs` of `batch.volcano.sh/v1alpha1`, short `vcjob` and `vj`, in namespaces, with a status of its own",
            "Command": "`commands` of `bus.volcano.sh/v1alpha1`, in namespaces, without a status",
            "columns": "STATUS, minAvailable, RUNNINGS, AGE, and QUEUE where all are asked for",
        },
    ),
)
SEED = (
    section(
        "9.1",
        "The design of 2018, where it is not what Volcano does today",
        {
            "1": differs("`taskSpecs` is an unknown field", "Spellings of the 2018 design"),
            "2": differs("`claim` of a volume is an unknown field", "Spellings of the 2018 design"),
            "3": differs(
                "A volume without a claim is refused", "Volume without a claim, or naming one that does not exist"
            ),
            "19": "`VK_TASK_INDEX` and `VC_TASK_INDEX` are both set",
            "24": "Tasks of higher priority come first into the minimum",
            "25": differs("`priorityClass` in a pod template is an unknown field", "Spellings of the 2018 design"),
            "29": differs("Reason and message are not filled", "`state.reason` and `state.message`"),
            "examples": "The jobs that the design prints are accepted as printed",
        },
    ),
)
