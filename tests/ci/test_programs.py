"""The programs that make calls choose their state directory, and set Django up, once they run: loading them takes neither."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["proof.benches.bench", "proof.pictures.screenshots"])
def test_a_program_is_loaded_before_django_is_set_up(module):
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", f"import {module}"]
    loaded = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
