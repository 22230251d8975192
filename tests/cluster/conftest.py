from __future__ import annotations

from tests.cluster.api.conftest import admin, person

__all__ = ["admin", "person"]
