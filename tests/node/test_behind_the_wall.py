"""What works behind the wall round a container, what is said of it, and whose pods run without one."""

from __future__ import annotations

import ctypes
import io
import os
import pwd
import re
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from django.core.management import call_command

from kube.resources import CREATOR_ANNOTATION
from node import walls
from node.agent import networks, reach, wall_check
from node.agent.spawn import Spawner
from node.shim import control_socket, launch, tree
from node.shim.landlock import SCOPES_ABI
from node.shim.order import Order, Wall
from proof.escapes.attempts import layers
from proof.harness.waiting import until
from tests.node.driving import container, person
from tests.tables import cases


def reached(home, *folders, monkeypatch, data=None):
    for folder in folders:
        (home / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", *(str(home / folder) for folder in folders)]))
    found = reach.of_this_machine(data or home / "data")
    return found, {os.path.relpath(path, home) for path in found if Path(path).is_relative_to(home)}


class TestReach:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        """The home of the user who runs this, for what looks it up, with nothing on the search path."""
        path = tmp_path / "home"
        path.mkdir()
        entry = pwd.struct_passwd(("u", "x", os.getuid(), os.getgid(), "", str(path), "/bin/sh"))
        monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
        monkeypatch.setenv("PATH", "/usr/bin")
        return path

    def test_programs_in_a_home_are_shown_with_their_libraries_alone(self, home, monkeypatch):
        for each in ("conda/lib", "conda/share", "conda/pkgs", "documents"):
            (home / each).mkdir(parents=True)
        _, read = reached(home, "conda/bin", "mine/programs", monkeypatch=monkeypatch)
        assert read == {"conda/bin", "conda/lib", "mine/programs"}

    @pytest.mark.parametrize("folder", [".", "..", "data/tools", "data"])
    def test_search_path_shows_neither_the_home_nor_the_state_directory(self, home, monkeypatch, folder):
        (home / "data" / "tools").mkdir(parents=True)
        _, read = reached(home, folder, monkeypatch=monkeypatch)
        assert read == set()

    def test_link_beside_programs_is_not_followed(self, home, monkeypatch):
        (home / "tools").mkdir()
        (home / "tools" / "lib").symlink_to(home)
        _, read = reached(home, "tools/bin", monkeypatch=monkeypatch)
        assert read == {"tools/bin"}

    @cases("wall, holds, has, lacks", {
        "all but two": (
            Wall("user", 7, True), True, "Landlock (ABI 7), a root directory of their own",
            "without processes of their own",
        ),
        "old Landlock": (
            Wall("none", 4, False), True, "Landlock (ABI 4); without a root directory",
            "; pods may send signals to each other and to the cluster's processes, connect to sockets without a path",
        ),
        "no Landlock": (
            Wall("user", 0, True), True, "holds: a root directory of their own",
            "Landlock; pods may send signals to each",
        ),
        "root": (
            Wall("root", 0, False, pids=True, root=True), True, "a root directory and users of their own",
            "Landlock, a filter of system calls; pods may connect to sockets without a path",
        ),
        "whole": (
            Wall("user", 7, True, pids=True, networks="pasta"), True,
            "a network for each namespace with a way out by pasta", "",
        ),
        "root without users of their own": (
            Wall("none", 7, True, root=True), False, "pods reach what root may; there is only Landlock (ABI 7)",
            "To have one, start the cluster as an ordinary user, or let root make user namespaces",
        ),
        "none": (
            Wall(), False, "pods reach what the user may who runs the cluster. To have one, let users make user",
            ", or have Landlock (Linux 5.19 or newer",
        ),
        "root on an old kernel": (
            Wall(seccomp=True, root=True, old=True), False, "root may; there is only", "run Linux 5.15 or newer",
        ),
        "old kernel": (
            Wall(seccomp=True, old=True), False, "the user may who runs the cluster; there", "run Linux 5.15 or newer",
        ),
        "without the network that it is to have": (
            Wall("user", 7, True, pids=True, closed=True), True, "; without a network for each namespace; no pods run",
            "as VOLCANO_UI_POD_NETWORK=closed wants it",
        ),
    })  # fmt: skip
    def test_a_wall_in_words(self, wall, holds, has, lacks):
        assert walls.holds(wall) is holds
        assert re.search(f"{re.escape(has)}.*{re.escape(lacks)}", walls.describe(wall))

    def test_folder_of_the_search_path_that_cannot_be_looked_at_is_left_out(self, home, monkeypatch):
        """As root, who may look at everything: by a name that no file system takes."""
        monkeypatch.setenv("PATH", f"/usr/bin:/{'x' * 300}/bin")
        assert not any("xxx" in path for path in reach.of_this_machine(home / "data"))


class TestCheckWall:
    @pytest.mark.parametrize("network", ["own", "closed", "machine"])
    def test_it_tries_the_wall_of_this_machine_and_tells_what_it_found(self, attempts, settings, network):
        settings.POD_NETWORK = network
        wall = networks.chosen(attempts.spawner.probe(attempts.root / "probe"), settings.POD_NETWORK)
        out, code = io.StringIO(), 0
        try:
            call_command("check-wall", stdout=out)
        except SystemExit as end:
            code = end.code
        lines = out.getvalue().splitlines()
        assert walls.describe(wall) in lines[0]
        told = {line.split(None, 1)[1]: line.split()[0] for line in lines if "held" in line}
        whole = wall.mounts != "none" and wall.pids and wall.landlock and wall.seccomp
        if whole:
            tried = wall_check.ATTEMPTS.keys() - ({wall_check.BY_NETWORK} if not wall.networks else set())
            is_scoped = wall.networks or wall.landlock >= SCOPES_ABI
            through = {"connect to a socket without a path"} if not is_scoped else set()
            assert told == dict.fromkeys(tried - through, "held")
        shares = not wall.networks and network != "closed"
        assert any(line.startswith("  open") for line in lines) is shares
        assert code == ((0 if is_scoped else 1) if whole else code)

    def test_it_fails_where_pods_are_to_have_a_network_that_cannot_be_had(self, settings, monkeypatch):
        settings.POD_NETWORK = "closed"
        monkeypatch.setattr(Spawner, "probe", lambda *_: Wall("none", landlock=7, seccomp=True))
        monkeypatch.setattr(wall_check, "tried", lambda *_: [])
        out = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("check-wall", stdout=out)
        assert "  refused      all pods: a network without a way out cannot be had" in out.getvalue().splitlines()

    def test_without_a_wall_the_attempts_get_through(self, attempts):
        """Otherwise a slip in one of them would look like a wall."""
        found = {one.words for one in wall_check.tried(attempts.spawner, Wall()) if one.got_through}
        kernels = {
            "read the hashes of passwords",
            "write among the machine's programs",
            "mount something",
            "make a user namespace",
        }
        assert found | kernels == wall_check.ATTEMPTS.keys() - {wall_check.BY_NETWORK}


class TestControlSockets:
    """Where there is no mount namespace a pod can connect to whatever socket it can name."""

    def asked(self, node, folder, name, **more):
        """Return what the node answers to a request for a command in pod p, by one of its control sockets."""
        request = {
            "do": "exec", "uid": node.uid, "container": "main", "attempt": 0, "argv": ["true"],
            "streams": [], "tty": False, **more,
        }  # fmt: skip
        ours, theirs = socket.socketpair()
        with ours, theirs:
            control_socket.send(str(folder), request, [theirs.fileno()], name)
            theirs.close()
            return node.during(ours.recv, 1000)

    @pytest.mark.parametrize("socket_of", ["agent", "shim"])
    def test_nothing_is_answered_without_the_node_s_key_which_stays_and_is_its_owner_s_alone(self, machine, socket_of):
        machine.begin("none")
        machine.uid = machine.held("true")
        machine.until_phase("Running")
        shim = (machine.directory(machine.uid), "control")
        where = {"agent": (machine.data / "run", "agent.sock"), "shim": shim}[socket_of]
        file = machine.data / "run" / "node-key"
        key = file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
        assert self.asked(machine, *where) == b""
        assert self.asked(machine, *where, key=key[:-1] + "?") == b""
        assert b"started" in self.asked(machine, *where, key=key)
        machine.crash()
        machine.again()
        assert file.read_text() == key


class TestWithoutAWall:
    @cases("role, namespace, allowed, phase", {
        "administrator of everything": ("administrator", "*", False, "Succeeded"),
        "administrator of the namespace": ("administrator", "d", False, "Pending"),
        "submitter": ("submitter", "d", False, "Pending"),
        "submitter, where a setting allows it": ("submitter", "d", True, "Succeeded"),
    })  # fmt: skip
    def test_pods_of_others_than_administrators_wait(self, machine, settings, role, namespace, allowed, phase):
        settings.ALLOW_UNWALLED = allowed
        person("pat", role, namespace)
        machine.begin("none", landlock=0)
        machine.shell("true", annotations={CREATOR_ANNOTATION: "pat"})
        if phase == "Pending":
            machine.until_waits("VOLCANO_UI_ALLOW_UNWALLED=1", "this machine has no wall")
        machine.until_phase(phase)


def begin_walled(node):
    found = node.allowed()
    if not found.landlock:
        pytest.skip("this machine has no Landlock")
    node.begin("none")


class TestPods:
    def test_program_beyond_the_wall_is_named_with_the_remedy(self, machine):
        folder = Path(tempfile.mkdtemp(prefix="volcano-", dir="/var/tmp"))
        try:
            shutil.copy("/bin/true", folder / "program")
            begin_walled(machine)
            machine.submit(command=[str(folder / "program")])
            remedy = "containers do not reach this directory of their node; mount it as a hostPath volume"
            machine.until_waits("StartError", remedy)
        finally:
            shutil.rmtree(folder)

    def test_commands_of_exec_and_the_container_s_reach_each_other(self, attempts):
        found = attempts.spawner.probe(attempts.root / "probe")
        directory = attempts.start("sleep", "60", **{**layers(found), "mounts": "none"})
        main = attempts.started(directory)["pid"]
        ours, theirs = socket.socketpair()
        with ours, theirs:
            request = {"do": "exec", "argv": ["kill", "-USR1", str(main)], "streams": [], "tty": False}
            until((directory / control_socket.NAME).exists)
            control_socket.send(str(directory), request, [theirs.fileno()])
            assert attempts.end(directory)["signal"] == signal.SIGUSR1

    def test_programs_make_terminals(self, mounted):
        script = "import os, pty; raise SystemExit(os.waitstatus_to_exitcode(pty.spawn(['tty'])))"
        mounted.submit(command=["python3", "-c", script])
        mounted.until_phase("Succeeded")

    def test_what_proc_has_of_processes_can_be_written_and_the_kernel_s_settings_cannot(self, mounted):
        """Sshd's login writes into /proc/self; root may write settings without any capability."""
        script = """
        echo 900 > /proc/self/oom_score_adj
        for setting in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger; do
          if [ -e $setting ] && (exec 3>> $setting) 2> /dev/null; then echo open: $setting; exit 1; fi
        done
    """
        mounted.submit(containers=[container(script)])
        mounted.until_phase("Succeeded")

    @pytest.fixture
    def silent(self):
        """A directory of a file system that answers nothing, as one on the network whose server is gone."""
        if os.geteuid() != 0 or not Path("/dev/fuse").exists():
            pytest.skip("only root mounts such a file system, by /dev/fuse")
        folder = Path(
            tempfile.mkdtemp(prefix="volcano-silent-", dir="/var/tmp")
        )  # containers without a root of their own open all of /tmp
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mount(b"silent", os.fsencode(folder), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
        yield folder
        os.close(device)  # whoever waits for it goes on
        assert libc.umount2(os.fsencode(folder), 2) == 0
        folder.rmdir()

    def test_a_file_system_that_does_not_answer_holds_up_its_pod_alone(self, machine, settings, silent):
        settings.HOST_PATHS = [str(silent)]
        begin_walled(machine)
        volumes = [{"name": "s", "hostPath": {"path": f"{silent}/deep"}}]
        uid = machine.submit(containers=[container("true", {"name": "s", "mountPath": "/s"})], volumes=volumes)
        machine.until_waits("the pod starts when it does", "does not answer on this node")
        machine.shell("true", "other")
        machine.until_phase("Succeeded", "other")
        machine.delete()
        machine.until(lambda: uid not in machine.agent.pods)

    def test_command_that_waits_for_such_a_file_system_does_not_hold_up_the_shim(self, silent, tmp_path, monkeypatch):
        monkeypatch.setattr(launch, "NEXT_S", 0.2)
        order = Order(str(tmp_path), [f"{silent}/program"], {}, "/")
        before = tree.children(os.getpid())
        with pytest.raises(launch.LaunchError, match="does a file system not answer"):
            launch.launch(order, launch.Streams(), launch.Inside(main=os.getpid()), [*os.sched_getaffinity(0)])
        assert tree.children(os.getpid()) == before
