"""Trees that pods make: deep, large, locked, full of odd things, and changed while they are looked at."""

import contextlib
import ctypes
import itertools
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster import clock
from node import file_trees, usage
from node.containers.engine_sweep import EngineSweep
from node.file_trees import Beyond, Bounds
from node.usage import Sampler
from node.volumes import storage_watch, trash
from node.volumes.storage_watch import StorageWatch
from proof.harness.waiting import until
from tests.tables import cases

MI = 1 << 20
DEEP = 2500  # more than a path name may be long, and more than Python's recursion is deep
NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


@pytest.fixture
def place():
    """A directory that is everybody's to reach, and a file beside the tree in it."""
    folder = Path(tempfile.mkdtemp(prefix="volcano-"))
    folder.chmod(0o777)
    (folder / "outside").mkdir()
    (folder / "outside" / "kept").write_bytes(b"x" * MI)
    yield folder
    subprocess.run(["chattr", "-R", "-i", folder], check=False, capture_output=True)
    file_trees.remove(folder, within_s=60)


@pytest.fixture
def outside(place):
    yield place / "outside"
    assert [(each.name, each.stat().st_size) for each in (place / "outside").iterdir()] == [("kept", MI)]


@pytest.fixture
def tree(place):
    (place / "tree").mkdir()
    return place / "tree"


def deepen(folder, levels=DEEP):
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


def open_in(tree):
    """Return the descriptors of this process that are of a tree; others may be closed at any time."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(each.readlink()))
        except FileNotFoundError:  # it was that of the listing
            continue
        except OSError:  # too long a name
            found.append(str(tree))
    return [each for each in found if each.startswith(str(tree))]


def as_ordinary_user(tree, work):
    """Do something with a tree, which is given away, in a process that root's rights do not help."""
    if os.geteuid():
        work()
        return
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", tree], check=True)
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, which lets it see its own /proc/self/fd
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def emptied(tree, within_s):
    fd = os.open(tree, os.O_RDONLY)
    try:
        return file_trees.empty(fd, within_s)
    finally:
        os.close(fd)


def make_socket(tree, outside):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tree / "socket"))


def make_hard_links(tree, outside):
    (tree / "one").write_bytes(b"x" * 4096)
    for number in range(50):
        os.link(tree / "one", tree / f"again-{number}")


ODD = (b"\xff\xfe", b"new\nline", b"..x", b"a" * 255)


def link(to):
    return lambda tree, outside: (tree / "link").symlink_to(to.format(outside))


class TestChanges:
    def test_what_was_moved_away_or_became_a_link_leads_nobody_to_where_it_is(self, place, tree):
        elsewhere = place / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "secret").touch()
        (tree / "a" / "b").mkdir(parents=True)
        for folder in (tree, tree / "a", tree / "a" / "b"):
            for number in range(3):
                (folder / f"file-{number}").touch()
        seen = []
        for _, entry in file_trees.walk(tree):
            seen.append(entry.name)
            if entry.name.startswith("file") and (tree / "a" / "b").exists() and "b" in seen:
                (tree / "a" / "b").rename(elsewhere / "b")
        assert sorted(seen) == ["a", "b", *(f"file-{number}" for number in range(3) for _ in range(3))]
        (tree / "linked" / "c").mkdir(parents=True)
        for _, entry in file_trees.walk(tree / "linked"):
            assert entry.name == "c"
            (tree / "linked" / "c").rmdir()
            (tree / "linked" / "c").symlink_to(elsewhere)

    def test_removal_ends_whoever_adds_to_what_is_removed(self, tree):
        stop, began = threading.Event(), time.monotonic()

        def add():
            for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                with contextlib.suppress(FileNotFoundError):
                    (tree / f"{number}" / "more").mkdir(parents=True)

        with ThreadPoolExecutor(1) as threads:
            adding = threads.submit(add)
            assert emptied(tree, 0.5) == {}
            stop.set()
            adding.result()
        assert time.monotonic() - began < 5


class TestTrash:
    def test_what_is_discarded_is_gone_at_once_and_removed_bit_by_bit(self, place, tree):
        other = Path(tempfile.mkdtemp(dir="/dev/shm"))
        deepen(tree, 300)
        for each in (tree, other):
            trash.discard(each, place / "trash")
            assert not each.exists()
        trash_can = trash.Trash(place / "nothing", place / "trash")
        until(lambda: trash_can.empty(0.001) or not list((place / "trash").iterdir()), every_s=0)

    def test_what_cannot_be_removed_is_told_once_and_tried_again_after_an_hour(self, place, tree, caplog, monkeypatch):
        (tree / "folder").mkdir()
        for name in ("stays", "goes", "folder/goes"):
            (tree / name).touch()
        if subprocess.run(["chattr", "+i", tree / "stays"], check=False, capture_output=True).returncode:
            pytest.skip("no file can be made immutable here")
        trash.discard(tree, place / "trash")
        emptied = trash.Trash(place / "trash")
        for _ in range(3):
            emptied.empty(1.0)
        (left,) = (place / "trash").iterdir()
        assert [each.name for each in left.iterdir()] == ["stays"]
        assert [f"{left.name}/stays: Operation not permitted" in each.message for each in caplog.records] == [True]
        subprocess.run(["chattr", "-i", left / "stays"], check=True)
        emptied.empty(1.0)
        assert left.exists(), "it is not tried again at once"
        later = clock.monotonic() + trash.RETRY_S
        monkeypatch.setattr(clock, "monotonic", lambda: later)
        emptied.empty(1.0)
        assert not left.exists()


class TestAgent:
    def test_deep_trees_of_pods_end_no_agent_and_those_of_a_pod_with_a_limit_evict_it(self, machine, settings):
        settings.LOG_DAYS = 0
        node = machine.begin()
        volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]
        uid = node.shell("sleep 600", volumes=volumes, terminationGracePeriodSeconds=0, until="Running")
        layout = node.agent.layout
        gone = [layout.pod("gone") / name for name in ("_work", "main")]
        for each in gone:
            each.mkdir(parents=True)
        for each in (*gone, layout.pod(uid) / "_volumes" / "v"):
            deepen(each)
        os.utime(layout.pod("gone"), (0, 0))
        node.clean()
        assert not layout.pod("gone").exists()
        node.agent.storage.check()
        status = node.until_phase("Failed")
        assert status["reason"] == "Evicted"
        assert ": more than 100 levels of directories, which cannot be counted, and 1 GiB are" in status["message"]
        node.until(lambda: not node.agent.pods)
        node.agent.storage.check()
        assert not (layout.pod(uid) / "_volumes").exists()
        until(lambda: node.agent.storage.check() or not list(layout.trash.iterdir()), every_s=0)

    def test_work_beside_pods_that_fails_ends_no_agent_and_no_thread_and_is_told_once(self, node, caplog, monkeypatch):
        monkeypatch.setattr(storage_watch, "EVERY_S", 0.001)
        monkeypatch.setattr("node.usage.EVERY_S", 0.001)
        monkeypatch.setattr(type(node.agent.runtime), "clean", lambda *_: {}["x"])
        sweep, layout, times = EngineSweep(node.agent.layout, None), node.agent.layout, {}
        for _ in range(2):
            node.clean()
        for _ in range(2):
            sweep._guard(lambda: {}["x"])
        for watch, name in ((StorageWatch(layout), "look"), (Sampler(layout, "n", list), "sample")):

            def failing(name=name):
                times[name] = times.get(name, 0) + 1
                raise RecursionError if times[name] % 2 else KeyError("x")

            watch._work = failing
            watch.start()
            until(lambda name=name: times.get(name, 0) > 6)
            watch.stop()
            watch._thread.join()
        errors = [record.exc_info[0].__name__ for record in caplog.records if record.exc_info]
        assert errors == ["KeyError"] * 2 + ["RecursionError", "KeyError"] * 2


class TestTrees:
    def test_a_tree_is_counted_to_a_bound_and_removed_however_deep_it_is_with_few_descriptors(self, tree):
        deepen(tree)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 300, before[1]))
        try:
            assert file_trees.size(tree).beyond == "more than 100 levels of directories"
            assert open_in(tree) == []
            file_trees.remove(tree, within_s=60)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert open_in(tree) == []
        assert not tree.exists()
        tree.mkdir()
        deepen(tree, 99)
        assert file_trees.size(tree).beyond == "", "as deep as the bound"

    def test_counting_ends_at_a_bound_and_names_it(self, tree):
        for name in range(5):
            (tree / str(name)).mkdir()
            (tree / str(name) / "file").touch()
        beyond = {
            Bounds(entries=20): "", Bounds(seconds=-1): "",  # which is not the tree's fault
            Bounds(entries=9): "more than 9 files and directories",
            Bounds(levels=1): "more than 1 levels of directories",
        }  # fmt: skip
        assert {bounds: file_trees.size(tree, bounds).beyond for bounds in beyond} == beyond
        if not os.geteuid():
            fd = os.open(tree, os.O_PATH)
            with pytest.raises(Beyond, match="more than 1 levels"):
                file_trees.give_to_group(fd, 55, Bounds(levels=1))
            os.close(fd)

    @cases("make", {
        "a link to a folder": link("{}"),
        "a link to a file": link("{}/kept"),
        "a link to nothing": link("nowhere"),
        "fifo": lambda tree, outside: os.mkfifo(tree / "fifo"),
        "socket": make_socket,
        "hard links": make_hard_links,
        "names": lambda tree, outside: [(tree / os.fsdecode(name)).mkdir() for name in ODD],
        "hole": lambda tree, outside: (tree / "hole").write_bytes(b"") or os.truncate(tree / "hole", 1 << 40),
    })  # fmt: skip
    def test_whatever_is_in_a_tree_is_counted_and_removed_and_nothing_beside_it(self, outside, tree, make):
        (tree / "folder").mkdir()
        for folder in (tree, tree / "folder"):
            make(folder, outside)
        assert file_trees.size(tree).bytes < 100_000
        file_trees.remove(tree, within_s=10)
        assert not tree.exists()

    def test_directories_that_nobody_may_enter_are_counted_as_they_are_and_removed(self, tree):
        locked = tree / "locked"
        (locked / "within").mkdir(parents=True)
        (locked / "within" / "big").write_bytes(b"x" * MI)
        for folder in (locked / "within", locked):
            folder.chmod(0)

        def work():
            assert file_trees.size(tree).bytes > MI
            assert locked.stat().st_mode & 0o777 == 0
            tree.chmod(0)
            assert file_trees.size(tree).bytes > MI
            file_trees.remove(tree, within_s=10)

        as_ordinary_user(tree, work)
        assert not tree.exists()

    @root_only
    def test_what_is_somebody_elses_stays_and_is_named(self, tree):
        (tree / "mine").touch()

        def work():
            assert emptied(tree, 5) == {"theirs": "theirs/file: Permission denied"}

        tree.chmod(0o777)
        (tree / "theirs").mkdir()
        (tree / "theirs" / "file").touch()
        as_ordinary_user(tree / "mine", work)
        assert [each.name for each in tree.iterdir()] == ["theirs"]

    @root_only
    def test_what_is_mounted_in_a_tree_is_neither_counted_nor_removed(self, outside, tree):
        for name in ("bound", "within/bound", "within/memory"):
            (tree / name).mkdir(parents=True)
        program = (
            "from pathlib import Path\nfrom node import file_trees\n"
            f'tree = Path("{tree}")\n'
            "print(file_trees.size(tree).bytes < 100_000)\n"
            "try:\n    file_trees.remove(tree, within_s=5)\nexcept OSError as error:\n    print(error.strerror)\n"
        )
        script = (
            f"mount --bind {outside} {tree}/bound && mount --bind {outside} {tree}/within/bound && "
            f"mount -t tmpfs none {tree}/within/memory && head -c {MI} /dev/zero > {tree}/within/memory/kept && "
            f"{sys.executable} -c '{program}' && ls {tree}/within/memory {tree}/bound"
        )
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
        if "mount" in done.stderr:
            pytest.skip(f"nothing can be mounted here: {done.stderr}")
        assert done.stdout.split("\n")[:2] == ["True", "Directory not empty"], done.stderr
        assert done.stdout.count("kept") == 2

    def test_processor_time_of_children_that_have_ended_is_their_parents(self):
        subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000"], check=True, capture_output=True)
        took = os.times()
        assert took.children_system
        ticks = round((took.children_user + took.children_system) * usage.TICKS)
        assert usage.all_processes()[os.getpid()].collected == ticks
