"""Logs: structlog in front, the standard library behind; JSON in files, coloured lines in a terminal."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import structlog

PROGRAM = "VOLCANO_UI_PROGRAM"  # in a program's environment: its name, for logs of many together
AGAIN = re.compile(r"Trying again .*\((\d+)/")
LOGIN_LINK = re.compile(r"/login/[^/\s\"']+")


def _without_links(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Cut one-time links out of Django's records of requests: readers of the log must not log in with them."""
    for key, value in event.items():
        if isinstance(value, str) and "/login/" in value:
            event[key] = LOGIN_LINK.sub("/login/…", value)
    return event


def _with_program(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Add the name of the program that writes."""
    if name := os.environ.get(PROGRAM):
        event["program"] = name
    return event


def _without_traces(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Log a request that Django refused in one line: it is not a crash."""
    if str(event.get("logger", "")).startswith("django.security"):
        event.pop("exc_info", None)
        event["level"] = "warning"
    return event


class FirstTry(logging.Filter):
    """Drops a worker's records of further tries to reach its broker; it logs itself when it is connected again."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a record unless it is about a try after the first."""
        match = AGAIN.search(record.getMessage())
        return match is None or match[1] == "1"


class AnsweredFilter(logging.Filter):
    """Drops Django's records of responses 404 and 405, with which anybody could fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a record unless it is about such a response."""
        return getattr(record, "status_code", 0) not in (404, 405)


SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]

# Celery reports every task run at INFO: with a tick a second that is all a log would hold.
QUIET = ("celery.app.trace", "celery.worker.strategy", "celery.beat", "django.server", "servestatic")


def configuration() -> dict[str, Any]:
    """Set structlog up and return Django's LOGGING: one handler, on stderr, for everybody."""
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    _without_traces,
                    *_renderers(),
                ],
                "foreign_pre_chain": SHARED,
            }
        },
        "filters": {"first try": {"()": FirstTry}, "answered": {"()": AnsweredFilter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # Django's own handlers would write each line a second time.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.request": {"filters": ["answered"], "propagate": True},
            **{name: {"level": "WARNING", "propagate": True} for name in QUIET},
            "celery.worker.consumer.consumer": {"filters": ["first try"]},
        },
    }


def _renderers() -> list[structlog.typing.Processor]:
    if sys.stderr.isatty():
        return [structlog.dev.ConsoleRenderer()]
    return [structlog.processors.format_exc_info, _without_links, _with_program, structlog.processors.JSONRenderer()]


def rotate(file: Path, *, most_bytes: int = 5_000_000, keep: int = 3) -> None:
    """Move a log's content to file.1 once it is large, file.1 to file.2 and so on.

    The writer keeps its descriptor, which appends, so the content is copied and the file emptied:
    a line written between the two is lost, the size is bounded.
    """
    if not file.exists() or file.stat().st_size < most_bytes:
        return
    for number in range(keep - 1, 0, -1):
        older = file.with_name(f"{file.name}.{number}")
        if older.exists():
            older.replace(file.with_name(f"{file.name}.{number + 1}"))
    shutil.copyfile(file, file.with_name(f"{file.name}.1"))
    os.truncate(file, 0)


def last_message(file: Path, *, most_characters: int = 200) -> str:
    """Return the last message of a log, for people: the event of a JSON line, otherwise the line itself."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - 4096))
        lines = stream.read().decode(errors="replace").split("\n")
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    with contextlib.suppress(ValueError, TypeError, KeyError):
        line = str(json.loads(line)["event"])
    return line.partition("\n")[0][:most_characters]
