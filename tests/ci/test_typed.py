"""What a person types in a fresh clone, before anything is installed."""

import re
import shutil

import pytest
from django.conf import settings


@pytest.fixture
def clone(project):
    """A clone in which Python says what it is called with."""
    project.program("clone/.venv/bin/python", 'echo "$@, with KUBECONFIG=$KUBECONFIG"')
    shutil.copy(settings.BASE_DIR / "Makefile", project.folder / "clone")
    # Nor has it what the make was told that runs the tests.
    project.environment |= {"MAKEFLAGS": "", "KUBECONFIG": "mine"}
    return lambda *words: project.run("make", "-C", "clone", "-o", ".venv/runtime", "kubeconfig", *words)


def test_the_file_to_write_is_named_file(clone):
    status, printed = clone("FILE=ours")
    assert status == 0
    assert "manage.py kubeconfig --file ours, with KUBECONFIG=mine" in printed


def test_who_names_it_kubeconfig_is_told_what_to_type(clone):
    status, printed = clone("KUBECONFIG=ours")
    assert status == 2
    assert "Type: make kubeconfig FILE=ours" in printed
    assert "manage.py" not in printed


def test_programs_ask_for_the_python_that_every_machine_has():
    """Debian has a `python` only where somebody has asked for one."""
    first = {path: path.read_text().partition("\n")[0] for path in settings.BASE_DIR.glob("*.py")}
    shebangs = [line for line in first.values() if line.startswith("#!")]
    assert shebangs
    assert all(re.search(r"\bpython3$", line) for line in shebangs)
