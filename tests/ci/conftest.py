import os
import subprocess
import sys

import pytest
from django.conf import settings

from proof.harness.waiting import HANG_S

ROOT = settings.BASE_DIR
# Without pytest's other plugins each start is a second faster.
PLUGINS = "-p xdist -p randomly -p tests.record"


class Project:
    """A folder with tests of its own, and the virtual environment of this clone."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []
        (folder / ".venv").symlink_to(sys.prefix)
        self.write({"pytest.ini": f"[pytest]\naddopts = -q -p no:cacheprovider {PLUGINS}\n"})
        self.environment = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": f"{ROOT / '.ci'}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }

    def write(self, files):
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)

    def program(self, name, script):
        """Write a program of sh; one in bin goes before this machine's."""
        self.write({name: f"#!/bin/sh\n{script}\n"})
        (self.folder / name).chmod(0o755)

    def start(self, *command):
        """Start a command there, and return it; its output is one text."""
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *command):
        """Run a command there; return its exit status and its output."""
        process = self.start(*command)
        output = process.communicate(timeout=HANG_S)[0]
        return process.returncode, output


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()
