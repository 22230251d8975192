"""Imports every module that registers with `apiserver.http.routes`."""

# ruff: noqa: F401

from __future__ import annotations

import apiserver.discovery
import apiserver.health
import apiserver.objects.evictions
import apiserver.objects.finalize
import apiserver.objects.joining
import apiserver.objects.metrics
import apiserver.objects.reviews
import apiserver.objects.scale
import apiserver.objects.token_requests
import apiserver.openapi.endpoints
import apiserver.streams.exec_attach
import apiserver.streams.logs
import apiserver.streams.node_link
import apiserver.streams.port_forward
import apiserver.telemetry
