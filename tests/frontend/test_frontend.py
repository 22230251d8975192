"""The front end's own tests, run in Node."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.campaign import scaled
from volcano_ui import assets

TESTS = sorted(Path(__file__).parent.glob("*.test.mjs"))


@pytest.mark.campaign
@pytest.mark.usefixtures("npm_packages")
@pytest.mark.parametrize("file", TESTS, ids=[file.stem for file in TESTS])
def test_modules_of_the_front_end(file):
    done = subprocess.run(
        [assets.node(), "--test", file],
        capture_output=True,
        text=True,
        cwd=assets.ROOT,
        check=False,
        env={"ROUNDS": str(scaled(25, 300)), **os.environ, "FORCE_COLOR": "0"},
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
