"""The tests; they mirror the packages."""

from __future__ import annotations
