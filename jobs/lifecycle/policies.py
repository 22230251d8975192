"""Which action answers what happened to a job (reference: volcano-job §3.4).

A policy answers events or one exit code with an action, at once or after a while. The policies of the task that
something happened to are asked first, in their order, then those of the job: so a task's policies do not switch the
job's off, event by event.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from kube.kinds.batch import Action, JobEvent

# What `*` stands for, and all that a policy may answer (reference: volcano-job §3.1).
ANSWERED = frozenset(
    {
        JobEvent.POD_FAILED,
        JobEvent.POD_EVICTED,
        JobEvent.POD_PENDING,
        JobEvent.UNKNOWN,
        JobEvent.TASK_COMPLETED,
        JobEvent.TASK_FAILED,
    }
)


class Policy(Struct, frozen=True):
    """One answer: `events` is empty where `exit_code` is what it answers."""

    action: Action
    events: frozenset[JobEvent] = frozenset()
    exit_code: int | None = None
    delay_ms: int = 0

    @property
    def answers(self) -> frozenset[JobEvent]:
        """The events that can lead to the action.

        A pod that is Pending at once is nothing: PodPending is answered only after a while.
        """
        if self.exit_code is not None:
            return frozenset({JobEvent.POD_FAILED})
        answered = ANSWERED if JobEvent.ANY in self.events else self.events & ANSWERED
        return answered if self.delay_ms else answered - {JobEvent.POD_PENDING}

    def fits(self, event: JobEvent, exit_codes: Collection[int]) -> bool:
        """Say whether the policy answers an event, with the exit codes of the pod that it happened to.

        Any container's code counts, those of init containers too, as for Kubernetes' podFailurePolicy.
        """
        return event in self.answers and (self.exit_code is None or self.exit_code in exit_codes)


def choose(
    of_task: Sequence[Policy], of_job: Sequence[Policy], event: JobEvent, exit_codes: Collection[int] = ()
) -> Policy | None:
    """Return the policy that answers an event, None where nothing does."""
    return next((policy for policy in (*of_task, *of_job) if policy.fits(event, exit_codes)), None)
