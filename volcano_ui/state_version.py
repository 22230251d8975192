"""The version of a state directory: the newest one that has used it, written in a file."""

from __future__ import annotations

from pathlib import Path

from cluster.version import VERSION, is_newer

FILE = "version"


def read(data: Path) -> str:
    """Return the version, "" of a new directory, of one without the file, and of one that cannot be read."""
    try:
        return (data / FILE).read_text().strip()
    except OSError:
        return ""


def refuses(data: Path) -> bool:
    """Return whether a newer version than this one has used the state directory."""
    return is_newer(read(data), VERSION)


def write(data: Path) -> None:
    """Write this version into the file."""
    draft = data / f"{FILE}.new"
    draft.write_text(f"{VERSION}\n")
    draft.replace(data / FILE)
