"""Ending a process whose work is done."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

from django.db import connections


def exit_at_once(status: int = 0) -> NoReturn:
    """End this process without Python's own end, which frees object by object.

    That takes a program of this system a third of a second of processor time, and
    on a busy machine longer than `up` waits before it kills a program.
    """
    connections.close_all()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)
