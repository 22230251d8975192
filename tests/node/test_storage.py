"""What pods may use of the disk and of memory, their own /tmp and /dev/shm, and whose the files of claims are."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import msgspec
import pytest

from cluster.runtime import nudge
from cluster.store import Create, Delete, store
from kube.kinds.core import Pod
from kube.kinds.meta import ObjectMeta
from kube.resources import CLAIMS, NAMESPACES
from node.paths import Layout
from node.pods.cluster import Dismissed
from node.pods.environment import Claim, ConfigError
from node.rules import storage
from node.rules.storage import Limits, Used
from node.shim.shim import read_json
from node.volumes import claims, memory_volumes, published_files, retention
from proof.systems.system import PROJECT
from tests.node.driving import CLAIM, EMPTY, Node, beginning, container, mount, short_folder
from tests.tables import cases

MI = 1 << 20
AT_V, BRIEF = [mount("v", "/v")], {"terminationGracePeriodSeconds": 1}


def limited(name="main", limit=None, **limits):
    return {"name": name, "resources": {"limits": limits | ({"ephemeral-storage": limit} if limit else {})}}


IN_MEMORY = {"v": {"medium": "Memory"}, "w": {"medium": "Memory", "sizeLimit": "1Mi"}, "x": {}}


class TestDisk:
    @cases("containers, volumes, expected", {
        "none": ([limited()], {}, Limits({}, {}, None)),
        "of a container": ([limited(limit="1Mi")], {}, Limits({}, {"main": MI}, MI)),
        "of all": ([limited("a", "1Mi"), limited("b", "2Mi")], {}, Limits({}, {"a": MI, "b": 2 * MI}, 3 * MI)),
        "of one of two": ([limited("a", "1Mi"), limited("b")], {}, Limits({}, {"a": MI}, None)),
        "of a volume": ([limited()], {"v": {"sizeLimit": "1Mi"}, "w": {}}, Limits({"v": MI}, {}, None)),
        "of volumes in memory": ([limited(memory="2Mi")], IN_MEMORY, Limits({"v": 2 * MI, "w": MI}, {}, None)),
        "what cannot be read": ([limited(limit="nonsense")], {"v": {"sizeLimit": "much"}}, Limits({}, {}, None)),
    })  # fmt: skip
    def test_limits_of_a_pod(self, containers, volumes, expected):
        volumes = [{"name": name, "emptyDir": each} for name, each in volumes.items()]
        found = storage.limits(msgspec.convert({"spec": {"containers": containers, "volumes": volumes}}, Pod))
        assert (found, bool(found)) == (expected, expected != Limits({}, {}, None))

    @cases("limits, used, message", {
        "just what is allowed": (Limits({"v": MI}, {}), Used({"v": MI}, {}), "^$"),
        "volume": (Limits({"v": MI}, {}), Used({"v": 3 * MI}, {}), 'EmptyDir volume "v" exceeds.*3 MiB, and 1 MiB are'),
        "another volume": (Limits({"v": MI}, {}), Used({"w": 3 * MI}, {}, 9 * MI), "^$"),
        "volume in memory": (Limits({"v": MI}, {}), Used({}, {}, 0, {"v": 2 * MI}), '"v" exceeds.*2 MiB, and 1 MiB are'),
        "memory is no part of the disk": (Limits({}, {"a": MI}, MI), Used({}, {}, 0, {"v": 9 * MI}), "^$"),
        "log": (Limits({}, {"a": MI}), Used({}, {"a": 2 * MI}), "Container a exceeded.*: its log has 2 MiB, and 1"),
        "everything": (Limits({}, {"a": MI}, MI), Used({"v": MI // 2}, {"a": MI // 2}, MI), "Pod .* exceeds.*: 2 MiB, and 1 "),
    })  # fmt: skip
    def test_who_has_too_much_is_told_how_much(self, limits, used, message):
        assert re.search(message, storage.excess(limits, used))

    def test_pod_with_too_much_is_evicted_and_loses_it(self, node):
        script, spec = "head -c 3000000 /dev/zero > {}; sleep 600", {"restartPolicy": "Always", **BRIEF}
        pods = {"volume": ({}, "1Mi"), "scratch": ({"ephemeral-storage": "1Mi"}, None), "unlimited": ({}, None)}
        homes = {}
        for name, (limits, size) in pods.items():
            path, volume = ("$VOLUME_V/big", {"sizeLimit": size}) if size else ("big", {})
            main, volumes = {"resources": {"limits": limits}}, [{"name": "v", "emptyDir": volume}]
            uid = node.shell(script.format(path), name, main, AT_V, volumes=volumes, **spec)
            homes[name] = node.data / "node" / "pods" / uid
        written = [home / each for home in homes.values() for each in ("_volumes/v/big", "_work/big")]
        node.until(lambda: [each.stat().st_size for each in written if each.exists()] == [3_000_000] * 3)
        node.until(lambda: node.agent.storage.check() or len(node.agent.storage.excess()) == 2)
        for name in ("volume", "scratch"):
            status = node.until_phase("Failed", name)
            assert status["reason"] == "Evicted"
            assert re.search(r"2\.8\d MiB, and 1 MiB are allowed", status["message"])
        node.until(lambda: len(node.agent.pods) == 1)
        node.agent.storage.check()
        for name in ("volume", "scratch"):
            left = {one.name for one in homes[name].iterdir()}
            assert left & {"_work", "_tmp", "_volumes", "main"} == {"main"}, "its log stays"
        assert node.status("unlimited")["phase"] == "Running"

    def test_pod_whose_eviction_an_agent_did_not_see_to_its_end_has_failed(self, node):
        script = f"trap '' TERM; head -c 3000000 /dev/zero > big; touch {node.out}/written; sleep 600 & wait"
        uid = node.shell(script, restartPolicy="Always", **BRIEF)
        node.until((node.out / "written").exists)
        node.until_phase("Running")  # so that the agent knows whom to stop
        node.agent.runtime.stop(uid, "Evicted", 0.2)
        node.again()
        assert node.until_phase("Failed")["reason"] == "Evicted"


def test_full_disk_is_told_of_in_the_same_words_each_time(tmp_path, monkeypatch):
    """A pod's status says them, and is written again when they change."""

    def full(path, *args, **options):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    volume = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(os, "mkdir", full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as error:
            published_files.publish(volume, {"key": (b"value", 0o644)})
        details = error.value.strerror, error.value.filename
        assert details == ("No space left on device", "the files of a volume")
    os.close(volume)


MEMORY = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
OF_MEMORY = {"mounts": AT_V, "volumes": [MEMORY]}


def in_memory(node):
    return sorted(one.name for one in node.agent.layout.memory.rglob("*") if one.name != "_trash")


class TestOwnPlaces:
    @pytest.fixture(params=["root", "user"])
    def begun(self, request, transactional_db, redis_url, settings):
        settings.REDIS_URL = redis_url
        nudge.client.cache_clear()
        (PROJECT / ".cache").mkdir(exist_ok=True)
        with short_folder(dir=PROJECT / ".cache") as data, contextlib.closing(Node(data)) as node:
            node.shows_out = False
            yield beginning(node, request.param)
            shutil.rmtree(Layout(data).memory, ignore_errors=True)
        nudge.client.cache_clear()

    def test_tmp_is_the_pods_and_nothing_of_the_machine_is_in_it(self, begun):
        (begun.out / "file").touch()
        first = container("touch /tmp/mine", name="first")
        script = f"echo $TMPDIR; ls -A /tmp; ls -A /var/tmp; stat -c %a /tmp; ls {begun.out}"
        words = begun.ran(script, initContainers=[first])
        assert words[:4] == ["/tmp", "mine", "mine", "1777"], "its containers share it"
        assert "No such file" in words[4]
        assert not Path("/tmp/mine").exists()
        assert begun.ran("ls -A /tmp", "other") == []
        for number, path in enumerate(("/tmp", "/tmp/deep/er", "/dev/shm")):
            script = f"touch {path}/in-volume; ls -A $VOLUME_V"
            assert begun.ran(script, f"p-{number}", mounts=[mount("v", path)], volumes=[EMPTY]) == ["in-volume"]

    def test_shared_memory_is_the_containers_own_and_bounded_by_its_limit_as_it_counts(self, begun):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as outside:
            # Not filled: what is in it counts as memory, so the container is ended about then.
            script = "ls -A /dev/shm; df --block-size=1 --output=size /dev/shm; touch /dev/shm/much"
            words = begun.ran(script, main={"resources": {"limits": {"memory": "8Mi"}}})
            assert Path(outside.name).name not in " ".join(words)
        assert words[-1].strip() == str(8 * MI)
        assert not Path("/dev/shm/much").exists()
        script = "head -c 60000000 /dev/zero > /dev/shm/much; x=$(head -c 60000000 /dev/zero | tr '\\0' a); sleep 600"
        begun.shell(script, "much", {"resources": {"limits": {"memory": "100Mi"}}})
        assert begun.until_end("much")["reason"] == "OOMKilled"

    def test_volume_in_memory_is_shared_by_the_pods_containers_and_goes_with_the_pod(self, begun):
        script = "stat -f -c %T /v; test -e /v/ours; ls -A /dev/shm; cat /v/ours"
        first = container("echo hello > /v/ours", *AT_V, name="first")
        assert begun.ran(script, initContainers=[first], **OF_MEMORY) == ["tmpfs", "hello"]
        assert begun.agent.layout.memory.stat().st_mode & 0o777 == 0o700
        begun.until(lambda: not begun.agent.pods)
        begun.agent.storage.check()
        assert in_memory(begun) == []

    def test_volume_in_memory_outlives_its_container_and_its_agent(self, begun):
        script = "test -e /v/seen && exit 0; touch /v/seen; sleep 0.3; exit 1"
        begun.shell(script, restartPolicy="OnFailure", **OF_MEMORY)
        begun.until(lambda: "seen" in in_memory(begun))
        begun.again()
        retention.clean(begun.agent.layout, set(begun.agent.pods), set(), days=1, most_bytes=1 << 30)
        assert begun.until_phase("Succeeded")["containerStatuses"][0]["restartCount"] == 1

    def test_pod_with_too_much_in_memory_is_evicted_and_its_memory_freed(self, begun):
        script = "head -c 3000000 /dev/zero > /v/much; echo done; sleep 600"
        uid = begun.shell(script, **OF_MEMORY, **BRIEF)
        begun.until(lambda: "done" in begun.printed(uid))
        begun.agent.storage.check()
        status = begun.until_phase("Failed")
        assert (status["reason"], "2.86 MiB, and 1 MiB are allowed" in status["message"]) == ("Evicted", True)
        begun.until(lambda: not begun.agent.pods)
        for name in ("lost", "kept"):  # of pods that are gone, of which one is known
            (begun.agent.layout.memory / name).mkdir()
        retention.clean(begun.agent.layout, {"kept"}, set(), days=1, most_bytes=1 << 30)
        begun.agent.storage.check()
        assert in_memory(begun) == ["kept"]

    def test_directory_that_is_not_ours_alone_is_not_used(self, tmp_path):
        with short_folder(dir="/dev/shm") as ours:
            assert memory_volumes.begin(ours)
            ours.chmod(0o777)
            (ours / "link").symlink_to(tmp_path)
            assert not any(map(memory_volumes.begin, (ours, ours / "link", tmp_path / "on-the-disk")))


HOUR = 3600.0
CLAIMED = {"mounts": AT_V, "volumes": [CLAIM]}


@pytest.fixture
def begun(machine):
    for name in ("kube-system", "d"):
        store.write(Create(NAMESPACES, {"metadata": {"name": name}}))
    return machine.begin()


def delete_claim():
    store.write(Delete(CLAIMS, "d", "c"))


def delete_namespace():
    delete_claim()  # as the controller of namespaces does before a namespace goes
    store.write(Delete(NAMESPACES, "", "d"), Create(NAMESPACES, {"metadata": {"name": "d"}}))


def age(node, *uids):
    for uid in uids:
        os.utime(node.data / "node" / "claims" / uid / "claim.json", (time.time() - HOUR,) * 2)


RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["", "agent starts again"])


class Cluster:
    def __init__(self, *found, name="one", made=0.0, error=None) -> None:
        self.found, self.name, self.made, self.error = found, name, made, error

    def claim(self, namespace, name):
        return Claim(self.found[0], self.made) if self.found else None

    def existing_claims(self, uids):
        if self.error is not None:
            raise self.error
        return set(self.found) & set(uids)

    def cluster(self):
        return self.name


POD = Pod(metadata=ObjectMeta(name="p", namespace="d", uid="pod"))


@pytest.fixture
def layout(tmp_path):
    found = Layout(tmp_path)
    found.pod("pod").mkdir(parents=True)
    return found


def given(layout, cluster, old=True):
    claims.begin(layout)
    files = claims.directory(layout, POD, "c", cluster)
    files.mkdir(exist_ok=True)
    (files / "f").touch()
    if old:
        os.utime(files.parent / "claim.json", (time.time() - HOUR,) * 2)
    return files


class TestUpdate:
    """Earlier versions had claims' directories by namespace and name."""

    @pytest.fixture
    def old(self, layout):
        folder = layout.named_claims / "d" / "c"
        folder.mkdir(parents=True)
        return folder

    @cases("updated, made, adopted", {
        "of the claim that is older than all": (0, -2, True),
        "the claim was made after its last change": (2, 1, False),
        "the claim was made after the update, and a pod still writes": (-2, -1, False),
    })  # fmt: skip
    def test_whose_an_earlier_directory_is_which_is_taken_once(self, layout, old, updated, made, adopted):
        """By hours from now, at which the directory was changed."""
        now = time.time()
        (old / "kept").touch()
        claims.begin(layout)
        os.utime(layout.named_claims, (now + updated * HOUR,) * 2)
        files = given(layout, Cluster("u", made=now + made * HOUR))
        assert (files / "kept").exists() == adopted
        assert (old / "kept").exists(), "as what it was, or as a link for pods that run"
        (layout.pod("pod") / "_claims.json").unlink()
        assert not adopted or not (given(layout, Cluster("w", made=now - HOUR)) / "kept").exists()

    def test_an_agent_of_this_version_finds_what_one_before_it_left(self, begun):
        uid = begun.claim()
        begun.crash()
        layout = Layout(begun.data)
        layout.claims.rmdir()
        (layout.named_claims / "d" / "c").mkdir(parents=True)
        (layout.named_claims / "d" / "c" / "kept").write_text("before")
        begun.again()
        assert begun.ran("cat $VOLUME_V/kept", **CLAIMED) == ["before"]
        assert (begun.files(uid) / "kept").exists()


class TestClaims:
    @pytest.mark.parametrize("delete", [delete_claim, delete_namespace], ids=["claim", "namespace"])
    @RESTARTS
    def test_a_claim_of_the_same_name_is_another_ones_and_empty(self, begun, delete, restarts):
        first = begun.claim()
        assert begun.ran("echo of-sam > $VOLUME_V/secret", "sam", **CLAIMED) == []
        assert begun.ran("cat $VOLUME_V/secret", "sam-again", **CLAIMED) == ["of-sam"]
        delete()
        if restarts:
            begun.again()
        second = begun.claim()
        assert begun.ran("ls -A $VOLUME_V", "sa2", **CLAIMED) == []
        age(begun, first, second)
        begun.until(lambda: not begun.agent.pods)
        begun.clean()
        assert (begun.files(first).exists(), begun.files(second).exists()) == (False, True)
        begun.agent.storage.check()
        assert list(begun.agent.layout.trash.iterdir()) == []

    @RESTARTS
    def test_files_of_a_deleted_claim_stay_as_long_as_a_pod_that_has_them(self, begun, restarts):
        first = begun.claim()
        script = "cat $VOLUME_V/f && exit 0; echo mine > $VOLUME_V/f; until [ -e {}/go ]; do sleep 0.01; done; exit 1"
        uid = begun.shell(script.format(begun.out), restartPolicy="OnFailure", **CLAIMED)
        begun.until(lambda: (begun.files(first) / "f").exists())
        delete_claim()
        second = begun.claim()
        if restarts:
            begun.again()
        age(begun, first)
        begun.clean()
        assert (begun.files(first) / "f").exists()
        begun.let_go()
        begun.until_phase("Succeeded")
        assert begun.status()["containerStatuses"][0]["restartCount"] == 1, "it began again with the files that it had"
        assert not begun.files(second).exists()
        assert read_json(str(begun.agent.layout.pod(uid) / "_claims.json")) == {"c": first}
        begun.until(lambda: not begun.agent.pods)
        begun.clean()
        assert not begun.files(first).exists()

    @cases("cluster, pods, old, stays", {
        "gone": (Cluster(), (), True, False),
        "there": (Cluster("u"), (), True, True),
        "gone, and a pod has it": (Cluster(), ("pod",), True, True),
        "gone, and another pod runs": (Cluster(), ("other",), True, False),
        "made a moment ago": (Cluster(), (), False, True),
        "another cluster's": (Cluster(name="two"), (), True, True),
        "a cluster that cannot be told from others": (Cluster(name=""), (), True, True),
    })  # fmt: skip
    def test_when_a_claims_files_go(self, layout, cluster, pods, old, stays):
        files = given(layout, Cluster("u"), old)
        claims.clean(layout, pods, cluster)
        assert files.exists() == stays

    def test_nothing_goes_that_no_agent_has_signed_or_while_the_cluster_does_not_answer(self, layout):
        claims.begin(layout)
        with pytest.raises(ConfigError, match='persistentvolumeclaim "c" not found'):
            claims.directory(layout, POD, "c", Cluster())
        (layout.claims / "v" / "files").mkdir(parents=True)
        claims.clean(layout, (), Cluster())
        assert [each.name for each in layout.claims.iterdir()] == ["v"]
        files = given(layout, Cluster("u"))
        for error in (OSError(), KeyError("existing"), Dismissed()):
            with pytest.raises(type(error)):
                claims.clean(layout, (), Cluster(error=error))
            assert files.exists()
