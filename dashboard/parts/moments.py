"""Moments that people write into filters, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def problem(text: str) -> str:
    """Return what is wrong with the text of a moment, "" if nothing is."""
    try:
        moment(text)
    except ValueError:
        return f"“{text[:40]}” is no date and time; write one as 2026-11-20T08:30, in UTC."
    return ""


def moment(text: str) -> int:
    """Return a date and time in UTC, as a browser's field sends it, in epoch ms; raise ValueError for another text."""
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC).timestamp() * 1000)
