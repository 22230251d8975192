"""What pods may use of the disk: limits and their sentences, what is counted, and who is evicted."""

from __future__ import annotations

import os
import re

import msgspec
import pytest

from kube.kinds.core import Pod
from node import file_trees, storage
from node.storage import Limits, Used
from tests.tables import cases

MI = 1 << 20


def container(name="main", limit=None):
    return {"name": name, "resources": {"limits": {"ephemeral-storage": limit} if limit else {}}}


@cases("spec, expected", {
    "none": ({"containers": [container()]}, Limits({}, {}, None)),
    "of a container": ({"containers": [container(limit="1Mi")]}, Limits({}, {"main": MI}, MI)),
    "of all containers": (
        {"containers": [container("a", "1Mi"), container("b", "2Mi")]}, Limits({}, {"a": MI, "b": 2 * MI}, 3 * MI),
    ),
    "of one of two": ({"containers": [container("a", "1Mi"), container("b")]}, Limits({}, {"a": MI}, None)),
    "of a volume": (
        {"containers": [container()], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "w", "emptyDir": {}}]},
        Limits({"v": MI}, {}, None),
    ),
    "of volumes in memory": (
        {
                "containers": [{"name": "a", "resources": {"limits": {"memory": "2Mi"}}}],
                "volumes": [
                    {"name": "v", "emptyDir": {"medium": "Memory"}},
                    {"name": "w", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                    {"name": "x", "emptyDir": {}},
                ],
            },
        Limits({"v": 2 * MI, "w": MI}, {}, None),
    ),
    "what cannot be read": (
        {"containers": [container(limit="nonsense")], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "much"}}]},
        Limits({}, {}, None),
    ),
})  # fmt: skip
def test_limits_of_a_pod(spec, expected):
    found = storage.limits(msgspec.convert({"spec": spec}, Pod))
    assert found == expected
    assert bool(found) == (expected != Limits({}, {}, None))


@cases("limits, used, told", {
    "just what is allowed": (Limits({"v": MI}, {}), Used({"v": MI}, {}), ""),
    "volume": (
        Limits({"v": MI}, {}), Used({"v": 3 * MI}, {}),
        'Usage of EmptyDir volume "v" exceeds the limit: 3 MiB, and 1 MiB are allowed.',
    ),
    "another volume": (Limits({"v": MI}, {}), Used({"w": 3 * MI}, {}, 9 * MI), ""),
    "volume in memory": (
        Limits({"v": MI}, {}), Used({}, {}, 0, {"v": 2 * MI}),
        'Usage of EmptyDir volume "v" exceeds the limit: 2 MiB, and 1 MiB are allowed.',
    ),
    "memory is no part of the disk": (Limits({}, {"a": MI}, MI), Used({}, {}, 0, {"v": 9 * MI}), ""),
    "log": (
        Limits({}, {"a": MI}), Used({}, {"a": 2 * MI}),
        "Container a exceeded its local ephemeral storage limit: its log has 2 MiB, and 1 MiB are allowed.",
    ),
    "everything together": (
        Limits({}, {"a": MI}, MI), Used({"v": MI // 2}, {"a": MI // 2}, MI),
        "Pod ephemeral local storage usage exceeds the total limit of containers: "
            "2 MiB, and 1 MiB are allowed in its directories, emptyDirs and logs.",
    ),
})  # fmt: skip
def test_who_has_too_much_is_told_how_much(limits, used, told):
    assert storage.excess(limits, used) == told


def test_size_follows_no_link_and_counts_a_file_once(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_bytes(b"x" * MI)
    before = file_trees.size(inside).bytes
    assert MI <= before < 2 * MI
    (inside / "link").symlink_to(outside)
    (inside / "folder").mkdir()
    os.link(inside / "file", inside / "folder" / "again")
    assert file_trees.size(inside).bytes - before < MI


@pytest.mark.parametrize("what", ["volume", "scratch"])
def test_pod_with_too_much_is_evicted_and_loses_it(node, what):
    limits = {"ephemeral-storage": "1Mi"} if what == "scratch" else {}
    place = "$VOLUME_V/big" if what == "volume" else "big"
    script = f"head -c 3000000 /dev/zero > {place}; touch {node.out}/written; sleep 600"
    uid = node.submit(
        containers=[{
            "name": "main", "command": ["sh", "-c", script], "resources": {"limits": limits},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }],
        volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Mi"} if what == "volume" else {}}],
        restartPolicy="Always", terminationGracePeriodSeconds=1,
    )  # fmt: skip
    node.shell("head -c 3000000 /dev/zero > big; sleep 600", "unlimited")
    node.until((node.out / "written").exists)
    node.agent.storage.look()
    status = node.until_phase("Failed")
    assert status["reason"] == "Evicted"
    assert re.search(r"2\.8\d MiB, and 1 MiB are allowed", status["message"])
    node.until_phase("Running", "unlimited")
    node.agent.storage.look()
    left = {one.name for one in (node.data / "node" / "pods" / uid).iterdir()}
    assert left & {"_work", "_tmp", "_volumes"} == set()
    assert "main" in left, "its log stays"


def test_pod_whose_eviction_an_agent_did_not_see_to_its_end_has_failed(node):
    node.submit(
        command=["sh", "-c", f"trap '' TERM; head -c 3000000 /dev/zero > big; touch {node.out}/written; sleep 600 & wait"],
        restartPolicy="Always", terminationGracePeriodSeconds=1,
    )  # fmt: skip
    node.until((node.out / "written").exists)
    node.until_phase("Running")  # so that the agent knows whom to stop
    (uid,) = node.agent.pods
    node.agent.runtime.stop(uid, "Evicted", 0.2)
    node.crash()
    node.again()
    assert node.until_phase("Failed")["reason"] == "Evicted"
