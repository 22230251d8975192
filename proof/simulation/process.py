"""How a Python process is set up in which worlds are played."""

from __future__ import annotations

import logging
import os
import sys
from types import SimpleNamespace

import django
from django.db import connections


def prepare(module: str) -> None:
    """Set up this process, or start it anew as `python -m module`.

    The order in which Python walks through sets is part of what a seed decides,
    so the hash of a string has to be the same in each process.
    """
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    os.environ["DJANGO_SETTINGS_MODULE"] = "proof.simulation.settings"
    django.setup()
    # One thread, one connection: nobody asks whose it is, which a twentieth of all time went into.
    connections._connections = SimpleNamespace()  # type: ignore[attr-defined]  # private to Django
    logging.disable(logging.CRITICAL)
