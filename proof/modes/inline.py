"""Threads that are none."""

from __future__ import annotations

from concurrent.futures import Executor, Future


class Inline(Executor):
    """Does at once what is submitted; a killed process is no outcome of that."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future
