"""The tables of docs/escapes.md: which attempt gets through which wall. `python -m tests.node.security_table` writes them.

As root, because it also tries as a user without rights.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.node import as_nobody, breaking_out
from tests.waiting import HANG_S

PAGE = as_nobody.PROJECT / "docs" / "escapes.md"
USERS = ("root", "an ordinary user")
# Not below /tmp, which containers see as it is.
FOLDER = "/var/tmp"


def measured(user):
    """Return by wall and attack whether it gets through on this machine, for one of the users."""
    folder = Path(tempfile.mkdtemp(prefix="volcano-", dir=FOLDER))
    try:
        folder.chmod(0o755)
        (folder / "stage").mkdir()
        program = breaking_out.make_setuid(folder)
        tried = _as_nobody if user == USERS[1] and os.geteuid() == 0 else breaking_out.table
        return tried(folder / "stage", program)
    finally:
        shutil.rmtree(folder)


def _as_nobody(folder, program):
    nobody = pwd.getpwnam("nobody")
    code = as_nobody.code(folder.parent / "code")
    shutil.chown(folder, nobody.pw_uid, nobody.pw_gid)
    done = subprocess.run(
        [Path(sys._base_executable).resolve(), "-m", "tests.node.breaking_out", str(folder), str(program)],
        preexec_fn=lambda: as_nobody.become(nobody), capture_output=True, text=True, timeout=4 * HANG_S, cwd=code,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def written(user, table):
    """Return a table as the page has it."""
    walls = list(table)
    lines = [
        f"### Started by {user}", "",
        f"| what a container tries | {' | '.join(walls)} |", f"|---|{'---|' * len(walls)}",
        *(f"| {words} | {' | '.join('**yes**' if table[wall][words] else 'no' for wall in walls)} |" for words in table[walls[0]]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def documented(user):
    """Return what the page says."""
    text = PAGE.read_text().partition(f"### Started by {user}\n")[2].partition("\n#")[0]
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.strip().splitlines())
    return {
        wall: {row[0]: row[place] == "**yes**" for row in rows} for place, wall in enumerate(head) if place
    }


def main():
    text = PAGE.read_text()
    for user in USERS:
        part = re.compile(rf"### Started by {user}\n(?:[^#\n].*\n|\n)*")
        table = written(user, measured(user))
        text = part.sub(lambda _, table=table: table + "\n", text)
    PAGE.write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
