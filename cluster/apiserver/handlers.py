"""Imports every module that registers with `cluster.apiserver.routes`."""

from __future__ import annotations

import cluster.apiserver.discovery
import cluster.apiserver.health
import cluster.apiserver.logs
import cluster.apiserver.openapi.answers
import cluster.apiserver.telemetry  # noqa: F401
