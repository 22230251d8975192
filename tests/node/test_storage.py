"""What pods may use of the disk and of memory, and their own /tmp and /dev/shm."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest

from cluster.runtime import nudge
from kube.kinds.core import Pod
from node import file_trees, storage
from node.agent import memory_volumes, published_files, retention
from node.paths import Layout
from node.storage import Limits, Used
from proof.systems.system import PROJECT
from tests.node.driving import EMPTY, Node, beginning, mount
from tests.tables import cases

MI = 1 << 20


def container(name="main", limit=None, **limits):
    return {"name": name, "resources": {"limits": limits | ({"ephemeral-storage": limit} if limit else {})}}


class TestDisk:
    @cases("containers, volumes, expected", {
        "none": ([container()], {}, Limits({}, {}, None)),
        "of a container": ([container(limit="1Mi")], {}, Limits({}, {"main": MI}, MI)),
        "of all": ([container("a", "1Mi"), container("b", "2Mi")], {}, Limits({}, {"a": MI, "b": 2 * MI}, 3 * MI)),
        "of one of two": ([container("a", "1Mi"), container("b")], {}, Limits({}, {"a": MI}, None)),
        "of a volume": ([container()], {"v": {"sizeLimit": "1Mi"}, "w": {}}, Limits({"v": MI}, {}, None)),
        "of volumes in memory": (
            [container(memory="2Mi")],
            {"v": {"medium": "Memory"}, "w": {"medium": "Memory", "sizeLimit": "1Mi"}, "x": {}},
            Limits({"v": 2 * MI, "w": MI}, {}, None),
        ),
        "what cannot be read": ([container(limit="nonsense")], {"v": {"sizeLimit": "much"}}, Limits({}, {}, None)),
    })  # fmt: skip
    def test_limits_of_a_pod(self, containers, volumes, expected):
        spec = {
            "containers": containers,
            "volumes": [{"name": name, "emptyDir": each} for name, each in volumes.items()],
        }
        found = storage.limits(msgspec.convert({"spec": spec}, Pod))
        assert found == expected
        assert bool(found) == (expected != Limits({}, {}, None))

    @cases("limits, used, told", {
        "just what is allowed": (Limits({"v": MI}, {}), Used({"v": MI}, {}), "^$"),
        "volume": (Limits({"v": MI}, {}), Used({"v": 3 * MI}, {}), 'EmptyDir volume "v" exceeds.*3 MiB, and 1 MiB are'),
        "another volume": (Limits({"v": MI}, {}), Used({"w": 3 * MI}, {}, 9 * MI), "^$"),
        "volume in memory": (
            Limits({"v": MI}, {}), Used({}, {}, 0, {"v": 2 * MI}), 'EmptyDir volume "v" exceeds.*2 MiB, and 1 MiB are',
        ),
        "memory is no part of the disk": (Limits({}, {"a": MI}, MI), Used({}, {}, 0, {"v": 9 * MI}), "^$"),
        "log": (Limits({}, {"a": MI}), Used({}, {"a": 2 * MI}), "Container a exceeded.*: its log has 2 MiB, and 1"),
        "everything together": (
            Limits({}, {"a": MI}, MI), Used({"v": MI // 2}, {"a": MI // 2}, MI), "Pod .* exceeds.*: 2 MiB, and 1 ",
        ),
    })  # fmt: skip
    def test_who_has_too_much_is_told_how_much(self, limits, used, told):
        assert re.search(told, storage.excess(limits, used))

    def test_size_follows_no_link_and_counts_a_file_once(self, tmp_path):
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
    def test_pod_with_too_much_is_evicted_and_loses_it(self, node, what):
        limits = {"ephemeral-storage": "1Mi"} if what == "scratch" else {}
        place = "$VOLUME_V/big" if what == "volume" else "big"
        uid = node.shell(
            f"head -c 3000000 /dev/zero > {place}; touch {node.out}/written; sleep 600",
            main={"resources": {"limits": limits}, "volumeMounts": [mount("v", "/v")]},
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

    def test_pod_whose_eviction_an_agent_did_not_see_to_its_end_has_failed(self, node):
        script = f"trap '' TERM; head -c 3000000 /dev/zero > big; touch {node.out}/written; sleep 600 & wait"
        uid = node.shell(script, restartPolicy="Always", terminationGracePeriodSeconds=1)
        node.until((node.out / "written").exists)
        node.until_phase("Running")  # so that the agent knows whom to stop
        node.agent.runtime.stop(uid, "Evicted", 0.2)
        node.crash()
        node.again()
        assert node.until_phase("Failed")["reason"] == "Evicted"


class TestPublished:
    def test_full_disk_is_told_of_in_the_same_words_each_time(self, tmp_path, monkeypatch):
        """A pod's status says them, and is written again when they change."""

        def full(path, *args, **options):
            raise OSError(errno.ENOSPC, "No space left on device", path)

        volume = os.open(tmp_path, os.O_RDONLY)
        monkeypatch.setattr(os, "mkdir", full)
        told = []
        for _ in range(2):
            with pytest.raises(OSError, match="No space left") as error:
                published_files.publish(volume, {"key": (b"value", 0o644)})
            told.append((error.value.strerror, error.value.filename))
        os.close(volume)
        assert told == [("No space left on device", "the files of a volume")] * 2


MEMORY = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}


MOUNTED = {"volumeMounts": [mount("v", "/v")]}


def in_memory(node):
    return sorted(one.name for one in node.agent.layout.memory.rglob("*") if one.name != "_trash")


class TestOwnPlaces:
    @pytest.fixture(params=["root", "user"])
    def begun(self, request, transactional_db, redis_url, settings):
        """A node for each way in which containers have mounts of their own."""
        settings.REDIS_URL = redis_url
        nudge.client.cache_clear()
        (PROJECT / ".cache").mkdir(exist_ok=True)
        data = Path(tempfile.mkdtemp(prefix="volcano-", dir=PROJECT / ".cache"))
        node = Node(data)
        node.shows_out = False
        try:
            yield beginning(node, request.param)
        finally:
            shutil.rmtree(Layout(data).memory, ignore_errors=True)
            node.close()
            nudge.client.cache_clear()
            shutil.rmtree(data)

    def test_tmp_is_the_pods_and_nothing_of_the_machine_is_in_it(self, begun):
        (begun.out / "file").touch()
        first = {"name": "first", "command": ["sh", "-c", "touch /tmp/mine"]}
        script = f"echo $TMPDIR; ls -A /tmp; ls -A /var/tmp; stat -c %a /tmp; ls {begun.out}"
        words = begun.ran(script, initContainers=[first])
        assert words[:4] == ["/tmp", "mine", "mine", "1777"], "its containers share it"
        assert "No such file" in words[4]
        assert not Path("/tmp/mine").exists()
        assert begun.ran("ls -A /tmp", "other") == []

    @pytest.mark.parametrize("path", ["/tmp", "/tmp/deep/er", "/dev/shm"])
    def test_volume_in_one_of_them_is_the_volume(self, begun, path):
        mounts = {"volumeMounts": [mount("v", path)]}
        assert begun.ran(f"touch {path}/in-volume; ls -A $VOLUME_V", main=mounts, volumes=[EMPTY]) == ["in-volume"]

    def test_shared_memory_is_the_containers_own_and_bounded_by_its_limit(self, begun):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as outside:
            # Not filled: what is in it counts as memory, so the container is ended about then.
            script = "ls -A /dev/shm; df --block-size=1 --output=size /dev/shm; touch /dev/shm/much"
            words = begun.ran(script, main={"resources": {"limits": {"memory": "8Mi"}}})
            assert Path(outside.name).name not in " ".join(words)
        assert words[-1].strip() == str(8 * MI)
        assert not Path("/dev/shm/much").exists()

    def test_shared_memory_counts_as_memory(self, begun):
        script = "head -c 60000000 /dev/zero > /dev/shm/much; x=$(head -c 60000000 /dev/zero | tr '\\0' a); sleep 600"
        begun.shell(script, main={"resources": {"limits": {"memory": "100Mi"}}})
        assert begun.until_end()["reason"] == "OOMKilled"

    def test_python_shares_memory_between_its_processes(self, begun):
        program = (
            "import multiprocessing as m\n"
            "from multiprocessing.shared_memory import SharedMemory\n"
            "def f(name):\n    s = SharedMemory(name); s.buf[0] = 7; s.close()\n"
            "if __name__ == '__main__':\n"
            "    s = SharedMemory(create=True, size=10)\n"
            "    with m.Pool(2) as p: p.map(f, [s.name] * 4)\n"
            "    print(s.buf[0]); s.close(); s.unlink()\n"
        )
        script = f"cat > main.py <<'E'\n{program}E\npython3 main.py"
        assert begun.ran(script) == ["7"]

    def test_volume_in_memory_is_shared_by_the_pods_containers_and_goes_with_the_pod(self, begun):
        script = "stat -f -c %T /v; test -e /v/ours; ls -A /dev/shm; cat /v/ours"
        first = {"name": "first", "command": ["sh", "-c", "echo hello > /v/ours"], **MOUNTED}
        assert begun.ran(script, main=MOUNTED, volumes=[MEMORY], initContainers=[first]) == ["tmpfs", "hello"]
        assert begun.agent.layout.memory.stat().st_mode & 0o777 == 0o700
        begun.until(lambda: not begun.agent.pods)
        begun.agent.storage.look()
        assert in_memory(begun) == []

    def test_volume_in_memory_outlives_its_container_and_its_agent(self, begun):
        script = "test -e /v/seen && exit 0; touch /v/seen; sleep 0.3; exit 1"
        begun.shell(script, main=MOUNTED, volumes=[MEMORY], restartPolicy="OnFailure")
        begun.until(lambda: "seen" in in_memory(begun))
        begun.crash()
        begun.again()
        retention.clean(begun.agent.layout, set(begun.agent.pods), set(), days=1, most_bytes=1 << 30)
        assert begun.until_phase("Succeeded")["containerStatuses"][0]["restartCount"] == 1

    def test_pod_with_too_much_in_memory_is_evicted_and_its_memory_freed(self, begun):
        script = "head -c 3000000 /dev/zero > /v/much; echo done; sleep 600"
        uid = begun.shell(script, main=MOUNTED, volumes=[MEMORY], terminationGracePeriodSeconds=1)
        begun.until(lambda: "done" in begun.printed(uid))
        begun.agent.storage.look()
        status = begun.until_phase("Failed")
        assert (status["reason"], "2.86 MiB, and 1 MiB are allowed" in status["message"]) == ("Evicted", True)
        begun.until(lambda: not begun.agent.pods)
        begun.agent.storage.look()
        assert in_memory(begun) == []

    def test_what_a_pod_that_is_gone_left_in_memory_is_removed(self, begun):
        memory_volumes.begin(begun.agent.layout.memory)
        for name in ("lost", "kept"):
            (begun.agent.layout.memory / name).mkdir()
        retention.clean(begun.agent.layout, {"kept"}, set(), days=1, most_bytes=1 << 30)
        begun.agent.storage.look()
        assert in_memory(begun) == ["kept"]

    def test_directory_that_is_not_ours_alone_is_not_used(self, tmp_path):
        ours = Path(tempfile.mkdtemp(dir="/dev/shm"))
        try:
            assert memory_volumes.begin(ours)
            ours.chmod(0o777)
            assert not memory_volumes.begin(ours)
            (ours / "link").symlink_to(tmp_path)
            assert not memory_volumes.begin(ours / "link")
            assert not memory_volumes.begin(tmp_path / "on-the-disk")
        finally:
            shutil.rmtree(ours)
