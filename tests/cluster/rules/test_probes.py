"""Probes and hooks at the door: Kubernetes' defaults and refusals."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        pytest.param({"livenessProbe": {}}, "livenessProbe", id="nothing to do"),
        pytest.param({"startupProbe": {**RUN, "tcpSocket": {"port": 1}}}, "startupProbe.tcpSocket", id="two things to do"),
        pytest.param({"livenessProbe": {"exec": {}}}, "livenessProbe.exec.command", id="no command"),
        pytest.param({"livenessProbe": {"tcpSocket": {"port": 0}}}, "livenessProbe.tcpSocket.port", id="no port"),
        pytest.param({"livenessProbe": {"tcpSocket": {"port": 65536}}}, "livenessProbe.tcpSocket.port", id="beyond the last port"),
        pytest.param({"livenessProbe": {"tcpSocket": {"port": "80"}}}, "livenessProbe.tcpSocket.port", id="a number as a name"),
        pytest.param({"livenessProbe": {"httpGet": {"port": 1, "scheme": "FTP"}}}, "livenessProbe.httpGet.scheme", id="scheme"),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}}},
            "livenessProbe.httpGet.httpHeaders[0].name", id="header",
        ),
        pytest.param({"livenessProbe": {**RUN, "periodSeconds": -1}}, "livenessProbe.periodSeconds", id="negative"),
        pytest.param({"livenessProbe": {**RUN, "successThreshold": 2}}, "livenessProbe.successThreshold", id="alive twice"),
        pytest.param({"startupProbe": {**RUN, "successThreshold": 2}}, "startupProbe.successThreshold", id="started twice"),
        pytest.param(
            {"livenessProbe": {**RUN, "terminationGracePeriodSeconds": 0}}, "livenessProbe.terminationGracePeriodSeconds",
            id="no grace",
        ),
        pytest.param(
            {"readinessProbe": {**RUN, "terminationGracePeriodSeconds": 9}}, "readinessProbe.terminationGracePeriodSeconds",
            id="readiness ends nobody",
        ),
        pytest.param({"lifecycle": {"postStart": {}}}, "lifecycle.postStart", id="hook without anything to do"),
        pytest.param({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}, "lifecycle.preStop.sleep.seconds", id="pause"),
    ],
)  # fmt: skip
def test_refused(fields, field):
    assert f"{MAIN}.{field}" in fields_of(pod(containers=container(**fields)))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"readinessProbe": {**RUN, "successThreshold": 2}}, id="ready twice"),
        pytest.param({"livenessProbe": {"httpGet": {"port": "http-alt"}}}, id="port by name"),
        pytest.param({"lifecycle": {"preStop": {"sleep": {"seconds": 30}}, "postStart": RUN}}, id="hooks"),
    ],
)
def test_accepted(fields):
    assert causes(PODS, pod(containers=container(**fields))) == []


@pytest.mark.parametrize("fields", [{"livenessProbe": RUN}, {"lifecycle": {"postStart": RUN}}])
def test_init_container_that_ends_has_no_probes_and_hooks(fields):
    init = {"name": "first", "image": "any", "command": ["true"], **fields}
    (field,) = fields
    assert f"{INIT}.{field}" in fields_of(pod(initContainers=[init]))
    assert causes(PODS, pod(initContainers=[{**init, "restartPolicy": "Always"}])) == []
