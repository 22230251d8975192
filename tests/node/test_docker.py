"""Containers of images with docker: what tests/node/test_images.py asks of podman, as far as it is not podman's own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from cluster.store import store
from kube.resources import NODES
from proof.harness import engine
from proof.harness.waiting import until
from tests.node import test_images
from tests.node.driving import UNTIL_ASKED, told
from tests.node.test_images import gone, run, sh, waits


@pytest.fixture
def begun(machine, docker):
    return machine.with_engine(docker).begin()


@pytest.fixture
def registry(docker):
    folder = Path(tempfile.mkdtemp(prefix="volcano-registry-"))
    if not shutil.which("docker-registry"):
        pytest.skip("no registry: apt-get install docker-registry")
    one = engine.Registry(folder)
    docker.run("tag", engine.GREETER, f"{one.place}/greeter:1")
    docker.run("push", f"{one.place}/greeter:1")
    docker.run("rmi", f"{one.place}/greeter:1")
    yield one.place
    one.close()
    shutil.rmtree(folder)


def test_image_is_pulled_and_told_as_a_kubelet_tells_it(begun, registry):
    image = f"{registry}/greeter:1"
    uid = run(begun, image)
    status = begun.until_phase("Succeeded")["containerStatuses"][0]
    assert status["image"] == image
    assert status["imageID"].startswith(f"{registry}/greeter@sha256:")
    assert status["containerID"].startswith("docker://")
    assert [reason for reason, _ in told(uid)] == ["Pulling", "Pulled"]
    assert begun.printed(uid) == "hello all\n"
    run(begun, f"{registry}/nosuch:1", "waits")
    assert "manifest unknown" in waits(begun, "ErrImagePull", "waits")
    assert waits(begun, "ImagePullBackOff", "waits").startswith("Back-off pulling image")


def test_container_is_adopted_by_the_next_agent_and_gone_when_it_has_ended(begun, docker):
    uid = run(begun, command=sh(f"echo up; {UNTIL_ASKED}"))
    begun.until_phase("Running")
    until(lambda: begun.printed(uid) == "up\n")
    begun.crash()
    begun.again()
    begun.delete()
    begun.until(lambda: begun.pod() is None)
    gone(docker, uid)
    found = store.get(NODES, "", "here").object
    assert found["metadata"]["annotations"]["ui.volcano.sh/engine"].startswith("docker ")
    assert found["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("docker://")


class TestLimits(test_images.TestLimits):
    """What a container may use."""


class TestCommandsOfClients(test_images.TestCommandsOfClients):
    """What `kubectl exec` and `attach` do, through the shim's control socket."""
