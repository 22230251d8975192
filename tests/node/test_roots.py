"""How a container's root is built, and the walk to what is mounted, whatever a pod exchanges meanwhile."""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.shim import init, launch, linux, users
from node.shim.isolation import root, wall
from node.shim.launch import Streams
from node.shim.order import Bind, Order
from node.shim.path_walk import Links, Make, PathRefused, Walk, lineage
from node.shim.processes import Processes
from proof.harness.waiting import HANG_S

OPENAT2, BENEATH, NO_SYMLINKS = 437, 0x08, 0x04
libc = ctypes.CDLL(None, use_errno=True)
NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=6).map("/".join)
TREES = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.none() | PATHS | PATHS.map("/".__add__)))


def kernel(root, path, resolve):
    """What openat2 finds, None where it refuses; the outcome is skipped where the kernel has no openat2."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, resolve)
    fd = libc.syscall(OPENAT2, root, path.encode(), how, 24)
    if fd < 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            pytest.skip("this kernel has no openat2 to compare with")
        return None
    try:
        return str(Path(f"/proc/self/fd/{fd}").readlink())
    finally:
        os.close(fd)


def walked(root, path, links):
    try:
        with Walk(root, links) as way:
            return str(Path(f"/proc/self/fd/{way.go(path).fd}").readlink())
    except (OSError, PathRefused):
        return None


class TestWalk:
    @given(tree=TREES, path=PATHS)
    def test_a_walk_ends_where_the_kernel_s_own_search_beneath_a_directory_ends(self, tree, path):
        with tempfile.TemporaryDirectory() as directory:
            top = Path(directory, "top")
            top.mkdir()
            for parts, link in tree:
                if any(top.joinpath(*parts[:depth]).is_symlink() for depth in range(1, len(parts))):
                    continue  # it may lead out, to where nothing may be made
                with contextlib.suppress(OSError):
                    top.joinpath(*parts[:-1]).mkdir(parents=True, exist_ok=True)
                    if link is None:
                        top.joinpath(*parts).mkdir()
                    else:
                        top.joinpath(*parts).symlink_to(link)
            root = os.open(top, os.O_PATH)
            try:
                assert walked(root, path, Links.INSIDE) == kernel(root, path, BENEATH)
                assert walked(root, path, Links.NONE) == kernel(root, path, BENEATH | NO_SYMLINKS)
            finally:
                os.close(root)

    def test_what_is_missing_is_made_below_and_nothing_through_a_link_that_leads_out(self, tmp_path):
        volume, out = tmp_path / "volume", tmp_path / "out"
        (volume / "inside").mkdir(parents=True)
        out.mkdir()
        (volume / "link").symlink_to("made")
        with Walk(str(volume), Links.INSIDE, Make.DIRECTORY) as way:
            way.go("made/deep")
            way.go("../../link/deep/er")
        assert (volume / "made/deep/er").is_dir()
        for link in ("../../out", "/etc", "../top2", "inside/../../out"):
            (volume / "link").unlink()
            (volume / "link").symlink_to(link)
            refused = pytest.raises(PathRefused, match="leads out of the volume")
            with refused, Walk(str(volume), Links.INSIDE, Make.DIRECTORY) as way:
                way.go("link/made")
        assert list(out.iterdir()) == []

    def test_what_was_opened_stays_what_it_was_when_its_name_is_exchanged(self, tmp_path):
        (tmp_path / "a").mkdir()
        (tmp_path / "out").mkdir()
        with Walk(str(tmp_path), make=Make.DIRECTORY) as way:
            way.go("a")
            (tmp_path / "a").rename(tmp_path / "moved")
            (tmp_path / "a").symlink_to("out")
            way.go("made")
        assert (tmp_path / "moved" / "made").is_dir()
        assert list((tmp_path / "out").iterdir()) == []

    def test_links_of_the_system_are_followed_and_others_named(self, tmp_path):
        with Walk("/", Links.SYSTEM) as way:
            assert os.fstat(way.go("/proc/self/../../usr/bin/env").fd).st_ino == Path("/usr/bin/env").stat().st_ino
        tmp_path.chmod(0o777)
        (tmp_path / "link").symlink_to("/etc")
        with pytest.raises(PathRefused, match="name the place that it stands for"), Walk("/", Links.SYSTEM) as way:
            way.go(str(tmp_path / "link"))
        with Walk(str(tmp_path)) as way:
            expected = [(one.stat().st_dev, one.stat().st_ino) for one in (tmp_path, *tmp_path.parents)]
            assert list(lineage(way.fd)) == expected, "every directory up to the root"


TOUCHED = ("part", "inner", "leaf")  # what of a volume is looked up while the root is built
STRIDE = 1 if "ESCAPES" in os.environ else 20  # of the steps that are tried
BEYOND = 256  # the descriptor by which the process of a command has its shim killed

KINDS = {
    "the state directory": lambda at, name, v: os.symlink(at["state"], name, dir_fd=v),
    "the root": lambda _, name, v: os.symlink("/", name, dir_fd=v),
    "open files": lambda _, name, v: os.symlink("/proc/self/fd", name, dir_fd=v),
    "above": lambda _, name, v: os.symlink("../..", name, dir_fd=v),
    "a directory of links": lambda at, name, v: (os.mkdir(name, dir_fd=v), os.symlink(at["state"], f"{name}/a", dir_fd=v)),
    "a FIFO": lambda _, name, v: os.mkfifo(name, dir_fd=v),
    "nothing": lambda *_: None,
}  # fmt: skip


def arranged(folder):
    for name in ("state", "w", *(f"v/{each}" for each in TOUCHED[:2])):
        (folder / name).mkdir(parents=True)
    (folder / "v" / "leaf").write_text("")
    (folder / "w" / "file").write_text("")
    (folder / "state" / "secret-key").write_text("hush")
    return {name: folder / name for name in ("state", "v", "w")}


@pytest.fixture
def at(tmp_path):
    return arranged(tmp_path)


def before_every_step(step):
    call = linux.syscall
    linux.syscall = lambda *arguments: (step(), call(*arguments))[1]
    sys.addaudithook(lambda event, _: step() if event == "open" or event.startswith("os.") else None)


def order(at):
    """Return an order with a volume, a part of it, and mount points in it of a directory and a file."""
    volume, other = str(at["v"]), str(at["w"])
    binds = (
        Bind(volume, "/data"), Bind(volume, "/part", below="part"),
        Bind(other, "/data/inner/deep"), Bind(f"{other}/file", "/data/leaf"),
    )  # fmt: skip
    return Order("", [], {}, "/", mounts="root", binds=binds, state=str(at["state"]), ids=users.subordinate(0))


def built(at, kind="", when=-1):
    """Build the root in a process; exchange what is touched before a step; return their number and what is shown."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(_built(at, kind, when)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(data)


def _built(at, kind, when):
    signal.alarm(int(HANG_S))
    seen = {"count": 0, "quiet": False}
    volume = os.open(at["v"], os.O_RDONLY)  # by its descriptor: its name is not there any more in the end

    def step():
        if seen["quiet"]:
            return
        if seen["count"] == when:
            seen["quiet"] = True
            for name in TOUCHED:
                with contextlib.suppress(OSError):  # something is mounted on it by now
                    os.rename(name, f"{name}-before", src_dir_fd=volume, dst_dir_fd=volume)
                    KINDS[kind](at, name, volume)
            seen["quiet"] = False
        seen["count"] += 1

    before_every_step(step)
    problem = ""
    try:
        root.build(order(at))
    except root.MountError as error:
        problem = str(error)
    seen["quiet"] = True
    lines = linux.content("/proc/self/mountinfo").decode().splitlines()
    # What is deleted or moved away has an odd name there.
    paths = {line.split()[3] for line in lines if str(at["v"].parent) in line.split()[3]}
    return seen["count"], problem, sorted(paths)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root makes mounts here without more ado")


@as_root
class TestExchanges:
    def test_nothing_but_the_volumes_is_shown(self, at):
        _, problem, paths = built(at)
        assert problem == ""
        assert [name.removeprefix(str(at["v"].parent)) for name in paths] == ["/v", "/v/part", "/w", "/w/file"]

    @pytest.mark.parametrize("kind", KINDS)
    def test_whatever_is_exchanged_and_when(self, tmp_path, kind):
        steps = built(arranged(tmp_path / "first"))[0]
        for when in range(0, steps, STRIDE):
            at = arranged(tmp_path / str(when))
            for source in built(at, kind, when)[2]:
                assert source.startswith((str(at["v"]), str(at["w"]))), (when, source)
            assert [each.name for each in at["state"].iterdir()] == ["secret-key"], when


@as_root
class TestNames:
    """What is looked up by a name once the machine's root is gone: what a pod has put there could be found."""

    def names(self, inside, given):
        """Have a process become a command; return the names that it looked up after its root has changed."""
        ours, theirs = socket.socketpair()
        shim = os.pidfd_open(os.getpid())
        pid = os.fork()
        if pid == 0:
            wall.prepare()  # as the spawner does, of which shims are forks
            self._watch(theirs)
            launch._run_command(given, Streams(), launch._Child(shim, [*os.sched_getaffinity(0)], theirs, inside, -1))
        theirs.close()
        os.close(shim)
        with ours, ours.makefile("rb") as answer:
            data = answer.read()
        os.waitpid(pid, 0)
        return json.loads(data)

    def _watch(self, line):
        found, is_inside = [], []

        def audit(event, given):
            if event == "os.exec":
                line.sendall(json.dumps(found).encode())
                os._exit(0)
            if is_inside and (event == "open" or event.startswith("os.")) and isinstance(given[0], str):
                found.append([event, given[0]])

        def entering(call):
            return lambda *arguments: (call(*arguments), is_inside.append(True))[0]

        sys.addaudithook(audit)
        linux.change_root, linux.setns = entering(linux.change_root), entering(linux.setns)

    def test_commands_enter_their_directory_the_first_and_those_that_join(self, at, attempts):
        given = order(at)._replace(argv=["sh"], cwd="/data", env={"PATH": "/usr/bin"})
        assert self.names(launch.Inside(), given) == [["os.chdir", "/data"]]
        given = given._replace(pids=True)
        shared = {name: getattr(given, name) for name in ("mounts", "binds", "state", "ids", "pids")}
        main = attempts.started(attempts.start("sleep", "600", cwd="/", **shared))["pid"]
        inside = launch.Inside(users=os.open(f"/proc/{main}/ns/user", os.O_RDONLY), main=main)
        assert self.names(inside, given) == [["os.chdir", "/data"]]


def mounts():
    """Return what is mounted, but for what engines of other tests mount meanwhile (proof/harness/engine.py)."""
    lines = linux.content("/proc/self/mountinfo").splitlines()
    return [line for line in lines if b"/volcano-engine-" not in line]


@as_root
class TestKills:
    """The shim is killed at every step of its command's process: its command does not run, as nobody would end it."""

    def killed(self, at, argv, when, *, pids):
        """Start a container, and kill its shim before a step of its command's process; return their number."""
        count = mmap.mmap(-1, 4)
        pid = os.fork()
        if pid == 0:
            signal.alarm(int(HANG_S))
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
            ours, theirs = socket.socketpair()
            shim = os.fork()
            if shim == 0:
                ours.close()
                given = order(at)._replace(argv=argv, env={"PATH": "/usr/bin"}, pids=pids)
                self._be_shim(given, when, count, theirs)
            theirs.close()
            if ours.recv(1):  # in a namespace of processes nobody can kill who is outside
                os.kill(shim, signal.SIGKILL)
                os.waitpid(shim, 0)
            ours.close()
            with contextlib.suppress(ChildProcessError):
                while True:  # whatever is left of it comes here
                    os.wait()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, "something goes on"
        return int.from_bytes(count, "little")

    def _be_shim(self, given, when, count, line):
        shim = os.getpid()
        init.FILES = BEYOND  # so that its command's process does not close it
        os.dup2(line.fileno(), BEYOND, inheritable=False)
        line.close()
        killing = socket.socket(fileno=BEYOND)

        def step():
            if os.getpid() in (shim, 1) or os.getppid() not in (shim, 0):
                return
            now = int.from_bytes(count, "little")
            count[:] = (now + 1).to_bytes(4, "little")
            if now == when:
                killing.send(b"1")
                killing.recv(1)  # until it is dead

        before_every_step(step)
        try:
            os.waitpid(Processes(given).start(Streams()), 0)
        finally:
            os._exit(0)

    @pytest.mark.parametrize("pids", [True, False], ids=["processes of its own", "the machine's processes"])
    def test_its_command_does_not_run_and_nothing_of_it_goes_on(self, at, pids):
        ran, argv = at["v"] / "ran", ["touch", "/data/ran"]
        steps = self.killed(at, argv, -1, pids=pids)
        assert ran.exists(), "nobody was killed"
        before = mounts()
        for when in range(0, steps - 7, STRIDE):  # their number differs by a few
            ran.unlink(missing_ok=True)
            assert self.killed(at, argv, when, pids=pids) > when
            assert not ran.exists(), when
        assert mounts() == before
