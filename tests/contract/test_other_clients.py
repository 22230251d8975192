"""kr8s and lightkube: programs that do not use the official library."""

from __future__ import annotations

import kr8s
import lightkube
import pytest
from kr8s.objects import ConfigMap
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources import core_v1
from lightkube.types import PatchType


@pytest.fixture
def with_kr8s(kubeconfig):
    return kr8s.api(kubeconfig=str(kubeconfig))


@pytest.fixture
def with_lightkube(kubeconfig):
    return lightkube.Client(
        config=lightkube.KubeConfig.from_file(str(kubeconfig)), field_manager="tests", namespace="default"
    )


def test_kr8s_creates_patches_reads_and_deletes(with_kr8s):
    made = ConfigMap(
        {"metadata": {"name": "by-kr8s", "namespace": "default"}, "data": {"a": "1"}}, api=with_kr8s
    )
    made.create()
    made.patch({"data": {"a": "2"}})
    assert ConfigMap.get("by-kr8s", namespace="default", api=with_kr8s).data == {"a": "2"}
    made.label({"colour": "blue"})
    found = with_kr8s.get("configmaps", namespace="default", label_selector={"colour": "blue"})
    assert [each.name for each in found] == ["by-kr8s"]
    made.delete()
    assert not made.exists()


def test_kr8s_sees_volcanos_kinds(with_kr8s):
    names = [queue.name for queue in with_kr8s.get("queues.scheduling.volcano.sh")]
    assert "default" in names
    assert with_kr8s.version()["gitVersion"].startswith("v1.")


def test_lightkube_applies_and_finds_conflicts(with_lightkube):
    client = with_lightkube

    def wanted(value):
        return core_v1.ConfigMap(metadata=ObjectMeta(name="by-lightkube"), data={"a": value})

    assert client.apply(wanted("1")).data == {"a": "1"}
    other = lightkube.Client(config=client.config, field_manager="other", namespace="default")
    with pytest.raises(ApiError) as caught:
        other.apply(wanted("2"))
    assert (caught.value.status.code, caught.value.status.reason) == (409, "Conflict")
    assert 'conflict with "tests"' in caught.value.status.message
    assert other.apply(wanted("2"), force=True).data == {"a": "2"}
    patched = client.patch(
        core_v1.ConfigMap, "by-lightkube", {"data": {"b": "3"}}, patch_type=PatchType.MERGE
    )
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
