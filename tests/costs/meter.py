"""What something costs, counted and not timed.

Counted are the lines of this project's Python that run, the calls of anybody's functions, and the steps of SQLite's virtual
machine. So whatever goes through many things one by one is found: rows that are read, objects that are decoded, writes,
messages, a query that looks at every row to find one. What C does in one go, as adding arrays or sorting by no key, is one line.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

PROJECT = f"{settings.BASE_DIR}/"
PACKAGES = "/site-packages/"  # of an environment in the project's folder


@contextmanager
def counted():
    """Yield a counter, by function and by SQL statement, of what this thread does in the block."""
    cost: Counter[str] = Counter()
    outer = sys.gettrace()
    gc.disable()  # garbage of earlier blocks is none of this one's
    with connection.execute_wrapper(_Statements(cost)):
        sys.settrace(_tracer(cost))
        try:
            yield cost
        finally:
            sys.settrace(outer)
            gc.enable()
            if connection.connection is not None:
                connection.connection.set_progress_handler(None, 1)


def _tracer(cost):
    followed = {}  # by identity: the hash of a code is one of all that is in it, and each line would ask for it

    def call(frame, *_):
        code = frame.f_code
        _, name, line = followed.get(id(code)) or followed.setdefault(id(code), follow(frame))
        if name:
            cost[name] += 1
        return line

    def follow(frame):
        """Return the code, which stays as long as its identity is used, under which name it counts, and who counts its lines."""
        code = frame.f_code
        if code.co_filename == __file__:
            return code, "", None
        name = f"{frame.f_globals.get('__name__')}.{code.co_qualname}"

        def line(frame, event, _):
            if event == "line":
                cost[name] += 1
            return line

        ours = code.co_filename.startswith(PROJECT) and PACKAGES not in code.co_filename
        return code, name, line if ours else None

    return call


class _Statements:
    """Counts the steps of each statement, also while its rows are read."""

    def __init__(self, cost):
        self._cost = cost
        self._text = ""

    def __call__(self, execute, sql, params, many, context):
        self._text = " ".join(sql.split())
        context["connection"].connection.set_progress_handler(self._step, 1)
        return execute(sql, params, many, context)

    def _step(self):
        self._cost[self._text] += 1
