"""Objects and the log of their changes. `store` is the process-wide Store on the default database."""

from __future__ import annotations

from cluster.store.store import Store, store
from cluster.store.types import AllBut, Change, Create, Delete, Group, Mirror, Patch, Single, Stored, Update, Write

__all__ = [
    "AllBut",
    "Change",
    "Create",
    "Delete",
    "Group",
    "Mirror",
    "Patch",
    "Single",
    "Store",
    "Stored",
    "Update",
    "Write",
    "store",
]
