"""`make ci`: runs .ci/run in a fresh clone of HEAD, and keeps its logs in this clone's .cache/ci."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / ".cache" / "ci"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def main() -> int:
    """Return the exit status of .ci/run."""
    if changes := output("git", "status", "--porcelain"):
        print(f"• not committed, and so no part of this run:\n{changes}", flush=True)
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    # Not in /tmp, of which pods see one of their own: tests have state directories in their clone that pods have to see.
    (CACHE / "volcano-ui").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ci-", dir=CACHE / "volcano-ui") as folder:
        clone, home = Path(folder) / "clone", Path(folder) / "home"
        home.mkdir()
        output("git", "clone", "--quiet", str(ROOT), str(clone))
        status = run(clone, home)
        if (logs := clone / ".cache" / "ci").exists():
            shutil.copytree(logs, LOGS, dirs_exist_ok=True)
    return status


def run(clone: Path, home: Path) -> int:
    """Run .ci/run with an empty home, print what it says, and keep that in run.log as well; return its exit status."""
    environment = {**os.environ, **caches(), "HOME": str(home)}
    process = subprocess.Popen(
        [".ci/run"],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    # It ends its stages, and this ends after it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: process.terminate())
    with process, (LOGS / "run.log").open("wb") as log:
        for line in process.stdout:  # type: ignore[union-attr]
            for each in (log, sys.stdout.buffer):
                each.write(line)
                each.flush()
    return process.returncode


def caches() -> dict[str, str]:
    """Return the variables that name this user's caches of downloads and of what Go has built."""
    # They are keyed by content, so that sharing them changes nothing but the time: without them each run would download and
    # build for ten minutes. pip keeps its downloads in the first, and the Makefile Kubernetes' programs.
    named = {"XDG_CACHE_HOME": str(CACHE), "npm_config_cache": str(ROOT / ".cache" / "npm")}
    if shutil.which("go"):
        named |= {name: output("go", "env", name) for name in ("GOCACHE", "GOMODCACHE")}
    return named


def output(*command: str) -> str:
    """Run a command in this clone, and return what it prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip()


if __name__ == "__main__":
    sys.exit(main())
