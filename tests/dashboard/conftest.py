from __future__ import annotations

from tests.reading import reads

__all__ = ["reads"]
