"""Probes and hooks at the door: Kubernetes' defaults and refusals."""

from __future__ import annotations

import pytest

from tests.tables import cases

from .known import PODS, admitted, causes, messages, pod

RUN = {"exec": {"command": ["true"]}}


def container(**fields):
    return [{"name": "main", "image": "any", "command": ["true"], **fields}]


def fields_of(given):
    return [text.partition(":")[0] for text in messages(PODS, given)]


def test_defaults():
    given = {"livenessProbe": {"httpGet": {"port": 80}}, "lifecycle": {"preStop": {"httpGet": {"port": "web"}}}}
    (stored,) = admitted(PODS, pod(containers=container(**given)))["spec"]["containers"]
    assert stored["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    }  # fmt: skip
    assert stored["lifecycle"]["preStop"] == {"httpGet": {"port": "web", "path": "/", "scheme": "HTTP"}}


MAIN, INIT = "spec.containers[0]", "spec.initContainers[0]"


@cases("fields, field", {
    "nothing to do": ({"livenessProbe": {}}, "livenessProbe"),
    "two things to do": ({"startupProbe": {**RUN, "tcpSocket": {"port": 1}}}, "startupProbe.tcpSocket"),
    "no command": ({"livenessProbe": {"exec": {}}}, "livenessProbe.exec.command"),
    "no port": ({"livenessProbe": {"tcpSocket": {"port": 0}}}, "livenessProbe.tcpSocket.port"),
    "beyond the last port": ({"livenessProbe": {"tcpSocket": {"port": 65536}}}, "livenessProbe.tcpSocket.port"),
    "a number as a name": ({"livenessProbe": {"tcpSocket": {"port": "80"}}}, "livenessProbe.tcpSocket.port"),
    "scheme": ({"livenessProbe": {"httpGet": {"port": 1, "scheme": "FTP"}}}, "livenessProbe.httpGet.scheme"),
    "header": ({"livenessProbe": {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}}},
        "livenessProbe.httpGet.httpHeaders[0].name"),
    "negative": ({"livenessProbe": {**RUN, "periodSeconds": -1}}, "livenessProbe.periodSeconds"),
    "alive twice": ({"livenessProbe": {**RUN, "successThreshold": 2}}, "livenessProbe.successThreshold"),
    "started twice": ({"startupProbe": {**RUN, "successThreshold": 2}}, "startupProbe.successThreshold"),
    "no grace": ({"livenessProbe": {**RUN, "terminationGracePeriodSeconds": 0}},
        "livenessProbe.terminationGracePeriodSeconds"),
    "readiness ends nobody": ({"readinessProbe": {**RUN, "terminationGracePeriodSeconds": 9}},
        "readinessProbe.terminationGracePeriodSeconds"),
    "hook without anything to do": ({"lifecycle": {"postStart": {}}}, "lifecycle.postStart"),
    "pause": ({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}, "lifecycle.preStop.sleep.seconds"),
})  # fmt: skip
def test_refused(fields, field):
    assert f"{MAIN}.{field}" in fields_of(pod(containers=container(**fields)))


@cases("fields", {
    "ready twice": {"readinessProbe": {**RUN, "successThreshold": 2}},
    "port by name": {"livenessProbe": {"httpGet": {"port": "http-alt"}}},
    "hooks": {"lifecycle": {"preStop": {"sleep": {"seconds": 30}}, "postStart": RUN}},
})  # fmt: skip
def test_accepted(fields):
    assert causes(PODS, pod(containers=container(**fields))) == []


@pytest.mark.parametrize("fields", [{"livenessProbe": RUN}, {"lifecycle": {"postStart": RUN}}])
def test_init_container_that_ends_has_no_probes_and_hooks(fields):
    init = {"name": "first", "image": "any", "command": ["true"], **fields}
    (field,) = fields
    assert f"{INIT}.{field}" in fields_of(pod(initContainers=[init]))
    assert causes(PODS, pod(initContainers=[{**init, "restartPolicy": "Always"}])) == []
