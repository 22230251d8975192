"""Typed reads of VOLCANO_UI_* environment variables; an error names variable, value and remedy."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

PREFIX = "VOLCANO_UI_"
PROJECT = Path(__file__).resolve().parent.parent


def text(name: str, default: str = "") -> str:
    """Return the variable, or default when it is unset or empty."""
    return os.environ.get(PREFIX + name) or default


def flag(name: str, *, default: bool) -> bool:
    """Read a yes/no variable; only 0 and 1 are accepted."""
    value = text(name)
    if not value:
        return default
    if value not in ("0", "1"):
        raise ImproperlyConfigured(f"{PREFIX}{name} is {value!r}; set it to 0 or 1.")
    return value == "1"


def number(name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
    """Read a whole number between least and most."""
    value = text(name)
    if not value:
        return default
    if not value.isdecimal() or not least <= int(value) <= most:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}; set it to a whole number from {least} to {most}."
        )
    return int(value)


def directory(name: str, default: Path) -> Path:
    """Read a path; a leading ~ is the home directory."""
    return Path(text(name) or default).expanduser().absolute()


def file(name: str) -> Path | None:
    """Read the path of a file, None when it is not set."""
    value = text(name)
    return Path(value).expanduser().absolute() if value else None


def words(name: str) -> list[str]:
    """Read a list separated by commas or spaces."""
    return text(name).replace(",", " ").split()


def directories(name: str) -> list[str]:
    """Read absolute paths separated by commas."""
    paths = [path.strip() for path in text(name).split(",") if path.strip()]
    for path in paths:
        if not path.startswith("/") or ".." in path.split("/"):
            raise ImproperlyConfigured(
                f"{PREFIX}{name} has {path!r}; name each directory from the root, such as /srv/data."
            )
    return paths


def secret(name: str, file: Path) -> str:
    """Return the variable, or the content of file, which is made on first use and readable by its owner only.

    Where the file cannot be written a key for this process alone is returned, so that the
    system check about the state directory can speak instead of a traceback.
    """
    if value := text(name):
        return value
    try:
        if not file.exists():
            _create_secret(file)
        return file.read_text().strip()
    except OSError:
        return secrets.token_urlsafe(48)


def _create_secret(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(secrets.token_urlsafe(48))
    # Processes that start together must agree on one key: link, unlike rename, fails for the second.
    with contextlib.suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()


def database(file: Path) -> dict[str, Any]:
    """Return Django's description of the database: PostgreSQL by DATABASE_URL, otherwise SQLite in file."""
    url = text("DATABASE_URL") or os.environ.get("DATABASE_URL", "")
    return _postgresql(url) if url else _sqlite(file)


def redis_url(name: str) -> str:
    """Return the address of a Redis, or an empty text."""
    url = text(name)
    if url and urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {_without_password(url)!r}; set it to redis://host:6379/0 or unix:///path?db=0, "
            "or leave it empty for a Redis of its own."
        )
    return url


def _sqlite(file: Path) -> dict[str, Any]:
    return {
        "ENGINE": "cluster.sqlite",
        "NAME": file,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32000;",
        },
    }


def _postgresql(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme not in ("postgres", "postgresql") or not name:
        raise ImproperlyConfigured(
            f"DATABASE_URL is {_without_password(url)!r}; set it to postgresql://user:password@host:5432/name, "
            "or leave it empty for SQLite."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or options.pop("password", "")),
        # A Unix socket's directory has no place in a URL's host, so libpq takes it as a parameter.
        "HOST": unquote(parts.hostname or "") or options.pop("host", ""),
        "PORT": parts.port or options.pop("port", ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


def _without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"{before.rpartition(':')[0]}:***@{after}" if at and ":" in before.partition("//")[2] else url
