"""What works behind the wall round a container, what is said at it, and whose pods run without one."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import pytest

from kube.resources import CREATOR_ANNOTATION
from node.shim import control_socket, launch, tree
from node.shim.order import Order
from proof.escapes.attempts import layers
from proof.harness.waiting import until
from tests.node.driving import container, person
from tests.tables import cases


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


def test_program_beyond_the_wall_is_named_with_the_remedy(machine):
    folder = Path(tempfile.mkdtemp(prefix="volcano-", dir="/var/tmp"))
    try:
        shutil.copy("/bin/true", folder / "program")
        begin_walled(machine)
        machine.submit(command=[str(folder / "program")])
        remedy = "containers do not reach this directory of their node; mount it as a hostPath volume"
        machine.until_waits("StartError", remedy)
    finally:
        shutil.rmtree(folder)


def test_commands_of_exec_and_the_container_s_reach_each_other(attempts):
    found = attempts.spawner.probe(attempts.root / "probe")
    directory = attempts.start("sleep", "60", **{**layers(found), "mounts": "none"})
    main = attempts.started(directory)["pid"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = {"do": "exec", "argv": ["kill", "-USR1", str(main)], "streams": [], "tty": False}
        until((directory / control_socket.NAME).exists)
        control_socket.send(str(directory), request, [theirs.fileno()])
        assert attempts.end(directory)["signal"] == signal.SIGUSR1


def begin_walled(node):
    found = node.allowed()
    if not found.landlock:
        pytest.skip("this machine has no Landlock")
    node.begin("none")


def test_programs_make_terminals(mounted):
    script = "import os, pty; raise SystemExit(os.waitstatus_to_exitcode(pty.spawn(['tty'])))"
    mounted.submit(command=["python3", "-c", script])
    mounted.until_phase("Succeeded")


def test_what_proc_has_of_processes_can_be_written_and_the_kernel_s_settings_cannot(mounted):
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
def silent():
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


def test_a_file_system_that_does_not_answer_holds_up_its_pod_alone(machine, settings, silent):
    settings.HOST_PATHS = [str(silent)]
    begin_walled(machine)
    volumes = [{"name": "s", "hostPath": {"path": f"{silent}/deep"}}]
    uid = machine.submit(containers=[container("true", {"name": "s", "mountPath": "/s"})], volumes=volumes)
    machine.until_waits("the pod starts when it does", "does not answer on this node")
    machine.shell("true", "other")
    machine.until_phase("Succeeded", "other")
    machine.delete()
    machine.until(lambda: uid not in machine.agent.pods)


def test_command_that_waits_for_such_a_file_system_does_not_hold_up_the_shim(silent, tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "NEXT_S", 0.2)
    order = Order(str(tmp_path), [f"{silent}/program"], {}, "/")
    before = tree.children(os.getpid())
    with pytest.raises(launch.LaunchError, match="does a file system not answer"):
        launch.launch(order, launch.Streams(), launch.Inside(main=os.getpid()), [*os.sched_getaffinity(0)])
    assert tree.children(os.getpid()) == before
