"""Everything that can be wanted, by whom and of what: importing a module puts its wishes into the table."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "jobs",
    "makers",
    "pods",
    "commands",
    "changes",
    "deletions",
    "queues",
    "limits",
    "nodes",
    "things",
    "mistakes",
)


def load() -> None:
    """Fill the table of wishes, in this order."""
    for module in MODULES:
        import_module(f"{__name__}.{module}")
