from __future__ import annotations

from tests.cluster.door.conftest import admin, person

__all__ = ["admin", "person"]
