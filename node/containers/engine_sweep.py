"""Removing containers that nobody watches over: their shim was killed, and an engine's containers do not end with it."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from node import shim_claims
from node.containers.engines import Engine, environment
from node.containers.image_containers import LABEL
from node.containers.image_orders import node_id
from node.faults import Faults
from node.paths import Layout
from node.shim.contained import NOTE, VARIABLES, problem
from node.shim.shim import read_json

TRIES = 20
RETRY_S = 0.5
log = logging.getLogger(__name__)


class EngineSweep:
    """What shims that were killed left to an engine; it works in threads of its own."""

    def __init__(self, layout: Layout, engine: Engine | None) -> None:
        self._layout = layout
        self._engine = engine
        self._sweeping = threading.Lock()
        self._faults = Faults("removing containers that nobody watches over", log)

    def start(self) -> None:
        """Remove all containers of this state directory whose shim does not live."""
        if self._engine is not None:
            self._in_background(self._all, self._engine.program)

    def remove(self, directory: Path) -> None:
        """Remove the container of an attempt, if it had one, by whichever engine it was made, and what was written for that."""
        (directory / VARIABLES).unlink(missing_ok=True)
        note = read_json(str(directory / NOTE))
        if note:
            self._in_background(_remove, [str(word) for word in note["engine"]], str(note["name"]))

    def _in_background(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=self._guard, args=(work, *arguments), name="sweep", daemon=True).start()

    def _guard(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except Exception as error:
            # Whatever an engine answers: what is left is looked for again.
            self._faults.note(error)

    def _all(self, engine: Sequence[str]) -> None:
        if not self._sweeping.acquire(blocking=False):
            return  # the one before still waits for the engine
        try:
            label = f"label={LABEL}={node_id(str(self._layout.root.parent))}"
            listing = _run(engine, "ps", "--all", "--filter", label, "--format", "{{.Names}}")
            for name in listing.stdout.split():
                inspected = _run(engine, "container", "inspect", "--format", "{{json .Config.Labels}}", name)
                if inspected.returncode:
                    continue
                labels = json.loads(inspected.stdout)
                try:
                    uid, container = labels["io.kubernetes.pod.uid"], labels["io.kubernetes.container.name"]
                    directory = self._layout.attempt(uid, container, int(name.rpartition("-")[2]))
                except (KeyError, ValueError):  # gone meanwhile, or not ours
                    continue
                if not shim_claims.shim_of(directory):
                    log.info("removing container %s, which nobody watches over", name)
                    _remove(engine, name)
        finally:
            self._sweeping.release()


def _remove(engine: Sequence[str], name: str) -> None:
    """Remove a container; tried again where the engine is still about to note its end."""
    for _ in range(TRIES):
        _run(engine, "kill", "--signal", "KILL", name)
        removed = _run(engine, "rm", "--force", "--volumes", name)
        if removed.returncode == 0:
            return
        time.sleep(RETRY_S)
    log.warning("container %s is left: %s", name, problem(removed.stderr))


def _run(engine: Sequence[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*engine, *words], capture_output=True, env=environment(), check=False, text=True)  # noqa: S603 - the engine that was found
