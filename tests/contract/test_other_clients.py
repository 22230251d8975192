"""kr8s and lightkube: programs that do not use the official library."""

from __future__ import annotations

import subprocess
import sys

import lightkube
import pytest
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources import core_v1
from lightkube.types import PatchType

from proof.systems.system import PROJECT

pytestmark = pytest.mark.system


@pytest.fixture
def with_lightkube(kubeconfig):
    settings = lightkube.KubeConfig.from_file(str(kubeconfig))
    with lightkube.Client(config=settings, field_manager="tests", namespace="default") as client:
        yield client


def test_kr8s_creates_patches_reads_watches_deletes_and_forwards(kubeconfig, web_pod):
    program = [sys.executable, "-m", "tests.contract.programs.with_kr8s", str(kubeconfig)]
    program += [web_pod.name, str(web_pod.port)]
    done = subprocess.run(program, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lightkube_applies_and_finds_conflicts(with_lightkube):
    client = with_lightkube

    def wanted(value):
        return core_v1.ConfigMap(metadata=ObjectMeta(name="by-lightkube"), data={"a": value})

    assert client.apply(wanted("1")).data == {"a": "1"}
    with pytest.raises(ApiError) as caught:
        client.apply(wanted("2"), field_manager="other")
    assert (caught.value.status.code, caught.value.status.reason) == (409, "Conflict")
    assert 'conflict with "tests"' in caught.value.status.message
    assert client.apply(wanted("2"), field_manager="other", force=True).data == {"a": "2"}
    patched = client.patch(core_v1.ConfigMap, "by-lightkube", {"data": {"b": "3"}}, patch_type=PatchType.MERGE)
    assert patched.data == {"a": "2", "b": "3"}
    client.delete(core_v1.ConfigMap, "by-lightkube")


def test_lightkube_watches_from_a_list(with_lightkube):
    client = with_lightkube
    made = client.create(core_v1.ConfigMap(metadata=ObjectMeta(name="watched"), data={}))
    client.patch(core_v1.ConfigMap, "watched", {"data": {"a": "1"}})
    client.delete(core_v1.ConfigMap, "watched")
    seen = []
    for kind, obj in client.watch(
        core_v1.ConfigMap, fields={"metadata.name": "watched"}, resource_version=made.metadata.resourceVersion
    ):
        seen.append((kind, obj.data))
        if kind == "DELETED":
            break
    assert seen == [("MODIFIED", {"a": "1"}), ("DELETED", {"a": "1"})]


def test_lightkube_reads_volcanos_kinds(with_lightkube):
    job = create_namespaced_resource("batch.volcano.sh", "v1alpha1", "Job", "jobs")
    assert isinstance(list(with_lightkube.list(job)), list)
