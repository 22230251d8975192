"""Logs: structlog in front, the standard library behind; JSON in files, coloured lines in a terminal."""

from __future__ import annotations

import sys
from typing import Any

import structlog

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
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers()],
                "foreign_pre_chain": SHARED,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # Django's own handlers would write each line a second time.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            **{name: {"level": "WARNING", "propagate": True} for name in QUIET},
        },
    }


def _renderers() -> list[structlog.typing.Processor]:
    if sys.stderr.isatty():
        return [structlog.dev.ConsoleRenderer()]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
