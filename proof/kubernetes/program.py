"""One program of a cluster: started with a log file, ended with the test however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from proof.harness.waiting import HANG_S
from volcano_ui.supervision import supervisor


class Program:
    """A command that runs until it is stopped, and can be started again."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.folder = folder
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        assert self.process is None or self.process.poll() is not None, f"{self.name} runs already"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A test run that is killed leaves nothing behind.
                preexec_fn=supervisor.die_with(os.getpid()),
            )

    def check(self) -> None:
        """Fail with the end of its log unless it runs."""
        assert self.process is not None, f"{self.name} was not started"
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}:\n{self.tail()}"

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; one that does not go is killed."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.name} did not stop:\n{self.tail()}") from None

    def tail(self) -> str:
        """Return the last lines of its log."""
        return "\n".join(line[:300] for line in self.log.read_text(errors="replace").splitlines()[-15:])
