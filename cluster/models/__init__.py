"""Tables of the cluster: the store's and the accounts'."""

from __future__ import annotations

from cluster.models.store import Change, Cursor, Log, Object, Ownership, Timer

__all__ = ["Change", "Cursor", "Log", "Object", "Ownership", "Timer"]
