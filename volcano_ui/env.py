"""Typed reads of VOLCANO_UI_* environment variables; an error names variable, value and remedy."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

PREFIX = "VOLCANO_UI_"


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
