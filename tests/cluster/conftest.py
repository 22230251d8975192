from __future__ import annotations

from tests.cluster.api.conftest import admin, cluster, person
from tests.scheduler.conftest import golden

__all__ = ["admin", "cluster", "golden", "person"]
