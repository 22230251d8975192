from __future__ import annotations

from tests.dashboard.pages.conftest import _picture, admin, alice, cluster, operator
from tests.reading import reads
from tests.scheduler.conftest import golden

__all__ = ["_picture", "admin", "alice", "cluster", "golden", "operator", "reads"]
