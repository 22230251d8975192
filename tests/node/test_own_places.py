"""A pod's own /tmp and /dev/shm, on a machine whose state directory lies in neither."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from cluster.runtime import nudge
from node.agent import memory_volumes, retention
from node.paths import Layout
from proof.systems.system import PROJECT
from tests.node.driving import EMPTY, Node, beginning, mount

MI = 1 << 20


@pytest.fixture(params=["root", "user"])
def begun(request, transactional_db, redis_url, settings):
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


def test_tmp_is_the_pods_and_nothing_of_the_machine_is_in_it(begun):
    (begun.out / "file").touch()
    first = {"name": "first", "command": ["sh", "-c", "touch /tmp/mine"]}
    script = f"echo $TMPDIR; ls -A /tmp; ls -A /var/tmp; stat -c %a /tmp; ls {begun.out}"
    words = begun.ran(script, initContainers=[first])
    assert words[:4] == ["/tmp", "mine", "mine", "1777"], "its containers share it"
    assert "No such file" in words[4]
    assert not Path("/tmp/mine").exists()
    assert begun.ran("ls -A /tmp", "other") == []


@pytest.mark.parametrize("path", ["/tmp", "/tmp/deep/er", "/dev/shm"])
def test_volume_in_one_of_them_is_the_volume(begun, path):
    mounts = {"volumeMounts": [mount("v", path)]}
    assert begun.ran(f"touch {path}/in-volume; ls -A $VOLUME_V", main=mounts, volumes=[EMPTY]) == ["in-volume"]


def test_shared_memory_is_the_containers_own_and_bounded_by_its_limit(begun):
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as outside:
        # Not filled: what is in it counts as memory, so the container is ended about then.
        script = "ls -A /dev/shm; df --block-size=1 --output=size /dev/shm; touch /dev/shm/much"
        words = begun.ran(script, main={"resources": {"limits": {"memory": "8Mi"}}})
        assert Path(outside.name).name not in " ".join(words)
    assert words[-1].strip() == str(8 * MI)
    assert not Path("/dev/shm/much").exists()


def test_shared_memory_counts_as_memory(begun):
    script = "head -c 60000000 /dev/zero > /dev/shm/much; x=$(head -c 60000000 /dev/zero | tr '\\0' a); sleep 600"
    begun.shell(script, main={"resources": {"limits": {"memory": "100Mi"}}})
    assert begun.until_end()["reason"] == "OOMKilled"


def test_python_shares_memory_between_its_processes(begun):
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


MEMORY = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
MOUNTED = {"volumeMounts": [mount("v", "/v")]}


def in_memory(node):
    return sorted(one.name for one in node.agent.layout.memory.rglob("*") if one.name != "_trash")


def test_volume_in_memory_is_shared_by_the_pods_containers_and_goes_with_the_pod(begun):
    script = "stat -f -c %T /v; test -e /v/ours; ls -A /dev/shm; cat /v/ours"
    first = {"name": "first", "command": ["sh", "-c", "echo hello > /v/ours"], **MOUNTED}
    assert begun.ran(script, main=MOUNTED, volumes=[MEMORY], initContainers=[first]) == ["tmpfs", "hello"]
    assert begun.agent.layout.memory.stat().st_mode & 0o777 == 0o700
    begun.until(lambda: not begun.agent.pods)
    begun.agent.storage.look()
    assert in_memory(begun) == []


def test_volume_in_memory_outlives_its_container_and_its_agent(begun):
    script = "test -e /v/seen && exit 0; touch /v/seen; sleep 0.3; exit 1"
    begun.shell(script, main=MOUNTED, volumes=[MEMORY], restartPolicy="OnFailure")
    begun.until(lambda: "seen" in in_memory(begun))
    begun.crash()
    begun.again()
    retention.clean(begun.agent.layout, set(begun.agent.pods), set(), days=1, most_bytes=1 << 30)
    assert begun.until_phase("Succeeded")["containerStatuses"][0]["restartCount"] == 1


def test_pod_with_too_much_in_memory_is_evicted_and_its_memory_freed(begun):
    script = "head -c 3000000 /dev/zero > /v/much; echo done; sleep 600"
    uid = begun.shell(script, main=MOUNTED, volumes=[MEMORY], terminationGracePeriodSeconds=1)
    begun.until(lambda: "done" in begun.printed(uid))
    begun.agent.storage.look()
    status = begun.until_phase("Failed")
    assert (status["reason"], "2.86 MiB, and 1 MiB are allowed" in status["message"]) == ("Evicted", True)
    begun.until(lambda: not begun.agent.pods)
    begun.agent.storage.look()
    assert in_memory(begun) == []


def test_what_a_pod_that_is_gone_left_in_memory_is_removed(begun):
    memory_volumes.begin(begun.agent.layout.memory)
    for name in ("lost", "kept"):
        (begun.agent.layout.memory / name).mkdir()
    retention.clean(begun.agent.layout, {"kept"}, set(), days=1, most_bytes=1 << 30)
    begun.agent.storage.look()
    assert in_memory(begun) == ["kept"]


def test_directory_that_is_not_ours_alone_is_not_used(tmp_path):
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
