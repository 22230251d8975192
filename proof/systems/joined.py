"""A second machine of a running system: an agent of its own, with a directory of its own, that comes over the API."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

from cluster.store import Store
from kube.errors import NotFound
from kube.kinds.core import Node
from kube.resources import NODES
from node import leftovers
from node.paths import Layout
from node.shim import tree
from proof.harness.waiting import HANG_S, until
from proof.systems.system import PROJECT, System
from volcano_ui.supervision import supervisor


def manage(system: System, *words: str) -> str:
    """Run a command on the server's machine; return what it prints."""
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=PROJECT, env=system.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Machine:
    """A machine that joins a system by the command that this gives for it."""

    def __init__(self, system: System, data: str | Path, name: str) -> None:
        self.system, self.data, self.name = system, Path(data), name
        self.file = self.data.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None

    def invited(self, *options: str) -> list[str]:
        """Return the words to type, as `manage.py jointoken` prints them."""
        return shlex.split(manage(self.system, "jointoken", "--server", self.system.api, *options))[2:]

    def start(self, *words: str) -> Self:
        """Run the agent with these words behind `manage.py`; without any as it is started again."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("VOLCANO_UI_", "DJANGO_"))}
        with self.file.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", *(words or ("agent",))],
                cwd=PROJECT,
                env={
                    **environment,
                    "VOLCANO_UI_DATA": str(self.data),
                    "VOLCANO_UI_NODE_NAME": self.name,
                    "VOLCANO_UI_ENGINE": "none",
                    "VOLCANO_UI_HOST_PATHS": tempfile.gettempdir(),  # by which tests and pods meet
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                # A test run that is killed leaves nothing behind.
                preexec_fn=supervisor.die_with(os.getpid()),
            )
        return self

    def join(self) -> Self:
        """Join, and wait until the node is ready."""
        self.start(*self.invited())
        return self.ready()

    def ready(self) -> Self:
        """Wait until the node is ready and its agent says so."""
        with self.system.store() as store:
            until(lambda: _is_ready(store, self.name) and "agent ready" in self.output(), what=self.output)
        return self

    def output(self) -> str:
        """Return what the agent has printed."""
        return self.file.read_text() if self.file.exists() else ""

    @property
    def agent(self) -> subprocess.Popen[bytes]:
        """The agent's process, which was started."""
        assert self.process is not None, "it was not started"
        return self.process

    def kill(self) -> None:
        """Kill the agent, as nothing can that asks first; pods go on."""
        self.agent.kill()
        self.agent.wait()

    def ended(self) -> int:
        """Wait for the agent's end; return its exit code."""
        return self.agent.wait(HANG_S)

    def shims(self) -> dict[int, str]:
        """Return the ids of the processes that watch over containers, with the uids of their pods."""
        return leftovers.shims(Layout(self.data))

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(HANG_S)
        for pid in self.shims():
            for each in (*tree.below(pid), pid):
                with contextlib.suppress(OSError):
                    tree.send(each, signal.SIGKILL)


def _is_ready(store: Store, name: str) -> bool:
    try:
        node = store.get(NODES, "", name).read(Node)
    except NotFound:
        return False
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
