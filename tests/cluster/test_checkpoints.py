from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cluster.connecting import LONG_LOG

LIMIT = """
import importlib, sys, django
django.setup()
importlib.import_module(sys.argv[1])
from django.db import connection
with connection.cursor() as cursor:
    print(cursor.execute("PRAGMA wal_autocheckpoint").fetchone()[0])
"""


@pytest.mark.parametrize(
    ("module", "pages"),
    [
        pytest.param("volcano_ui.asgi", LONG_LOG, id="web server"),
        pytest.param("cluster.apiserver.asgi", LONG_LOG, id="API server"),
        pytest.param("volcano_ui.celery", 1000, id="workers"),
    ],
)
def test_servers_leave_checkpoints_to_the_workers(module, pages, tmp_path):
    """Asked of processes of their own, since a process that became a server stays one."""
    done = subprocess.run(
        [sys.executable, "-c", LIMIT, module],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "volcano_ui.settings", "VOLCANO_UI_DATA": str(tmp_path)},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.stdout == f"{pages}\n", done.stderr
