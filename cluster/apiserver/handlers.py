"""Imports every module that registers with `cluster.apiserver.routes`."""

# ruff: noqa: F401

from __future__ import annotations

import cluster.apiserver.discovery
import cluster.apiserver.evictions
import cluster.apiserver.execs
import cluster.apiserver.finalizing
import cluster.apiserver.health
import cluster.apiserver.logs
import cluster.apiserver.metrics
import cluster.apiserver.openapi.answers
import cluster.apiserver.reviews
import cluster.apiserver.scales
import cluster.apiserver.telemetry
import cluster.apiserver.token_requests
