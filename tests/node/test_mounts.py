from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from node.shim import control_socket, tree
from node.shim.order import Bind, Wall
from proof.escapes import as_nobody, escapes
from proof.harness.waiting import HANG_S, until


@pytest.fixture(params=["root", "user"])
def mode(request, attempts):
    """How the container gets its mounts; what this machine does not allow is skipped."""
    found = attempts.spawner.probe(attempts.root / "probe")
    if found.mounts == "none" or (request.param == "root" and found.mounts != "root"):
        pytest.skip(f"this machine does not give this user's containers a root the {request.param} way")
    attempts.layers = {"pids": found.pids}
    return request.param


@pytest.fixture
def volume(attempts):
    path = attempts.root / "volume"
    path.mkdir()
    (path / "greeting").write_text("hello\n")
    return path


@pytest.mark.parametrize("target", ["/mnt", "/etc/volcano", "/brand/new/deep", "/usr/share/none/such"])
def test_volume_appears_at_its_path_for_the_container_only(attempts, mode, volume, target):
    binds = (Bind(str(volume), target),)
    script = f"cat {target}/greeting && echo back > {target}/answer && ls /usr/bin/env /etc/passwd"
    directory = attempts.shell(script, mounts=mode, binds=binds)
    assert attempts.end(directory)["exitCode"] == 0, attempts.log(directory)
    assert attempts.output(directory) == b"hello\n/etc/passwd\n/usr/bin/env\n"
    assert (volume / "answer").read_text() == "back\n"
    assert not Path(target, "greeting").exists()


def test_read_only_volume_cannot_be_written(attempts, mode, volume):
    binds = (Bind(str(volume), "/etc/volcano", read_only=True),)
    directory = attempts.shell("cat /etc/volcano/greeting; echo x > /etc/volcano/x", mounts=mode, binds=binds)
    assert attempts.end(directory)["exitCode"] != 0
    assert attempts.output(directory) == b"hello\n"
    assert not (volume / "x").exists()


def test_file_can_be_mounted_over_a_file(attempts, mode):
    hosts = attempts.root / "hosts"
    hosts.write_text("127.9.9.9 worker-1\n")
    directory = attempts.shell(
        "getent hosts worker-1; cat /etc/hosts", mounts=mode, binds=(Bind(str(hosts), "/etc/hosts"),)
    )
    attempts.end(directory)
    assert attempts.output(directory) == b"127.9.9.9       worker-1\n127.9.9.9 worker-1\n"


def test_volume_can_lie_inside_another(attempts, mode, volume):
    inner = attempts.root / "inner"
    inner.mkdir()
    (inner / "leaf").write_text("leaf\n")
    binds = (Bind(str(inner), "/data/sub"), Bind(str(volume), "/data"))
    directory = attempts.shell("cat /data/greeting /data/sub/leaf", mounts=mode, binds=binds)
    attempts.end(directory)
    assert attempts.output(directory) == b"hello\nleaf\n"


@pytest.mark.parametrize(
    "target",
    ["/", "/proc", "/proc/self/fd", "/sys/fs", "/dev", "/dev/null", "/dev/pts", "/var/run/../../proc/1", "/etc/mtab"],
)  # fmt: skip
def test_what_the_kernel_has_made_is_no_mount_point(attempts, mode, volume, target):
    if target == "/etc/mtab" and not Path(target).is_symlink():
        pytest.skip("no link leads to /proc here")
    status = attempts.end(attempts.shell("true", mounts=mode, binds=(Bind(str(volume), target),)))
    assert status["reason"] == "StartError"
    assert "which are each container's own" in status["message"]
    assert [path.name for path in volume.iterdir()] == ["greeting"]


def test_impossible_mount_is_a_start_error(attempts, mode):
    binds = (Bind(str(attempts.root / "missing"), "/mnt"),)
    status = attempts.end(attempts.shell("true", mounts=mode, binds=binds))
    assert status["reason"] == "StartError"
    assert "missing on /mnt" in status["message"]


def test_command_with_mounts_does_not_outlive_its_shim(attempts, mode):
    directory = attempts.start("sleep", "60", mounts=mode)
    pid = attempts.started(directory)["pid"]
    attempts.kill_shim(directory)
    attempts.until_gone(pid)


def test_no_attack_on_what_is_mounted_brings_anything(attempts, mode):
    assert {name: loot for name, loot in escapes.escaped(attempts, mode).items() if loot} == {}


@pytest.mark.parametrize("target", ["/data", "/brand/new/deep"], ids=["missing at the root", "missing further down"])
def test_state_directory_is_hidden_and_a_part_of_a_volume_shown(attempts, mode, target):
    state, _ = escapes.stage(attempts)
    binds = (Bind(str(state / "v"), target, below="made/here", read_only=True),)
    directory = state / "attempt"
    directory.mkdir()
    script = f"ls {state}; ls {target}; touch {target}/x || cat {state}/secret-key"
    attempts.shell(script, directory=directory, mounts=mode, binds=binds, state=str(state))
    assert attempts.end(directory)["exitCode"] == 1, attempts.log(directory)
    assert attempts.output(directory) == b""
    assert (state / "v" / "made" / "here").is_dir()


class TestWithoutLandlock:
    """What Landlock refuses elsewhere the mounts do: a container changes what is its own, and nothing of the machine."""

    def written(self, attempts, mode, *places, binds=()):
        """Return which places a container can write to."""
        script = "; ".join(f"(echo x > {place}/mark) 2>/dev/null && echo {place}" for place in places)
        directory = attempts.shell(f"{script}; true", mounts=mode, binds=binds)
        assert attempts.end(directory)["exitCode"] == 0
        return attempts.output(directory).decode().split()

    def test_the_machine_s_files_are_read_only(self, attempts, mode):
        folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
        try:
            assert self.written(attempts, mode, folder) == []
            assert list(folder.iterdir()) == []
        finally:
            folder.rmdir()

    def test_what_is_its_own_is_not(self, attempts, mode, tmp_path):
        for name in ("volume", "inner"):
            (tmp_path / name).mkdir()
        binds = (
            Bind(str(tmp_path / "volume"), "/data"),
            Bind(str(tmp_path / "inner"), "/data/deep/inner"),
            Bind(str(tmp_path / "inner"), "/shown", read_only=True),
        )
        places = ["/data", "/data/deep/inner", "/shown", "/", "/tmp", "/etc", "/run", "/dev", "/dev/shm"]
        written = self.written(attempts, mode, *places, binds=binds)
        assert written == ["/data", "/data/deep/inner", "/run", "/dev/shm"]

    def test_a_volume_behind_a_link_of_the_system_can_be_written(self, attempts, mode, tmp_path):
        if not Path("/var/run").is_symlink():
            pytest.skip("this machine has no /var/run that is a link")
        target = "/var/run/volcano-test"
        binds = (Bind(str(tmp_path), target),)
        assert self.written(attempts, mode, target, binds=binds) == [target]


@pytest.fixture
def apart(attempts, mode):
    """Layers with a namespace of processes."""
    if not attempts.spawner.probe(attempts.root / "probe").pids:
        pytest.skip("this machine allows no namespaces of processes")
    attempts.layers = {"mounts": mode, "pids": True}
    return attempts


class TestProcesses:
    def test_container_sees_its_own_only(self, apart):
        directory = apart.shell("echo $$; cat /proc/[0-9]*/comm")
        apart.end(directory)
        assert apart.output(directory).decode().split() == ["2", "volcano-init", "sh"]

    def test_what_it_leaves_behind_is_collected(self, apart):
        zombies = "grep -qs '^State:.*zombie' /proc/[0-9]*/status"
        directory = apart.shell(f"(sh -c 'sleep 0.01' &); while {zombies}; do sleep 0.01; done")
        assert apart.end(directory)["exitCode"] == 0

    def test_end_of_its_init_is_the_end_of_all(self, apart):
        directory = apart.shell("setsid sleep 60 & sleep 60")
        main = apart.started(directory)["pid"]
        (init,) = set(tree.children(apart.shim(directory))) - {main}
        os.kill(init, signal.SIGKILL)
        assert apart.end(directory)["signal"] == signal.SIGKILL

    def test_init_does_not_outlive_its_shim(self, apart):
        directory = apart.start("sleep", "60")
        processes = tree.children(apart.shim(directory))
        assert len(processes) == 2
        apart.kill_shim(directory)
        for pid in processes:
            apart.until_gone(pid)

    def test_exec_joins_them(self, apart):
        directory = apart.shell("trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done")
        until(lambda: b"ready" in apart.log(directory) and (directory / control_socket.NAME).exists())
        ours, theirs = socket.socketpair()
        with ours, theirs:
            request = {"do": "exec", "argv": ["kill", "-USR1", "2"], "streams": [], "tty": False}
            control_socket.send(str(directory), request, [theirs.fileno()])
            assert apart.end(directory)["exitCode"] == 7

    def test_memory_of_other_containers_is_not_shared(self, apart):
        made = subprocess.run(["ipcmk", "-M", "4096"], capture_output=True, text=True, check=True)
        number = made.stdout.split()[-1]
        try:
            directory = apart.shell(f"ipcs -m | grep -w {number}")
            assert apart.end(directory)["exitCode"] == 1
        finally:
            subprocess.run(["ipcrm", "-m", number], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
def test_root_that_may_make_no_user_namespace_has_no_wall_for_others(tmp_path):
    """In a namespace of its own, whose limit it may set."""
    unshare = ("unshare", "--user", "--map-root-user")
    found = probed(tmp_path, "open('/proc/sys/user/max_user_namespaces', 'w').write('0')", unshare)
    assert (found.mounts, found.root, found.old) == ("none", True, False)


def test_kernel_without_the_calls_for_mounts_is_told_from_one_that_forbids_them(tmp_path):
    """By a number that no kernel has, which is what the call's own is to Linux before 5.12."""
    found = probed(tmp_path, "from node.shim import linux; linux._MOUNT_SETATTR = 9999")
    assert (found.mounts, found.old) == ("none", True)


def probed(folder, before, beneath=()):
    """Return the wall that a process finds, which runs a statement before."""
    program = (
        f"import sys; sys.path.insert(0, sys.argv[1]); {before};"
        "from node.shim import spawner; print(spawner._probe(sys.argv[2]).encode())"
    )
    command = [*beneath, sys.executable, "-c", program, str(as_nobody.PROJECT), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True)
    return Wall.decode(done.stdout)


AS_NOBODY = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from proof.escapes import escapes
from proof.escapes.attempts import Attempts
from node.shim.order import Bind
attempts = Attempts(Path(sys.argv[2]))
try:
    mode = attempts.spawner.probe(attempts.root / "probe").mounts
    (attempts.root / "v").mkdir()
    binds = (Bind(str(attempts.root / "v"), "/data"),) if mode == "user" else ()
    directory = attempts.shell("id -u; cd /data && pwd", mounts=mode, binds=binds)
    attempts.end(directory)
    bomb = attempts.shell("i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done", mounts=mode, processes=100)
    status = attempts.end(bomb)
    loot = {name: each for name, each in escapes.escaped(attempts, mode).items() if each}
    print(json.dumps([mode, attempts.output(directory).decode(), status["exitCode"], loot]))
finally:
    attempts.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="every test already runs without root")
def test_unprivileged_user_gets_the_same():
    nobody = pwd.getpwnam("nobody")
    home = Path(tempfile.mkdtemp(prefix="volcano-", dir="/tmp"))
    python = Path(sys._base_executable).resolve()
    try:
        home.chmod(0o755)
        code = as_nobody.code(home / "code")
        (home / "work").mkdir()
        os.chown(home / "work", nobody.pw_uid, nobody.pw_gid)
        done = subprocess.run(
            [python, "-c", AS_NOBODY, str(code), str(home / "work")],
            preexec_fn=lambda: as_nobody.become(nobody), capture_output=True, text=True, timeout=2 * HANG_S, cwd="/",
        )  # fmt: skip
        assert done.stdout.strip().endswith(f'["user", "{nobody.pw_uid}\\n/data\\n", 2, {{}}]'), (
            done.stdout + done.stderr
        )
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


def by_name(env):
    """A container that writes into a directory of a volume that a variable names."""
    return {
        "name": "main", "image": "any", "command": ["sh", "-c", "echo x > $VOLUME_V/f"], "env": env,
        "volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "of-$(POD)"}],
    }  # fmt: skip


@pytest.mark.each_runtime
def test_sub_path_is_named_by_variables_of_the_container(node):
    env = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    uid = node.submit(containers=[by_name(env)], volumes=[{"name": "v", "emptyDir": {}}])
    node.until_phase("Succeeded")
    assert (node.data / "node" / "pods" / uid / "_volumes" / "v" / "of-p" / "f").exists()


def test_sub_path_of_a_variable_that_the_container_does_not_have_is_refused(node):
    node.submit(containers=[by_name([])], volumes=[{"name": "v", "emptyDir": {}}])
    node.until(lambda: 'names the variable "POD"' in str(node.status().get("containerStatuses")))
    assert node.state()["waiting"]["reason"] == "CreateContainerConfigError"


def test_token_of_an_account_is_refused_with_a_remedy(node):
    volume = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    node.submit(containers=[{"name": "main", "image": "any", "command": ["true"]}], volumes=[volume])
    node.until(lambda: "cannot have serviceAccountToken" in str(node.status().get("containerStatuses")))
    assert node.state()["waiting"]["reason"] == "CreateContainerConfigError"
