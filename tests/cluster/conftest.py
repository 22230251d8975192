from __future__ import annotations

from tests.cluster.api.conftest import admin, cluster, person

__all__ = ["admin", "cluster", "person"]
