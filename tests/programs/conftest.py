"""The whole system, as the system tests start it, with the programs that `make programs` installs on its search path.

A test says which programs it needs. Where one cannot be had the test is not
collected, and the report says so: it has neither passed nor failed.
"""

import os
import shutil
from pathlib import Path

import pytest

from proof.systems.system import PROJECT, running
from tests.system.conftest import _database, person, watcher

__all__ = ["_database", "person", "watcher"]
INSTALLED = PROJECT / ".cache" / "programs"
WHERE = {
    "mpirun": "Debian's package openmpi-bin",
    "sshd": "Debian's package openssh-server",
    "ssh-keygen": "Debian's package openssh-client",
    "mpi4py": "requirements-programs.txt",
    "pyspark": "requirements-programs.txt",
    "java": "Debian's package openjdk-17-jre-headless",
    "ray": "requirements-programs.txt",
    "tensorflow": "requirements-programs.txt",
    "torch": "Debian's package python3-torch",
}
_not_run = pytest.StashKey[list[str]]()


def _is_there(program):
    if program == "torch":
        return Path("/usr/lib/python3/dist-packages/torch").exists()
    if WHERE[program] == "requirements-programs.txt":
        return any(INSTALLED.glob(f"lib/python*/site-packages/{program}/__init__.py"))
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is not None


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*programs): programs that a machine need not have")
    config.stash[_not_run] = []


def pytest_collection_modifyitems(config, items):
    chosen = []
    for item in items:
        wanted = [program for mark in item.iter_markers("needs") for program in mark.args]
        missing = [f"{each} ({WHERE[each]})" for each in wanted if not _is_there(each)]
        if missing:
            config.stash[_not_run].append(f"{item.nodeid}: this machine lacks {', '.join(missing)}")
        else:
            chosen.append(item)
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash[_not_run]:
        terminalreporter.write_line(f"NOT RUN {line}")


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """One running system for a module; at its end nothing of it may be left."""
    path = f"{INSTALLED / 'bin'}:{os.environ['PATH']}"
    with running(tmp_path_factory.mktemp("system") / "data", PATH=path) as started:
        yield started
