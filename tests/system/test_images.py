"""The jobs that the design of Volcano Jobs prints, as it prints them, with images that a registry serves: they run.

`docker.io` is a registry of this machine here; the images' program stands in for TensorFlow, Spark and MPI.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

from kube.resources import NODES
from proof.harness import engine
from proof.harness.waiting import until
from proof.systems import seed
from proof.systems.system import running
from proof.systems.work import Person, Watcher
from tests.tables import cases

pytestmark = pytest.mark.system
IMAGES = ("ps-img", "worker-img", "driver-img", "executor-img", "mpi-image")
SERVES = """CMD ["/bin/sh", "-c", "echo $HOSTNAME serves; trap 'exit 0' TERM; while :; do sleep 0.1; done"]"""


@pytest.fixture(scope="module")
def system(podman, tmp_path_factory):
    if not shutil.which("docker-registry"):
        pytest.skip("no registry: apt-get install docker-registry")
    folder = Path(tempfile.mkdtemp(prefix="volcano-registry-"))
    registry = engine.Registry(folder)
    podman.trust(registry.address)
    made = podman.make("localhost/serves:1", SERVES)
    for name in IMAGES:
        podman.run("push", made, f"{registry.address}/library/{name}:latest")
    podman.redirect("docker.io", registry.address)
    with running(tmp_path_factory.mktemp("images"), VOLCANO_UI_ENGINE="podman") as started:
        yield started
    registry.close()
    shutil.rmtree(folder)


@cases("text, pods", {"tf-job": (seed.TF_JOB, 6), "spark-job": (seed.SPARK_JOB, 6), "mpi-job": (seed.PLUGINS, 3)})
def test_manifest_as_printed_runs_from_its_images(system, text, pods):
    with Person(system) as person, system.store() as store:
        watcher, name = Watcher(store), person.create(text)

        def all_run():
            found = [each["status"] for each in watcher.pods(name).values()]
            return [each.get("phase") for each in found] == ["Running"] * pods and found

        for each in until(all_run, what=lambda: f"all pods of {name} ({watcher.story(name)})"):
            (status,) = each["containerStatuses"]
            assert status["containerID"].startswith("podman://")
            assert status["imageID"].startswith(f"docker.io/library/{status['image']}@sha256:")
        person.post(f"/jobs/default/{name}/delete/")
        until(lambda: watcher.job(name) is None, what="the end of the job")


def test_up_and_the_node_say_by_what_images_run(system):
    assert any("Images run with podman" in line for line in system.output)
    with system.store() as store:
        nodes = [each.object for each in store.find(NODES)]
    assert [each["status"]["nodeInfo"]["containerRuntimeVersion"][:9] for each in nodes] == ["podman://"]
