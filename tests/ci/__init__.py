"""CI's own programs, run on small projects."""

from __future__ import annotations
