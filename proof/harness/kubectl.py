"""kubectl as a person at a terminal uses it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proof.harness.waiting import HANG_S

WAIT = f"--timeout={HANG_S:.0f}s"  # of `kubectl wait` and its kin


def find() -> str | None:
    """Return the path of a kubectl, None when there is none."""
    given = os.environ.get("KUBECTL") or shutil.which("kubectl")
    return given if given and Path(given).exists() else None


class Kubectl:
    """`kubectl("get", "pods")` returns what it prints; `.fails(...)` what it complains of."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self.program = program
        self.environment = environment

    def run(self, *arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl; return how it ended, and what it printed."""
        return subprocess.run(
            [self.program, *map(str, arguments)],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=2 * HANG_S,
            check=False,
        )

    def __call__(self, *arguments: object, stdin: str | None = None) -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stderr}{done.stdout}"
        return done.stdout

    def fails(self, *arguments: object, stdin: str | None = None) -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(map(str, arguments))} was expected to fail: {done.stdout}"
        return done.stderr

    @contextlib.contextmanager
    def lines(self, *arguments: object, **options: Any) -> Iterator[Iterator[str]]:
        """Run kubectl beside the test; the lines of its output, as they come."""
        command = [self.program, *map(str, arguments)]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True, **options) as running:
            assert running.stdout is not None
            try:
                yield iter(running.stdout.readline, "")
            finally:
                running.terminate()
