"""Probes and lifecycle hooks of containers: Kubernetes' defaults, and as much of its validation as the schema cannot say.

Source: Kubernetes' validation of pods (validateProbe, validateLifecycle, validateHandler), which the texts follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kube import lenient
from kube.errors import Cause, forbidden, invalid, not_supported, required

PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
HOOKS = ("postStart", "preStop")
_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_NOT_NEGATIVE = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
LAST_PORT = 65535
GRACE_S = 30


def check(container: Any, path: str, *, init: bool, grace_s: int | None) -> Iterator[Cause]:
    """Say what is wrong with the probes and hooks of a container; init containers that end have none."""
    ends = init and lenient.text(container, "restartPolicy") != "Always"
    for field in PROBES:
        probe = lenient.mapping(container).get(field)
        if not isinstance(probe, dict):
            continue
        if ends:
            yield forbidden(f"{path}.{field}", "may not be set for init containers without restartPolicy=Always")
        else:
            yield from _check_probe(probe, f"{path}.{field}", field)
    lifecycle = lenient.mapping(container, "lifecycle")
    if lifecycle and ends:
        yield forbidden(f"{path}.lifecycle", "may not be set for init containers without restartPolicy=Always")
        return
    for field in HOOKS:
        handler = lifecycle.get(field)
        if isinstance(handler, dict):
            yield from _check_handler(handler, f"{path}.lifecycle.{field}", _OF_HOOKS)
            most = GRACE_S if grace_s is None else grace_s
            seconds = lenient.whole(handler, "sleep", "seconds") or 0
            if isinstance(handler.get("sleep"), dict) and not 0 <= seconds <= most:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({most})"
                yield invalid(
                    f"{path}.lifecycle.{field}.sleep.seconds", seconds, f"{detail}. Set it lower, or raise that."
                )


def default(container: dict[str, Any]) -> None:
    """Fill in what Kubernetes fills in."""
    for field in PROBES:
        probe = container.get(field)
        if isinstance(probe, dict) and probe:
            for name, value in _DEFAULTS.items():
                probe[name] = probe.get(name) or value
            _default_request(probe)
            if isinstance(probe.get("grpc"), dict) and probe["grpc"].get("service") is None:
                probe["grpc"]["service"] = ""
    for field in HOOKS:
        _default_request(lenient.mapping(container, "lifecycle", field))


def _default_request(handler: dict[str, Any]) -> None:
    request = lenient.mapping(handler, "httpGet")
    if request:
        request["path"] = request.get("path") or "/"
        request["scheme"] = request.get("scheme") or "HTTP"


def _check_probe(probe: dict[str, Any], path: str, field: str) -> Iterator[Cause]:
    yield from _check_handler(probe, path, _OF_PROBES)
    for name in _NOT_NEGATIVE:
        value = lenient.whole(probe, name)
        if value is not None and value < 0:
            yield invalid(f"{path}.{name}", value, "must be greater than or equal to 0")
    grace = lenient.whole(probe, "terminationGracePeriodSeconds")
    if field == "readinessProbe":
        if grace is not None:
            detail = "must not be set for readinessProbes, which end no container"
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, detail)
        return
    if grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    successes = lenient.whole(probe, "successThreshold")
    if successes not in (None, 0, 1):
        yield invalid(f"{path}.successThreshold", successes, "must be 1")


def _check_handler(handler: dict[str, Any], path: str, allowed: tuple[str, ...]) -> Iterator[Cause]:
    handlers = [kind for kind in allowed if isinstance(handler.get(kind), dict)]
    if not handlers:
        yield required(path, f"must specify a handler type: one of {', '.join(allowed)}.")
    for kind in handlers[1:]:
        yield forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
    for kind in handlers[:1]:
        where, action = f"{path}.{kind}", handler[kind]
        if kind == "exec" and not lenient.sequence(action, "command"):
            yield required(f"{where}.command", "name the program that is run in the container.")
        port = action.get("port") if kind in ("httpGet", "tcpSocket", "grpc") else None
        if isinstance(port, int) and not 0 < port <= LAST_PORT:
            yield invalid(f"{where}.port", port, f"must be between 1 and {LAST_PORT}, inclusive")
        elif isinstance(port, str) and not _PORT_NAME.fullmatch(port):
            detail = (
                "must be the name of a port: at most 15 lower case letters, digits and '-', with a letter among them"
            )
            yield invalid(f"{where}.port", port, detail)
        scheme = lenient.text(action, "scheme")
        if kind == "httpGet" and scheme and scheme not in _SCHEMES:
            yield not_supported(f"{where}.scheme", scheme, _SCHEMES)
        for number, header in enumerate(lenient.sequence(action, "httpHeaders") if kind == "httpGet" else ()):
            name = lenient.text(header, "name")
            if not _HEADER.fullmatch(name):
                detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name')"
                yield invalid(f"{where}.httpHeaders[{number}].name", name, detail)
