"""The wheel, as somebody gets it who has no clone: `make package` builds it, installs it and runs it."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from proof.systems.system import PROJECT, System
from proof.systems.work import Person, job, shell
from tests.system.conftest import _database, watcher
from tests.tables import cases
from volcano_ui import assets

__all__ = ["_database", "watcher"]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def built(folder):
    """Build the wheel in a copy of this clone, as `make wheel` does; return its path."""
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=PROJECT).splitlines()
    for name in (name for name in names if (PROJECT / name).exists()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((PROJECT / name).read_bytes())
    # They are those of the lock, and installing them once more would show nothing.
    assets.install_tools(lambda line: None)
    shutil.copytree(PROJECT / "node_modules", folder / "node_modules", symlinks=True)
    environment = {**os.environ, "VOLCANO_UI_DATA": str(folder / "data")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    for command in ("manage.py", "assets"), ("-m", "hatchling", "build", "--target", "wheel"):
        run(sys.executable, *command, cwd=folder, env=environment)
    return next((folder / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def program(wheel, tmp_path_factory):
    """The command of an environment that holds the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", wheel)
    return folder / "bin" / "volcano-ui"


def test_two_builds_give_the_same_bytes(wheel, tmp_path):
    assert built(tmp_path).read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_one_package_and_what_it_runs_on(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"volcano_ui_app"}
    held = {name.removeprefix("volcano_ui_app/") for name in names}
    wanted = {
        str(path.relative_to(PROJECT))
        for folder, pattern in (("templates", "*.html"), ("cluster", "*.py"), ("jobs", "*.yaml"))
        for path in (PROJECT / folder).rglob(pattern)
    }
    assert wanted <= held
    assert {"static/staticfiles.json", "static/build/main.js"} <= held
    assert [name for name in held if name.startswith(("tests", "frontend", "node_modules"))] == []


def pinned(text):
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_what_is_installed_is_not_older_than_what_was_tested(program):
    pip = [program.with_name("python"), "-m", "pip", "--disable-pip-version-check"]
    assert "No broken requirements" in run(*pip, "check")
    installed = {canonicalize_name(name): each for name, each in pinned(run(*pip, "freeze")).items()}
    locked = pinned((PROJECT / "requirements.txt").read_text())
    required = {canonicalize_name(Requirement(each).name) for each in requires("volcano-ui", program)}
    assert {"django", "celery", "numpy"} <= required
    assert [name for name in required if Version(installed[name]) < Version(locked[name])] == []
    assert not any("nodejs" in name for name in installed)


def requires(name, program):
    script = f"import importlib.metadata as m, json; print(json.dumps(m.requires({name!r})))"
    return json.loads(run(program.with_name("python"), "-c", script))


@cases("arguments, words", {
    "version": (["--version"], "volcano-ui 0."),
    "help": (["--help"], "volcano-ui up "),
    "nothing": ([], "volcano-ui up "),
    "of a command": (["up", "--help"], "--port"),
    "of a server": (["web", "--help"], "--fd"),
    "check": (["check"], "no issues"),
})  # fmt: skip
def test_the_command_tells_about_itself(program, tmp_path, arguments, words):
    assert words in run(program, *arguments, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})


class Installed(System):
    """`volcano-ui up` in an empty home, without a clone, make or Node."""

    def __init__(self, program, home):
        super().__init__(home / ".local" / "share" / "volcano-ui")
        self.command, self.folder = [program, "up"], home
        ports = {name: self.environment[name] for name in ("VOLCANO_UI_PORT", "VOLCANO_UI_API_PORT")}
        own = {"HOME": str(home), "PATH": "/usr/bin:/bin", "VOLCANO_UI_ENGINE": "none"}
        self.environment = {**own, **ports}


@pytest.fixture
def system(program, tmp_path):
    with Installed(program, tmp_path) as started:
        yield started
    started.assert_gone()


def test_a_job_runs_and_nothing_is_left(system, watcher, tmp_path):
    with Person(system) as person:
        person.create(job("hello", shell("echo hello", replicas=2)))
        watcher.reaches("hello", "Completed")
        page = person.get("/jobs/")
        assert "hello" in page.text
        script = page.text.partition('src="/static/build/main')[2].partition('"')[0]
        assert person.get(f"/static/build/main{script}").status_code == 200
    system.stop()
    system.assert_gone()
    assert [path.relative_to(tmp_path) for path in tmp_path.glob("*")] == [Path(".local")]
    assert [path.name for path in (tmp_path / ".local" / "share").iterdir()] == ["volcano-ui"]


def test_a_command_finds_the_state_that_up_left(system):
    environment = {name: system.environment[name] for name in ("HOME", "PATH")}  # of ports
    link = run(system.command[0], "loginlink", env=environment)
    assert link.startswith(f"http://127.0.0.1:{system.port}/login/")
    assert f"server: {system.api}\n" in run(system.command[0], "kubeconfig", env=environment)
