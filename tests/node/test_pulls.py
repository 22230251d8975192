"""Pulls by a program that stands in for an engine: it has one image, and pulls for as long as a test wants."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from kube.kinds.core import Pod
from node.agent.engines import Engine
from node.agent.images import AUTHS, Images, ImageWaits
from proof.harness.waiting import until

ENGINE = """#!/bin/sh
case "$1 $2" in
  "image inspect") case "$3" in *here*) echo '[{"Id": "1234"}]';; *) exit 1;; esac;;
  *) echo "$@" >> FOLDER/pulled; exec cat FOLDER/gate;;
esac
"""


class Lookup:
    """A namespace with one Secret."""

    def secret(self, namespace, name):
        return {AUTHS: json.dumps({"auths": {"registry.example": {"auth": "aHVzaA=="}}}).encode()}


class Pulls:
    """Images, and the program that pulls them."""

    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "engine"
        self.program.write_text(ENGINE.replace("FOLDER", str(folder)))
        self.program.chmod(0o755)
        os.mkfifo(folder / "gate")
        self.gate = os.open(folder / "gate", os.O_RDWR)
        self.images = self.again()

    def again(self):
        engine = Engine("podman", "1", (str(self.program),))
        return Images(engine, Lookup(), lambda: None, self.folder / "pulls")

    def pulled(self):
        """Return the names that are or were pulled."""
        file = self.folder / "pulled"
        return [line.split()[-1] for line in file.read_text().splitlines()] if file.exists() else []

    def had(self, pod):
        """Return the image of a pod's container, None while it has none."""
        self.images.heard()
        try:
            return self.images.have(pod, pod.spec.containers[0])
        except ImageWaits:
            return None


@pytest.fixture
def pulls(tmp_path):
    found = Pulls(tmp_path)
    yield found
    found.images.stop()
    os.close(found.gate)


def pod(image, uid="u", **spec):
    metadata = {"name": uid, "namespace": "d", "uid": uid}
    containers = [{"name": "main", "image": image}]
    return msgspec.convert({"metadata": metadata, "spec": {"containers": containers, **spec}}, Pod)


def test_credentials_of_an_agent_that_was_killed_are_removed_by_the_next(pulls):
    pulls.had(pod("registry.example/away:1", imagePullSecrets=[{"name": "pull"}]))
    until(pulls.pulled)
    (left,) = (pulls.folder / "pulls").rglob("config.json")
    assert left.stat().st_mode & 0o777 == 0o600
    pulls.again()
    assert not left.exists()


def test_pull_that_hangs_gives_its_turn_back_when_its_pods_are_gone(pulls):
    away = [pod(f"registry.example/away:{number}", uid=f"u-{number}") for number in range(4)]
    for each in away:
        pulls.had(each)
    until(lambda: len(pulls.pulled()) == 3)
    (last,) = {f"registry.example/away:{number}" for number in range(4)} - set(pulls.pulled())
    for each in away:
        if each.spec.containers[0].image != last:
            pulls.images.forget(each.metadata.uid)
    until(lambda: last in pulls.pulled())


def test_image_that_is_here_does_not_wait_for_pulls_that_never_end(pulls):
    for number in range(5):
        pulls.had(pod(f"registry.example/away:{number}", uid=f"u-{number}"))
    until(lambda: len(pulls.pulled()) == 3)
    here = pod("registry.example/here:1")
    until(lambda: pulls.had(here))


def test_no_pull_begins_when_the_agent_ends(pulls):
    for number in range(5):
        pulls.had(pod(f"registry.example/away:{number}", uid=f"u-{number}"))
    until(lambda: len(pulls.pulled()) == 3)
    pulls.images.stop()
    over = set()
    until(lambda: over.update(pulls.images.heard()) or len(over) == 5)
    assert len(pulls.pulled()) == 3


def test_image_that_the_pod_does_not_name_any_more_is_not_had(pulls):
    pulls.had(pod("registry.example/here:1"))
    until(lambda: pulls.had(pod("registry.example/here:1")))
    assert not pulls.had(pod("registry.example/away:1"))
    assert pulls.had(pod("registry.example/here:1"))
