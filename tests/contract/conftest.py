from __future__ import annotations

import json
import os
from typing import NamedTuple

import pytest

from proof.harness.kubectl import WAIT, Kubectl
from proof.harness.ports import free_port
from proof.systems.system import running
from tests.builders import container, pod


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


@pytest.fixture(scope="package")
def web_pod(kubectl_path, kubeconfig, tmp_path_factory):
    """A pod that serves a page, and does so already."""
    port, kubectl = free_port(), terminal(kubectl_path, kubeconfig, tmp_path_factory.mktemp("home"))
    script = f"printf 'from the pod' | tee index.html hello; exec python3 -m http.server {port}"
    command = ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))"]
    probe = {"exec": {"command": command}, "periodSeconds": 1, "timeoutSeconds": 10}
    serves = container(command=["sh", "-c", script], ports=[{"containerPort": port}], readinessProbe=probe)
    kubectl("apply", "-f", "-", stdin=json.dumps(pod("serves", serves, terminationGracePeriodSeconds=1)))
    kubectl("wait", "--for=condition=Ready", "pod/serves", WAIT)
    return WebPod("serves", port)


@pytest.fixture
def kubectl(kubectl_path, kubeconfig, tmp_path):
    return terminal(kubectl_path, kubeconfig, tmp_path)


def terminal(path, kubeconfig, home):
    """Run kubectl against the system, with a cache and a home of its own."""
    return Kubectl(path, {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)})
