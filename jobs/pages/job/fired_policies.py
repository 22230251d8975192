"""What a job's policies did, as rows: equal firings in a run are one row, with their number and pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.pages.job import chapters
from jobs.pages.job.chapters import Chapter
from jobs.pages.job.timeline import Mark
from jobs.rules import words
from kube.kinds.batch import Action, JobPhase

MAX_PODS = 3  # that a row names
_PARTS = {
    Action.RESTART_POD: "the pod was restarted",
    Action.RESTART_TASK: "the task's pods were restarted",
    Action.RESTART_PARTITION: "the partition's pods were restarted",
}
# What an action led to, by the end of its run; it did not lead to any other end.
_ENDS: dict[tuple[str, str], str] = {
    (Action.ABORT_JOB, JobPhase.ABORTING): "the job was suspended",
    (Action.ABORT_JOB, JobPhase.ABORTED): "the job was suspended",
    (Action.COMPLETE_JOB, JobPhase.COMPLETING): "the job was completed",
    (Action.COMPLETE_JOB, JobPhase.COMPLETED): "the job was completed",
    (Action.TERMINATE_JOB, JobPhase.TERMINATING): "the job was terminated",
    (Action.TERMINATE_JOB, JobPhase.TERMINATED): "the job was terminated",
    (Action.RESTART_JOB, JobPhase.FAILED): "the job failed",
}


@dataclass(frozen=True, slots=True)
class Row:
    """Firings in one run that are equal but for their pods. `at` is the last one's time in ms, `times` their number."""

    run: int
    at: int
    times: int
    event: str
    exit_code: int | None
    what: str
    pods: tuple[str, ...]
    action: str
    delay: str
    led_to: str  # the effect on the job or a part of it; "" while that is not known

    @property
    def named(self) -> tuple[str, ...]:
        return self.pods[:MAX_PODS]

    @property
    def more(self) -> int:
        return len(self.pods) - len(self.named)

    @property
    def event_text(self) -> str:
        """What happened, as a clause."""
        return words.event(self.event)

    @property
    def then(self) -> str:
        """The policy's action, as an instruction."""
        return words.action(self.action)


def rows(marks: Iterable[Mark], runs: Sequence[Chapter]) -> list[Row]:
    """Return what policies did to a job, from its marks, oldest first."""
    groups: dict[tuple[object, ...], list[tuple[Mark, PolicyFiring]]] = {}
    for mark in marks:
        firing = mark.firing
        if firing is not None:
            what = "" if firing.pod else firing.what
            index = chapters.index_at(runs, mark.at)
            key = (index, firing.event, firing.exit_code, what, firing.action, firing.delay_ms)
            groups.setdefault(key, []).append((mark, firing))
    made = []
    for own in groups.values():
        last, firing = own[-1]
        index = chapters.index_at(runs, last.at)
        run = runs[index]
        if firing.action in _PARTS:
            led_to = "" if firing.delay else _PARTS[firing.action]
        elif firing.action == Action.RESTART_JOB and run.phase == JobPhase.RESTARTING and index + 1 < len(runs):
            led_to = f"run {runs[index + 1].number} began"
        else:
            led_to = _ENDS.get((firing.action, run.phase), "")
        row = Row(
            run=run.number,
            at=max(each.at for each, _ in own),
            times=sum(each.times for each, _ in own),
            event=firing.event,
            exit_code=firing.exit_code,
            what=firing.what,
            pods=tuple(dict.fromkeys(each.pod for _, each in own if each.pod)),
            action=firing.action,
            delay=firing.delay,
            led_to=led_to,
        )
        made.append(row)
    return sorted(made, key=lambda row: row.at)
