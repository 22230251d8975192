"""Which version a state directory is of: the newest that has used it, as a file says."""

from __future__ import annotations

from pathlib import Path

from cluster.version import VERSION, is_newer

FILE = "version"


def read(data: Path) -> str:
    """Return what is kept, "" in a new directory, in one from before this was kept, and in one that cannot be read."""
    try:
        return (data / FILE).read_text().strip()
    except OSError:
        return ""


def refuses(data: Path) -> bool:
    """Say whether a newer version than this one has used the state directory."""
    return is_newer(read(data), VERSION)


def write(data: Path) -> None:
    """Note that this version uses it."""
    draft = data / f"{FILE}.new"
    draft.write_text(f"{VERSION}\n")
    draft.replace(data / FILE)
