"""What a process knows: once it has acted on a version of a job, it never goes back to an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.invariants import Broken
from tests.simulation.processes import Worker

if TYPE_CHECKING:
    from tests.simulation.processes import Process

NAME = "knowledge never goes back"


class Memory:
    """The generations of the jobs that each process of the job controller has known.

    Source: docs of `Consumer.plan`: what was read beside the log is not replaced by what the log tells
    later of the time before. A controller that goes back makes pods of a spec that it knew to be over.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[str, int]]] = {}  # process → key of a job → uid, generation

    def forget(self, process: str) -> None:
        """A process has died."""
        self._known.pop(process, None)

    def look_into(self, process: Process, revision: int) -> None:
        """Raise Broken when a process has taken a step and knows less than before."""
        if not isinstance(process, Worker) or process.queue != "jobs":
            return
        known = self._known.setdefault(process.name, {})
        for runner in process.runners.values():
            for key, entry in runner.state.entries.items() if runner.state else ():
                job = entry.known.job
                uid, generation = known.get(key, ("", 0))
                if job.uid == uid and job.generation < generation:
                    text = (
                        f"{process.name} knew generation {generation} of it, and knows {job.generation} now"
                    )
                    raise Broken(NAME, revision, f"jobs/{key}", text)
                known[key] = job.uid, job.generation
