"""Imports every module that registers with `cluster.apiserver.routes`."""

from __future__ import annotations

from cluster.apiserver import discovery, health, telemetry

__all__ = ["discovery", "health", "telemetry"]
