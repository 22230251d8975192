"""Running the simulation's programs as a person does: each in a process of its own, with a hash seed of its own."""

from __future__ import annotations

import subprocess
import sys


def run(module: str, *options: object, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run `python -m module` with these options and this input, and return what came of it."""
    command = [sys.executable, "-m", module, *map(str, options)]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)


def play(*options: object, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run `python -m proof.simulation`."""
    return run("proof.simulation", *options, typed=typed)
