"""What a process knows: once it has acted on a version of a job, it never goes back to an older one."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from proof.invariants import Broken
from proof.invariants.views import Thing
from proof.simulation.parts.processes import Process, Worker

NAME = "knowledge never goes back"


class Memory:
    """The versions of the jobs that each process of the job controller has known.

    Source: docs of `Consumer.plan`: what was read beside the log is not replaced by what the log tells
    later of the time before. A controller that goes back makes pods of a spec that it knew to be over.
    """

    def __init__(self) -> None:
        self._versions: dict[str, dict[str, _JobVersion]] = {}  # process → key of a job → what it knew last

    def forget(self, process: str) -> None:
        """A process has died."""
        self._versions.pop(process, None)

    def look_into(self, process: Process, revision: int) -> None:
        """Raise Broken when a process has taken a step and knows less than before."""
        if not isinstance(process, Worker) or process.queue != "jobs":
            return
        versions = self._versions.setdefault(process.name, {})
        for runner in process.runners.values():
            for key, entry in runner.state.entries.items() if runner.state else ():
                before, body = versions.get(key), entry.observed.job.body
                if before is not None and before.body is body:
                    continue
                now = versions[key] = _JobVersion(body, *_identity(body))
                if before is not None and before.uid == now.uid and now.version < before.version:
                    text = f"{process.name} goes back from version {before.version} to {now.version}"
                    raise Broken(NAME, revision, f"jobs.batch.volcano.sh/{key}", text)


class _JobVersion(NamedTuple):
    """A version of a job, as it was stored."""

    body: bytes
    uid: str
    version: int


def _identity(body: bytes) -> tuple[str, int]:
    metadata = _decode(body).metadata
    return metadata.uid, int(metadata.resource_version)


_decode = msgspec.json.Decoder(Thing).decode
