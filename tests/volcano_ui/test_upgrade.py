"""docs/how-to/upgrade.md: its commands are run as they stand there, on the state directory of a system."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings

from cluster.version import VERSION
from proof.harness import services

HERE = {"VOLCANO_UI_ENGINE": "none", "VOLCANO_UI_RUNNING": "end"}
PAGE = (settings.BASE_DIR / "docs" / "how-to" / "upgrade.md").read_text()


def blocks(heading):
    """Return the commands below a heading, a text for each block."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


STOPPED, RUNNING = blocks("Back up")
ALL, COPIED = blocks("Restore")
(REMOVE,) = blocks("Uninstall")


@pytest.fixture
def folder(tmp_path):
    """Where a clone is, as far as the page's commands need one."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


@pytest.fixture
def typed(folder):
    def run(commands):
        subprocess.run(["bash", "-ec", commands], cwd=folder, check=True, timeout=60)

    return run


def manage(data, *words):
    """Return what a command says on a state directory."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VOLCANO_UI_", "DJANGO_"))}
    environment["VOLCANO_UI_DATA"] = str(data)
    command = [sys.executable, "manage.py", *words]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, check=True, capture_output=True, text=True
    ).stdout


def identity(data):
    """Return by what clients and browsers know an installation: the authority and the name of its kubeconfig, and its key."""
    config = manage(data, "kubeconfig")
    names = re.findall(r"authority-data: (\S+)", config), re.findall(r"current-context: (\S+)", config)
    return *names, (data / "secret-key").read_text()


def test_a_backup_is_restored_and_an_older_version_goes_on_with_it_only(start, typed, folder):
    first = start("data", **HERE)
    first.wait_for_line("^Open ")
    before = identity(first.data)
    typed(RUNNING)
    assert first.stop() == 0
    typed(STOPPED)
    for name in ("backup.sqlite3", "keys.tar.gz", "backup.tar.gz"):
        assert (folder / name).stat().st_mode & 0o077 == 0, name
    (folder / "data" / "version").write_text("99.0.0\n")  # a newer version has been here
    refused = start("data", **HERE)
    refused.wait_for_line(
        rf"^✗ The state directory \S+ is of version 99\.0\.0, and this is {VERSION}\. Nothing was written"
    )
    assert refused.ended() == 1
    for commands in (ALL, COPIED):
        shutil.rmtree(folder / "restored", ignore_errors=True)
        typed(commands)
        assert identity(folder / "restored") == before
    (folder / "restored" / "version").write_text("0.0.1\n")
    second = start("restored", **HERE)
    second.wait_for_line("^Open ")
    assert f"What version 0.0.1 left goes on with {VERSION}." in second.lines
    assert (folder / "restored" / "version").read_text() == f"{VERSION}\n"
    assert identity(second.data) == before
    assert second.stop() == 0
    typed(REMOVE)
    assert not (folder / "data").exists()


def test_a_backup_of_postgresql_is_restored(postgres_url, monkeypatch, folder, typed):
    binaries = services.postgres_binaries()
    if not (binaries / "pg_dump").exists():
        pytest.skip("no pg_dump")
    (dump,) = re.findall(r"`(pg_dump [^`]*)`", PAGE)
    (restore,) = re.findall(r"`(pg_restore [^`]*)`", PAGE)
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    with services.postgres_database(postgres_url, "dumped"), services.postgres_database(postgres_url, "restored"):
        for name, command in (("dumped", dump), ("restored", restore)):
            monkeypatch.setenv("DATABASE_URL", address(postgres_url, name))
            if name == "dumped":
                with psycopg.connect(address(postgres_url, name), autocommit=True) as database:
                    database.execute("CREATE TABLE kept (id integer); INSERT INTO kept VALUES (7)")
            typed(command)
        with psycopg.connect(address(postgres_url, "restored")) as database:
            assert database.execute("SELECT id FROM kept").fetchall() == [(7,)]


def address(server, name):
    return f"postgresql:///{name}?{urlsplit(server).query}"


def test_what_the_page_says_is_refused_is_said_so():
    match = re.search(r"^✗ The state directory .*$", PAGE, re.MULTILINE)
    assert match
    assert Path(re.search(r"before it: (\S+)\.$", match[0])[1]).name == "upgrade.md"
