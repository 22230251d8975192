from __future__ import annotations

import os
from typing import NamedTuple

import pytest
from kubernetes import client, config

from proof.harness.kubectl import Kubectl
from proof.harness.ports import free_port
from proof.harness.waiting import until
from proof.systems.system import running


@pytest.fixture(autouse=True)
def _database(django_db_blocker):
    """The tests talk to the system that they started, not to the database of the test run."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="package")
def system(tmp_path_factory):
    """One running system for all of these tests."""
    with running(tmp_path_factory.mktemp("contract") / "data", nodes=2) as started:
        yield started


@pytest.fixture(scope="package")
def kubeconfig(system, tmp_path_factory):
    """A kubeconfig of the administrator."""
    return system.kubeconfig(tmp_path_factory.mktemp("kubeconfig") / "config")


class WebPod(NamedTuple):
    """A pod that answers HTTP."""

    name: str
    port: int


SERVES = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b"from the pod")
ThreadingHTTPServer(("", %d), Handler).serve_forever()
"""


@pytest.fixture(scope="package")
def web_pod(kubeconfig):
    """A pod that serves a page, and does so already."""
    port = free_port()
    probe = {"exec": {"command": ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))"]}}
    container = {
        "name": "main", "image": "any", "command": ["python3", "-c", SERVES % port], "ports": [{"containerPort": port}],
        "readinessProbe": {**probe, "periodSeconds": 1, "timeoutSeconds": 10},
    }  # fmt: skip
    settings = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=settings)
    with client.ApiClient(settings) as api:
        core = client.CoreV1Api(api)
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        core.create_namespaced_pod("default", {"metadata": {"name": "serves"}, "spec": spec})

        def ready():
            found = core.read_namespaced_pod("serves", "default").status.conditions or ()
            return [each for each in found if (each.type, each.status) == ("Ready", "True")]

        until(ready, what="a pod that is ready")
        api.rest_client.pool_manager.clear()  # it leaves its connections open
    return WebPod("serves", port)


@pytest.fixture
def kubectl(kubectl_path, kubeconfig, tmp_path):
    """Run kubectl against the system, with a cache and a home of its own."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
    return Kubectl(kubectl_path, environment)
