"""Which action answers an event of a job (reference: volcano-job §3.4).

A policy answers events or one exit code with an action, at once or after a delay. The policies of the event's task are
tried first, in their order, then those of the job: so a task's policies only override the job's for the events that they
answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from kube.kinds.batch import Action, JobEvent

# The events that `*` stands for, and the only ones that a policy may answer (reference: volcano-job §3.1).
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
    """One policy: it answers `events`, or `exit_code` if that is not None."""

    action: Action
    events: frozenset[JobEvent] = frozenset()
    exit_code: int | None = None
    delay_ms: int = 0

    @property
    def answers(self) -> frozenset[JobEvent]:
        """The events that can lead to the action.

        PodPending is only answered with a delay, since every pod is Pending at first.
        """
        if self.exit_code is not None:
            return frozenset({JobEvent.POD_FAILED})
        answered = ANSWERED if JobEvent.ANY in self.events else self.events & ANSWERED
        return answered if self.delay_ms else answered - {JobEvent.POD_PENDING}

    def fits(self, event: JobEvent, exit_codes: Collection[int]) -> bool:
        """Tell whether the policy answers an event of a pod with these exit codes.

        The exit code of any container counts, also of an init container, as for Kubernetes' podFailurePolicy.
        """
        return event in self.answers and (self.exit_code is None or self.exit_code in exit_codes)


def choose(
    of_task: Sequence[Policy], of_job: Sequence[Policy], event: JobEvent, exit_codes: Collection[int] = ()
) -> Policy | None:
    """Return the first policy that answers an event, the task's before the job's; None if none does."""
    return next((policy for policy in (*of_task, *of_job) if policy.fits(event, exit_codes)), None)
