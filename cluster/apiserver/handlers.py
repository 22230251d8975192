"""Imports every module that registers with `cluster.apiserver.routes`."""

from __future__ import annotations

from cluster.apiserver import logs, scales  # noqa: F401
