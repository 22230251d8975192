"""Trees that pods make: deep, large, locked, full of odd things, and changed while they are looked at."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import logging
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from cluster import clock
from node import file_trees, left, usage
from node.agent import storage_watch, trash
from node.agent.engine_sweep import EngineSweep
from node.agent.storage_watch import StorageWatch
from node.file_trees import Beyond, Bounds
from node.paths import Layout
from node.shim import linux
from node.usage import Sampler
from proof.harness.waiting import until
from tests.tables import cases

MI = 1 << 20


DEEP = 6000  # more than a path name may be long, and more than Python's recursion is deep


NOBODY = 65534


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


@pytest.fixture
def place():
    """A directory that is everybody's to reach."""
    folder = Path(tempfile.mkdtemp(prefix="volcano-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chattr", "-R", "-i", folder], check=False, capture_output=True)
    file_trees.remove(folder, within_s=60)


@pytest.fixture
def tree(place):
    folder = place / "tree"
    folder.mkdir()
    return folder


def deepen(folder, levels=DEEP):
    """Make directories within each other, each with a file in it."""
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
            where = str(each.readlink())
        except FileNotFoundError:  # it was that of the listing
            continue
        except OSError:  # too long a name
            where = str(tree)
        found += [where] * where.startswith(str(tree))
    return found


def as_ordinary_user(work):
    """Do something in a process that root's rights do not help."""
    if os.geteuid():
        return work()
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
    return None


def give_away(folder):
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder], check=True)


def few_descriptors():
    """Let this process have few descriptors more than it has; return what it might have before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 300, before[1]))
    return before


def make_device(tree, outside):
    if os.geteuid():
        pytest.skip("only root makes devices")
    os.mknod(tree / "zero", 0o20666, os.makedev(1, 5))


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
    """Somebody changes the tree while it is looked at."""

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
        seen = []
        for _, entry in file_trees.walk(tree / "linked"):
            seen.append(entry.name)
            (tree / "linked" / "c").rmdir()
            (tree / "linked" / "c").symlink_to(elsewhere)
        assert seen == ["c"]

    @contextlib.contextmanager
    def again_and_again(self, work):
        """Do something in another thread for as long as the block lasts."""
        stop = threading.Event()
        thread = threading.Thread(target=lambda: [work() for _ in iter(stop.is_set, True)])
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def test_directories_that_are_moved_all_the_time_end_nothing(self, place, tree):
        outside = place / "outside"
        outside.mkdir()
        (outside / "kept").touch()
        for first in range(10):
            for second in range(5):
                (tree / f"{first}" / f"{second}" / "deep" / "deeper").mkdir(parents=True)
        chance = random.Random(1)

        def move():
            source, target = (f"{chance.randrange(10)}/{chance.randrange(5)}" for _ in range(2))
            for one, other in ((f"{source}/deep", f"{target}/deep"), (source, f"{target}/deep/{source[0]}")):
                with contextlib.suppress(OSError):
                    (tree / one).rename(tree / other)

        with self.again_and_again(move):
            for _ in range(30):
                assert "kept" not in {entry.name for _, entry in file_trees.walk(tree)}
            fd = os.open(tree, os.O_RDONLY)
            file_trees.empty(fd, 5)
            os.close(fd)
        file_trees.remove(tree, within_s=10)
        assert (outside / "kept").exists()

    def test_removal_ends_whoever_adds_to_what_is_removed(self, tree):
        number = itertools.count()

        def add():
            try:
                (tree / f"{next(number)}" / "more").mkdir(parents=True)
            except FileNotFoundError:
                tree.mkdir(exist_ok=True)

        began = time.monotonic()
        with self.again_and_again(add):
            fd = os.open(tree, os.O_RDONLY)
            assert file_trees.empty(fd, 0.5) == {}
            os.close(fd)
        assert time.monotonic() - began < 5


class TestTrash:
    def test_what_is_discarded_is_gone_at_once_and_removed_bit_by_bit(self, place, tree):
        deepen(tree, 300)
        trash.discard(tree, place / "trash")
        assert not tree.exists()
        emptied = trash.Trash(place / "nothing", place / "trash")
        for _ in range(10_000):
            emptied.empty(0.001)
            if not list((place / "trash").iterdir()):
                break
        assert not list((place / "trash").iterdir())

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
        later = clock.monotonic() + trash.AGAIN_S
        monkeypatch.setattr(clock, "monotonic", lambda: later)
        emptied.empty(1.0)
        assert not left.exists()

    def test_what_lies_in_another_file_system_is_removed_where_it_is(self, place):
        other = Path(tempfile.mkdtemp(dir="/dev/shm"))
        if other.stat().st_dev == place.stat().st_dev:
            pytest.skip("one file system")
        (other / "folder").mkdir()
        trash.discard(other, place / "trash")
        assert not other.exists()


class TestAgent:
    def test_a_pod_with_a_limit_whose_tree_cannot_be_counted_is_evicted_and_what_it_left_goes(self, node):
        uid = node.shell(
            f"touch {node.out}/runs; sleep 600", volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
            terminationGracePeriodSeconds=0,
        )  # fmt: skip
        node.until((node.out / "runs").exists)
        layout = node.agent.layout
        deepen(layout.pod(uid) / "_volumes" / "v")
        node.agent.storage.look()
        status = node.until_phase("Failed")
        assert status["reason"] == "Evicted"
        assert ": more than 100 levels of directories, which cannot be counted, and 1 GiB are" in status["message"]
        node.until(lambda: not node.agent.pods)
        node.agent.storage.look()
        assert not (layout.pod(uid) / "_volumes").exists()
        until(lambda: node.agent.storage.look() or not list(layout.trash.iterdir()))

    def test_a_deep_tree_of_a_pod_that_is_gone_ends_no_agent(self, machine, settings):
        settings.LOG_DAYS = 0
        machine.begin()
        layout = machine.agent.layout
        for name in ("_work", "main"):
            (layout.pod("gone") / name).mkdir(parents=True)
            deepen(layout.pod("gone") / name)
        old = time.time() - 3600
        os.utime(layout.pod("gone"), (old, old))
        machine.agent.clean_at = 0
        machine.agent.work()
        assert not layout.pod("gone").exists()
        until(lambda: machine.agent.storage.look() or not list(layout.trash.iterdir()))

    def test_cleaning_that_fails_ends_no_agent_and_is_told_once(self, node, caplog, monkeypatch):
        monkeypatch.setattr(type(node.agent.runtime), "clean", lambda *_: {}["x"])
        for _ in range(2):
            node.agent.clean_at = 0
            node.agent.work()
        assert [each.exc_info[0] for each in caplog.records if each.name == "node.agent.agent"] == [KeyError]


class TestTrees:
    def test_a_tree_is_counted_to_a_bound_and_removed_however_deep_it_is_with_few_descriptors(self, tree):
        deepen(tree)
        before = few_descriptors()
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

    @cases("bounds, beyond", {
        "within": (Bounds(entries=20), ""),
        "entries": (Bounds(entries=9), "more than 9 files and directories"),
        "levels": (Bounds(levels=1), "more than 1 levels of directories"),
        "time is not the tree's fault": (Bounds(seconds=-1), ""),
    })  # fmt: skip
    def test_counting_ends_at_a_bound_and_names_it(self, tree, bounds, beyond):
        for name in range(5):
            (tree / str(name)).mkdir()
            (tree / str(name) / "file").touch()
        assert file_trees.size(tree, bounds).beyond == beyond

    @cases("make", {
        "a link to a folder": link("{}"),
        "a link to a file": link("{}/kept"),
        "a link to nothing": link("nowhere"),
        "fifo": lambda tree, outside: os.mkfifo(tree / "fifo"),
        "socket": make_socket,
        "device": make_device,
        "hard links": make_hard_links,
        "names": lambda tree, outside: [(tree / os.fsdecode(name)).mkdir() for name in ODD],
        "hole": lambda tree, outside: (tree / "hole").write_bytes(b"") or os.truncate(tree / "hole", 1 << 40),
    })  # fmt: skip
    def test_whatever_is_in_a_tree_is_counted_and_removed_and_nothing_beside_it(self, place, tree, make):
        outside = place / "outside"
        outside.mkdir()
        (outside / "kept").write_bytes(b"x" * MI)
        make(tree, outside)
        (tree / "folder").mkdir()
        make(tree / "folder", outside)
        assert file_trees.size(tree).bytes < 100_000
        file_trees.remove(tree, within_s=10)
        assert not tree.exists()
        assert (outside / "kept").stat().st_size == MI

    def test_directories_that_nobody_may_enter_are_counted_as_they_are_and_removed(self, place, tree):
        locked = tree / "locked"
        (locked / "within").mkdir(parents=True)
        (locked / "within" / "big").write_bytes(b"x" * MI)
        for folder in (locked / "within", locked):
            folder.chmod(0)
        give_away(tree)
        place.chmod(0o777)

        def work():
            assert file_trees.size(tree).bytes > MI
            assert locked.stat().st_mode & 0o777 == 0
            tree.chmod(0)
            assert file_trees.size(tree).bytes > MI
            file_trees.remove(tree, within_s=10)

        as_ordinary_user(work)
        assert not tree.exists()

    def test_what_is_somebody_elses_stays_and_is_named(self, place, tree):
        (tree / "theirs").mkdir()
        (tree / "mine").touch()
        give_away(tree)
        if os.geteuid():
            pytest.skip("only root can make something that is somebody else's")
        os.chown(tree / "theirs", 0, 0)
        (tree / "theirs" / "file").touch()
        place.chmod(0o777)

        def work():
            fd = os.open(tree, os.O_RDONLY)
            assert file_trees.empty(fd, 5) == {"theirs": "theirs/file: Permission denied"}
            os.close(fd)

        as_ordinary_user(work)
        assert [each.name for each in tree.iterdir()] == ["theirs"]

    @root_only
    def test_what_is_mounted_in_a_tree_is_neither_counted_nor_removed(self, place, tree):
        outside = place / "outside"
        outside.mkdir()
        (outside / "kept").write_bytes(b"x" * MI)
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
        command = ["unshare", "--mount", "sh", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "mount" in done.stderr:
            pytest.skip(f"nothing can be mounted here: {done.stderr}")
        assert done.stdout.split("\n")[:2] == ["True", "Directory not empty"], done.stderr
        assert done.stdout.count("kept") == 2
        assert (outside / "kept").stat().st_size == MI

    @root_only
    def test_a_tree_that_is_too_large_to_be_given_says_so(self, tree):
        (tree / "a" / "b").mkdir(parents=True)
        fd = os.open(tree, os.O_PATH)
        with pytest.raises(Beyond, match="more than 1 levels"):
            file_trees.give(fd, 55, Bounds(levels=1))
        os.close(fd)

    def test_processor_time_of_children_that_have_ended_is_their_parents(self):
        subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000"], check=True, capture_output=True)
        took = os.times()
        assert took.children_system
        ticks = round((took.children_user + took.children_system) * usage.TICKS)
        assert usage.all_processes()[os.getpid()].collected == ticks

    @cases("make, name", {
        "disk": (lambda tmp_path: StorageWatch(Layout(tmp_path)), "look"),
        "usage": (lambda tmp_path: Sampler(Layout(tmp_path), "n", list), "sample"),
    })  # fmt: skip
    def test_a_thread_survives_every_exception_and_tells_each_kind_once(
        self, tmp_path, monkeypatch, caplog, make, name
    ):
        monkeypatch.setattr(storage_watch, "EVERY_S", 0.001)
        monkeypatch.setattr("node.usage.EVERY_S", 0.001)
        times = []

        def failing():
            times.append(1)
            raise RecursionError if len(times) % 2 else KeyError("x")

        watch = make(tmp_path)
        setattr(watch, name, failing)
        thread = threading.Thread(target=watch._run)
        thread.start()
        until(lambda: len(times) > 6)
        assert thread.is_alive()
        watch.stop()
        thread.join()
        assert sorted(record.exc_info[0].__name__ for record in caplog.records) == ["KeyError", "RecursionError"]

    def test_a_sweep_that_fails_is_told_once(self, tmp_path, caplog):
        sweep = EngineSweep(Layout(tmp_path), None)
        for _ in range(2):
            sweep._do(lambda: {}["x"])
        assert [record.levelno for record in caplog.records] == [logging.ERROR]

    @pytest.mark.parametrize("name", ["_work", "_tmp"])
    def test_a_pod_makes_no_process_a_shim(self, tmp_path, name):
        layout = Layout(tmp_path)
        fake = layout.pod("uid") / name / "0"
        fake.mkdir(parents=True)
        (fake / "claim").write_text(f"{os.getpid()} {linux.start_ticks(os.getpid())}")
        assert left.shims(layout) == {}
        shutil.move(layout.pod("uid") / name, layout.pod("uid") / "main")
        assert left.shims(layout) == {os.getpid(): "uid"}
