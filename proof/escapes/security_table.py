"""The tables of docs/escapes.md: which attempt gets through which wall. `python -m proof.escapes.security_table` writes them.

As root, because it also tries as a user without rights.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import django

from proof.escapes import as_nobody, breaking_out
from proof.harness import engine
from proof.harness.waiting import HANG_S

Table = dict[str, dict[str, bool]]  # by wall and attack whether it gets through

PAGE = as_nobody.PROJECT / "docs" / "escapes.md"
USERS = ("Started by root", "Started by an ordinary user")
IMAGES = "Containers of images"
# Who runs them: the engines that root has, and podman of a user without rights.
ENGINES = {"podman, by root": "podman", "docker, by root": "docker", "podman, by an ordinary user": ""}
# Not below /tmp, which containers see as it is.
FOLDER = "/var/tmp"
OF_IMAGES = "import django; django.setup(); from proof.escapes import breaking_out_of_images as it; it.main()"


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Give a folder of a measurement's own, with one for its stage."""
    made = Path(tempfile.mkdtemp(prefix="volcano-", dir=FOLDER))
    try:
        made.chmod(0o755)
        (made / "stage").mkdir()
        yield made
    finally:
        shutil.rmtree(made)


def measured(user: str) -> Table:
    """Return by wall and attack whether it gets through on this machine, for one of the users."""
    with folder() as own:
        program = breaking_out.make_setuid(own)
        if user == USERS[0] or os.geteuid() != 0:
            return breaking_out.table(own / "stage", program)
        python = Path(breaking_out.INTERPRETER).resolve()
        command: list[str | Path] = [python, "-m", "proof.escapes.breaking_out", own / "stage", program]
        found: Table = _as_nobody(own / "stage", command, as_nobody.code(own / "code"))
        return found


def measured_of_images(runs: engine.Podman | None = None) -> dict[str, bool] | str:
    """Return by attack whether it gets through with an engine of root's; without one with podman of an ordinary user, or why not."""
    from proof.escapes import breaking_out_of_images  # which wants Django to be set up

    with folder() as own:
        if runs:
            return breaking_out_of_images.table(own / "stage", runs)
        command: list[str | Path] = [sys.executable, "-c", OF_IMAGES, own / "stage"]
        found: dict[str, bool] | str = _as_nobody(own / "stage", command, as_nobody.PROJECT, Path(sys.prefix).resolve())
        return found


def _as_nobody(home: Path, command: Sequence[str | Path], code: Path, *reached: Path) -> Any:
    """Return what a command says that is run as a user without rights, in a directory with its code."""
    nobody = pwd.getpwnam("nobody")
    become = None
    if os.geteuid() == 0:
        shutil.chown(home, nobody.pw_uid, nobody.pw_gid)
        become = functools.partial(as_nobody.become, nobody, code, *reached)
    places = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "TMPDIR"), str(home))
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "proof.settings", **places}
    done = subprocess.run(
        command, preexec_fn=become, capture_output=True, text=True, timeout=4 * HANG_S, cwd=code, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def written(title: str, table: Table) -> str:
    """Return a table as the page has it."""
    walls = list(table)
    lines = [
        f"### {title}", "",
        f"| what a container tries | {' | '.join(walls)} |", f"|---|{'---|' * len(walls)}",
        *(f"| {words} | {' | '.join('**yes**' if table[wall][words] else 'no' for wall in walls)} |" for words in table[walls[0]]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def replaced(page: str, title: str, table: Table) -> str:
    """Return the page with a table in place of the one that it has under a title."""
    part = re.compile(rf"### {title}\n(?:[^#\n].*\n|\n)*")
    return part.sub(lambda _: written(title, table) + "\n", page)


def documented(title: str) -> Table:
    """Return what the page says."""
    text = PAGE.read_text().partition(f"### {title}\n")[2].partition("\n#")[0]
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.strip().splitlines())
    return {wall: {row[0]: row[column] == "**yes**" for row in rows} for column, wall in enumerate(head) if column}


def main() -> None:
    """Write what gets through on this machine into the page."""
    text = PAGE.read_text()
    found = {user: measured(user) for user in USERS}
    found[IMAGES] = {}
    for words, kind in ENGINES.items():
        with engine.working(kind) if kind else contextlib.nullcontext() as runs:
            assert runs or not kind, f"{kind} does not work here, and the page tells of it"
            through = measured_of_images(runs)
            assert not isinstance(through, str), f"{words}: {through}"
            found[IMAGES][words] = through
    for title, table in found.items():
        text = replaced(text, title, table)
    PAGE.write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "proof.settings"
    django.setup()
    main()
