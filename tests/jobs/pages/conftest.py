from __future__ import annotations

from tests.scheduler.conftest import golden

__all__ = ["golden"]
