"""How each of several clusters is: a file that its processes write every few seconds, for the pages of all.

There is nothing in it but what anybody who is logged in may know.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from cluster.remote.freshness import State

EVERY_S = 2.0
SILENT_MS = 10_000


class Report(msgspec.Struct, frozen=True):
    """The state of a cluster, since when (epoch ms, 0 for now), and why; in which way it is worked on.

    way is one of `entries.WAYS` or "embedded". at is when this was written, epoch ms.
    """

    word: State
    way: str = ""
    since: int = 0
    why: str = ""
    at: int = 0


def folder(state: Path) -> Path:
    """Return where the reports lie; state is the directory of all clusters."""
    return state / "clusters" / "reports"


def judge(report: Report | None, now: int) -> Report:
    """Return what a report means now: a cluster that says nothing any more has no processes here."""
    if report is None:
        return Report(State.STOPPED, why="nothing of it runs here yet")
    if now - report.at > SILENT_MS:
        return Report(State.STOPPED, report.way, report.at, "nothing of it runs here")
    return report


def write(folder: Path, name: str, report: Report) -> None:
    """Leave the report of a cluster for others to read, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f"{name}.{os.getpid()}"
    draft.write_bytes(msgspec.json.encode(report))
    draft.rename(folder / f"{name}.json")


def read(folder: Path, name: str) -> Report | None:
    """Return what a cluster reported last, None when it never did."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / f"{name}.json").read_bytes(), type=Report)
    return None


def forget(folder: Path, name: str) -> None:
    """Forget what a cluster reported: its processes are about to start."""
    (folder / f"{name}.json").unlink(missing_ok=True)
