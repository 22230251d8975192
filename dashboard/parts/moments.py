"""Moments that people write into filters, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def problem(text: str) -> str:
    """Say what is wrong with a moment that is searched."""
    try:
        moment(text)
    except ValueError:
        return f"“{text[:40]}” is no date and time; write one as 2026-11-20T08:30, in UTC."
    return ""


def moment(text: str) -> int:
    """Return a date and time in UTC, as a browser's field gives it, in ms; ValueError when it is none."""
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC).timestamp() * 1000)
