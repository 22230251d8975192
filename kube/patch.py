"""Patches of JSON objects. No function here changes its arguments."""

from __future__ import annotations

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396); parts of both arguments are shared with the result."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result
