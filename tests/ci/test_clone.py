"""What .ci/clone.py hands to .ci/run and keeps of it: each test commits a .ci/run of its own."""

import shutil
import signal
import sys
from pathlib import Path

import pytest
from django.conf import settings

from proof.harness.waiting import HANG_S

GIT = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org")


@pytest.fixture
def clone(project):
    """Commit a .ci/run, and start it in a clone."""

    def clone(script):
        project.program(".ci/run", script)
        project.write({".gitignore": ".cache\n"})
        shutil.copy(settings.BASE_DIR / ".ci" / "clone.py", project.folder / ".ci")
        for command in (["init", "-q"], ["add", ".ci", ".gitignore"], ["commit", "-qm", "All"]):
            assert project.run(*GIT, *command) == (0, "")
        return project.start(sys.executable, ".ci/clone.py")

    return clone


def test_a_run_has_what_is_committed_and_an_empty_home(clone, project):
    project.write({"later": "", ".cache/ci/old.log": ""})
    process = clone(
        "ls -A; ls -A $HOME; readlink /proc/$$/fd/0; mkdir -p .cache/ci; echo 1 > .cache/ci/new.log; pwd; exit 3"
    )
    printed = process.communicate(timeout=HANG_S)[0].splitlines()
    assert process.returncode == 3
    assert "?? later" in printed
    assert printed[-5:-1] == [".ci", ".git", ".gitignore", "/dev/null"]
    assert not Path(printed[-1]).exists()
    logs = {file.name: file.read_text().splitlines() for file in (project.folder / ".cache" / "ci").iterdir()}
    assert logs == {"run.log": printed[-5:], "new.log": ["1"]}


def test_a_run_shares_caches(clone, project):
    project.program("bin/go", 'echo "Go\'s $2"')
    process = clone("for name in XDG_CACHE_HOME npm_config_cache GOCACHE GOMODCACHE; do printenv $name; done")
    printed = process.communicate(timeout=HANG_S)[0].splitlines()
    cache = f"{project.folder}/.cache"
    assert printed[-4:] == [cache, f"{cache}/npm", "Go's GOCACHE", "Go's GOMODCACHE"]


def test_a_signal_ends_the_run(clone):
    process = clone("trap 'echo asked to end; exit 1' TERM; pwd; while :; do sleep 0.1; done")
    folder = next(line for line in process.stdout if line.startswith("/")).strip()
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=HANG_S)[0] == "asked to end\n"
    assert process.returncode == 1
    assert not Path(folder).exists()
