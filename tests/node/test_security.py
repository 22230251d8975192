"""What pods reach: the tables of docs/escapes.md are what is true here, and random attacks reach nothing."""

import contextlib
import ctypes
import functools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from node import inotify
from node.shim import control_socket, linux, users
from node.shim.order import Bind
from proof.escapes.attempts import Attempts, layers
from proof.escapes.breakouts import KERNEL_DECIDES
from proof.escapes.security_table import ENGINES, IMAGES, USERS, documented, measured, measured_of_images
from proof.harness.waiting import until
from tests.node.driving import executing

# Root tries as everybody.
HERE = [name for name in (*USERS, *ENGINES) if os.geteuid() == 0 or "ordinary user" in name]


@pytest.fixture(scope="module", params=HERE)
def tables(request):
    """What the page says and what is true, by wall and attack, for who starts the cluster, or with an engine."""
    if request.param in USERS:
        return documented(request.param), measured(request.param)
    kind = ENGINES[request.param]
    found = measured_of_images(request.getfixturevalue(kind) if kind else None)
    if isinstance(found, str):
        pytest.skip(f"podman of an ordinary user: {found}")
    return documented(IMAGES), {request.param: found}


def test_nothing_gets_through_that_the_page_does_not_tell(tables):
    page, found = tables
    through = {(wall, words) for wall, table in found.items() for words, got in table.items() if got}
    documented = {(wall, words) for wall, table in page.items() for words, got in table.items() if got}
    assert through - documented == set()


def test_what_the_page_says_gets_through_does_and_every_attempt_is_in_the_tables(tables):
    """So an attempt that fails for another reason than the wall, such as a slip in it, is found."""
    page, found = tables
    tried = [(wall, words) for wall, table in found.items() for words in table.keys() - KERNEL_DECIDES]
    assert [(wall, words) for wall, words in tried if page[wall][words] and not found[wall][words]] == []
    assert {frozenset(table) for table in page.values()} == {frozenset(table) for table in found.values()}


VOLUMES = ("v", "w")
NAMES = ("a", "b", "a/b")
# Where links of a pod lead, seen from the machine: what is not the pod's, and what leads there.
TARGETS = (
    "{private}", "{private}/file", "/", "..", "../..", "/proc/self/fd", "/proc/1/root", "/work", "{state}/w", "a", "b",
)  # fmt: skip
KINDS = (*TARGETS, *TARGETS, "folder", "file", "fifo")
POINTS = ("/data", "/data/a", "/data/a/b", "/run/x", "/etc/new/deep", "/tmp", "/usr/share/none")
# Reads all that it finds through whatever links there are, leaves a mark in each directory, and connects to sockets.
LOOK = """
find -L {places} {private} -maxdepth 3 '(' -type d -o -type f -name file ')' 2>/dev/null | while read -r one; do
  if [ -d "$one" ]; then : > "$one/mark"; continue; fi
  line=; read -r line < "$one"
  if [ "$line" = canary ]; then echo "READ $one"; : > "$one"; fi
done 2>/dev/null
kill -0 {outside} 2>/dev/null && read -r line < /proc/{outside}/cmdline && case $line in *canary*) echo SIGNALLED;; esac
[ -e {private}/socket ] && echo CONNECTED
echo looked
"""


class Watch:
    """What is done to files, by whatever process and under whatever name: the kernel tells."""

    EVERYTHING = 0xFFF  # IN_ALL_EVENTS

    def __init__(self, *paths):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watched = {libc.inotify_add_watch(self.fd, os.fsencode(path), self.EVERYTHING): path for path in paths}
        assert -1 not in self.watched, os.strerror(ctypes.get_errno())

    def seen(self):
        """Return what was done since the last time: which file, and the bits that say what."""
        found, at = [], 0
        try:
            data = os.read(self.fd, inotify.BUFFER)
        except BlockingIOError:
            return []
        while at < len(data):
            watch, mask, _, length = inotify.EVENT.unpack_from(data, at)
            at += inotify.EVENT.size + length
            found.append((str(self.watched.get(watch)), hex(mask)))
        return found


class Attacks(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.root = Path(tempfile.mkdtemp(prefix="volcano-attacks-", dir="/var/tmp"))
        self.private, self.state = self.root / "private", self.root / "state"
        for path in (self.private, *(self.state / name for name in VOLUMES)):
            path.mkdir(parents=True)
        (self.private / "file").write_text("canary")
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(self.private / "socket"))
        self.listening.listen()
        self.listening.setblocking(False)
        self.outside = subprocess.Popen(["sh", "-c", "exec sleep 600 # canary"], stdout=subprocess.DEVNULL)
        self.attempts = Attempts(self.root)
        self.wall = self.attempts.spawner.probe(self.root / "probe")
        self.before = self._private()
        self.watch = Watch(self.private, *self.private.iterdir())
        self.running, self.ended = [], []

    def teardown(self):
        if hasattr(self, "attempts"):
            self.attempts.close()
            os.close(self.watch.fd)
            self.listening.close()
            self.outside.kill()
            self.outside.wait()
            shutil.rmtree(self.root)

    def _private(self):
        found = {path.name: path.lstat() for path in self.private.iterdir()}
        return {name: (at.st_mode, at.st_uid, at.st_mtime_ns, at.st_size) for name, at in found.items()}

    def _script(self, binds):
        places = " ".join(sorted({bind.target for bind in binds} | {"/proc/self/fd", "/work"}))
        return LOOK.format(places=places, private=self.private, outside=self.outside.pid)

    @rule(volume=st.sampled_from(VOLUMES), name=st.sampled_from(NAMES), kind=st.sampled_from(KINDS))
    def make(self, volume, name, kind):
        """Make something, or a link to one of the targets, as another container of the pod may at any time."""
        path = self.state / volume / name
        if path.parent.is_symlink():  # the test would follow it
            return
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            link = functools.partial(path.symlink_to, kind.format(private=self.private, state=self.state))
            {"folder": path.mkdir, "file": path.touch, "fifo": functools.partial(os.mkfifo, path)}.get(kind, link)()

    @precondition(lambda self: len(self.running) < 3)
    @rule(
        binds=st.lists(
            st.tuples(st.sampled_from(VOLUMES), st.sampled_from(POINTS), st.sampled_from(["", *NAMES])),
            min_size=1, max_size=4, unique_by=lambda each: each[1],
        ),
        stays=st.booleans(),
    )  # fmt: skip
    def start(self, binds, stays):
        made = tuple(Bind(str(self.state / volume), point, below=below) for volume, point, below in binds)
        binds = *made, Bind(str(self.root / "work"), "/work")
        fields = {"binds": binds, "state": str(self.state), "ids": users.subordinate(0), **layers(self.wall)}
        script = self._script(made) + ("sleep 600" if stays else "")
        directory = self.attempts.shell(script, cwd="/work", **fields)
        if (directory / "started.json").exists() and stays:
            until(lambda: b"looked" in self.attempts.log(directory) or (directory / "status.json").exists())
            self.running.append((directory, made))
        else:
            self.attempts.end(directory)
            self.ended.append(directory)

    @precondition(lambda self: self.running)
    @rule()
    def execute(self):
        directory, binds = self.running[-1]
        if not (directory / control_socket.NAME).exists():
            return
        reader, writer = os.pipe()
        with executing(directory, "sh", "-c", self._script(binds), descriptors=[writer]):
            os.close(writer)
            with os.fdopen(reader, "rb") as output:
                self.reached_nothing(output.read())

    def reached_nothing(self, output):
        assert not [word for word in (b"READ", b"SIGNALLED", b"CONNECTED") if word in output], output

    @precondition(lambda self: self.running)
    @rule(how=st.sampled_from(["stop", "kill the shim", "kill the spawner"]))
    def end(self, how):
        directory, _ = self.running.pop(0)
        if how == "kill the spawner":
            self.attempts.spawner.close()
        if how == "kill the shim":
            pid = self.attempts.started(directory)["pid"]
            self.attempts.kill_shim(directory)
            self.attempts.until_gone(pid)
        else:
            self.attempts.stop(directory, grace=0.1)
            self.attempts.end(directory)
        self.ended.append(directory)

    @invariant()
    def nothing_is_reached(self):
        if not hasattr(self, "before"):
            return
        assert self.watch.seen() == []
        assert self._private() == self.before
        assert (self.private / "file").read_text() == "canary"
        assert linux.start_ticks(self.outside.pid)
        assert not [*self.root.glob("mark"), *Path("/").glob("mark")]
        with pytest.raises(BlockingIOError):
            self.listening.accept()
        self.watch.seen()  # of this test itself
        for directory in (*self.ended, *(each for each, _ in self.running)):
            self.reached_nothing(self.attempts.log(directory))


EXAMPLES, STEPS = (120, 25) if "ESCAPES" in os.environ else (6, 12)
Attacks.TestCase.settings = hypothesis.settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
TestAttacks = Attacks.TestCase
