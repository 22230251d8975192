"""Reading attempts from disk, for a killed agent's successor, and after a shim has ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

from node.attempt import NEVER_RAN, Attempt, AttemptState, Run, unknown
from node.paths import Layout
from node.shim import tree
from node.shim.path_walk import NEW_FILE
from node.shim.shim import read_json, write_json
from node.shim_claims import shim_of

MARK = "VOLCANO_CONTAINER_ID"  # a variable that identifies a container's processes
RETAINED = 3  # attempts whose files stay; kubelets retain two


class StoredAttempt(NamedTuple):
    """An attempt on disk, and its shim's process id while that lives."""

    attempt: Attempt
    shim: int = 0


def read(directory: Path, now_us: int) -> StoredAttempt | None:
    """Return the attempt in directory; None when nothing was started, so that it may be.

    An attempt whose shim is gone without a status is written down as unknown, so
    that every later reader finds the same.
    """
    number = int(directory.name)
    shim = shim_of(directory)
    if shim is None:
        return None
    alive = shim > 0
    # Read after looking for the shim: a status written in between is seen.
    outcome = read_json(f"{directory}/status.json")
    if outcome:
        return StoredAttempt(_ended(number, outcome))
    started = read_json(f"{directory}/started.json")
    streak, started_us = int(started.get("streak", 0)), int(started.get("startedAt", 0))
    engine_id, image_id = str(started.get("container", "")), str(started.get("image", ""))
    if alive:
        state = AttemptState.RUNNING if started else AttemptState.ORDERED
        current = Attempt(number, state, streak, started_us, engine_id=engine_id, image_id=image_id)
        return StoredAttempt(current, shim)
    stopped = str(read_json(f"{directory}/stop.json").get("reason", ""))
    attempt = unknown(number, streak, started_us, now_us)
    attempt = attempt._replace(stopped=stopped, engine_id=engine_id, image_id=image_id)
    _write_down(directory, attempt)
    return StoredAttempt(attempt)


def root_of(directory: Path) -> int | None:
    """Return the first process of an attempt's container that an engine has, 0 where none has, None when it has not begun."""
    started = read_json(f"{directory}/started.json")
    return int(started.get("root", 0)) if started else None


def _ended(number: int, outcome: dict[str, object]) -> Attempt:
    def number_of(name: str) -> int:
        value = outcome.get(name, 0)
        return value if isinstance(value, int) else 0

    return Attempt(
        number,
        AttemptState.ENDED,
        number_of("streak"),
        number_of("startedAt"),
        number_of("finishedAt"),
        number_of("exitCode"),
        number_of("signal"),
        str(outcome.get("reason", "")),
        str(outcome.get("message", "")),
        str(outcome.get("stopped", "")),
        str(outcome.get("hook", "")),
        engine_id=str(outcome.get("container", "")),
        image_id=str(outcome.get("image", "")),
    )


def _write_down(directory: Path, attempt: Attempt) -> None:
    outcome = {
        "exitCode": attempt.exit_code,
        "signal": attempt.signal,
        "reason": attempt.reason,
        "message": attempt.message,
        "stopped": attempt.stopped,
        "startedAt": attempt.started_us,
        "finishedAt": attempt.finished_us,
        "streak": attempt.streak,
        "container": attempt.engine_id,
        "image": attempt.image_id,
    }
    write_json(f"{directory}/status.json", outcome)


def numbers(directory: Path) -> list[int]:
    """Return the numbers of a container's attempts, in order."""
    try:
        return sorted(int(entry.name) for entry in directory.iterdir() if entry.name.isdecimal())
    except FileNotFoundError:
        return []


def run_of(directory: Path, now_us: int) -> tuple[Run, int]:
    """Return the latest two attempts of a container, and the living shim of the latest."""
    stored = [attempt for number in numbers(directory)[-3:] if (attempt := read(directory / str(number), now_us))]
    if not stored:
        return NEVER_RAN, 0
    last = stored[-2].attempt if len(stored) > 1 else None
    return Run(stored[-1].attempt, last), stored[-1].shim


def withdraw(directory: Path) -> None:
    """Take back the order of a container's latest attempt if no shim has claimed it yet.

    The order may be on its way to a shim, and the agent that gave it dead. Its
    successor has nothing to stop, so the shim must find that it is too
    late: the claim is for one only, and an empty one is the agent's.
    """
    for number in numbers(directory)[-1:]:
        attempt = directory / str(number)
        try:
            os.close(os.open(attempt / "claim", NEW_FILE, 0o600))
        except OSError:
            if shim_of(attempt) is not None or not (attempt / "claim").exists():
                return  # a shim was faster; or the disk is full
        shutil.rmtree(attempt, ignore_errors=True)


def containers(layout: Layout, uid: str) -> list[str]:
    """Return the containers of a pod that have files."""
    try:
        return [one.name for one in layout.pod(uid).iterdir() if "_" not in one.name and one.is_dir()]
    except FileNotFoundError:
        return []


def kill_leftovers(container_ids: set[str]) -> int:
    """Kill the processes of containers whose shim was killed; return how many there were.

    The command itself dies with its shim. What it had forked is found by the
    variable that all of a container's processes inherit.
    """
    pids = tree.with_variable({f"{MARK}={id_}".encode() for id_ in container_ids})
    for pid in pids:
        tree.send(pid, signal.SIGKILL)
    return len(pids)


def write_identity(path: Path, identity: dict[str, str]) -> None:
    """Write whose directory this is, for people and for logs of pods that are gone."""
    try:
        fd = os.open(path, NEW_FILE, 0o644)
    except FileExistsError:
        return
    with os.fdopen(fd, "w") as file:
        file.write(json.dumps(identity))
