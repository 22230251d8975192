from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cluster.store.connections import LONG_LOG
from proof.harness.waiting import HANG_S

ASKED = """
import asyncio, runpy, socket, sys, threading
import django, uvicorn
django.setup()
from django.db import connection

def tell():
    with connection.cursor() as cursor:
        print(cursor.execute("PRAGMA wal_autocheckpoint").fetchone()[0])
    print(*(thread.name for thread in threading.enumerate() if thread.name == "nudge"))

async def asked(server, sockets):
    await asyncio.to_thread(tell)

uvicorn.Server.serve = asked
program = sys.argv[1]
sys.argv = [program, "--fd", str(socket.create_server(("127.0.0.1", 0)).detach())]
runpy.run_module(program, run_name="__main__")
if program == "volcano_ui.celery":
    tell()
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        pytest.param("volcano_ui.web", f"{LONG_LOG}\nnudge\n", id="web server"),
        pytest.param("volcano_ui.apiserver", f"{LONG_LOG}\nnudge\n", id="API server"),
        pytest.param("volcano_ui.celery", "2000\n\n", id="workers"),
    ],
)
def test_servers_leave_checkpoints_and_nudges_to_others(program, told, tmp_path):
    """Asked of each program where it would begin to serve, in a process of its own, since it stays a server."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED, program],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "volcano_ui.settings", "VOLCANO_UI_DATA": str(tmp_path)},
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.stdout == told, done.stderr
