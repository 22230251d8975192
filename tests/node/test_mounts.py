"""What a container has mounted: volumes at their paths, processes of its own, and nothing of the machine to write."""

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
from tests.node.driving import EMPTY, env, field, mount, ran, short_folder
from tests.tables import cases


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


def test_a_container_writes_into_what_is_its_own_alone(attempts, mode, tmp_path):
    """What Landlock refuses elsewhere the mounts do."""
    if not Path("/var/run").is_symlink():
        pytest.skip("this machine has no /var/run that is a link")
    for name in ("volume", "inner"):
        (tmp_path / name).mkdir()
    volume, inner = str(tmp_path / "volume"), str(tmp_path / "inner")
    binds = (
        Bind(volume, "/data"), Bind(inner, "/data/deep/inner"), Bind(inner, "/shown", read_only=True),
        Bind(str(tmp_path), "/var/run/volcano-test"),
    )  # fmt: skip
    own = ["/data", "/data/deep/inner", "/run", "/dev/shm", "/var/run/volcano-test"]
    with short_folder(dir="/var/tmp") as folder:
        places = [*own, "/shown", "/", "/tmp", "/etc", "/dev", folder]
        script = "; ".join(f"(echo x > {place}/mark) 2>/dev/null && echo {place}" for place in places)
        _, output = ran(attempts, f"{script}; true", mounts=mode, binds=binds)
        assert list(folder.iterdir()) == []
    assert output.decode().split() == own


@pytest.fixture
def apart(attempts, mode):
    if not attempts.spawner.probe(attempts.root / "probe").pids:
        pytest.skip("this machine allows no namespaces of processes")
    attempts.layers = {"mounts": mode, "pids": True}
    return attempts


class TestProcesses:
    def test_container_sees_its_own_only_and_what_it_leaves_behind_is_collected(self, apart):
        assert ran(apart, "echo $$; cat /proc/[0-9]*/comm")[1].split() == [b"2", b"volcano-init", b"sh"]
        zombies = "grep -qs '^State:.*zombie' /proc/[0-9]*/status"
        assert ran(apart, f"(sh -c 'sleep 0.01' &); while {zombies}; do sleep 0.01; done")[0]["exitCode"] == 0

    def test_end_of_its_init_is_the_end_of_all_and_that_of_the_shim_of_its_init(self, apart):
        directory = apart.shell("setsid sleep 60 & sleep 60")
        main = apart.started(directory)["pid"]
        (init,) = set(tree.children(apart.shim(directory))) - {main}
        os.kill(init, signal.SIGKILL)
        assert apart.end(directory)["signal"] == signal.SIGKILL
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
            assert ran(apart, f"ipcs -m | grep -w {number}")[0]["exitCode"] == 1
        finally:
            subprocess.run(["ipcrm", "-m", number], check=True)


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


class TestVolumes:
    @pytest.mark.parametrize("target", ["/mnt", "/etc/volcano", "/usr/share/none/such"])
    def test_volume_appears_at_its_path_for_the_container_only(self, attempts, mode, volume, target):
        script = f"cat {target}/greeting && echo back > {target}/answer && ls /usr/bin/env /etc/passwd"
        status, output = ran(attempts, script, mounts=mode, binds=(Bind(str(volume), target),))
        assert (status["exitCode"], output) == (0, b"hello\n/etc/passwd\n/usr/bin/env\n")
        assert (volume / "answer").read_text() == "back\n"
        assert not Path(target, "greeting").exists()
        script = f"cat {target}/greeting; echo x > {target}/x"
        status, output = ran(attempts, script, mounts=mode, binds=(Bind(str(volume), target, read_only=True),))
        assert (status["exitCode"] != 0, output, (volume / "x").exists()) == (True, b"hello\n", False)

    def test_file_can_be_mounted_over_a_file_and_a_volume_lie_inside_another(self, attempts, mode, volume):
        hosts, inner = attempts.root / "hosts", attempts.root / "inner"
        hosts.write_text("127.9.9.9 worker-1\n")
        inner.mkdir()
        (inner / "leaf").write_text("leaf\n")
        binds = (Bind(str(hosts), "/etc/hosts"), Bind(str(inner), "/data/sub"), Bind(str(volume), "/data"))
        script = "getent hosts worker-1; cat /etc/hosts /data/greeting /data/sub/leaf"
        expected = b"127.9.9.9       worker-1\n127.9.9.9 worker-1\nhello\nleaf\n"
        assert ran(attempts, script, mounts=mode, binds=binds)[1] == expected

    def test_what_the_kernel_has_made_is_no_mount_point_and_nothing_no_mount(self, attempts, mode, volume):
        links = ["/etc/mtab"] if Path("/etc/mtab").is_symlink() else []
        for target in (
            "/", "/proc", "/proc/self/fd", "/sys/fs", "/dev", "/dev/null", "/dev/pts", "/var/run/../../proc/1", *links,
        ):  # fmt: skip
            status, _ = ran(attempts, "true", mounts=mode, binds=(Bind(str(volume), target),))
            said = status["reason"], "which are each container's own" in status["message"]
            assert said == ("StartError", True), target
        assert [path.name for path in volume.iterdir()] == ["greeting"]
        status, _ = ran(attempts, "true", mounts=mode, binds=(Bind(str(attempts.root / "missing"), "/mnt"),))
        assert (status["reason"], "missing on /mnt" in status["message"]) == ("StartError", True)

    def test_no_attack_on_what_is_mounted_brings_anything(self, attempts, mode):
        assert {name: loot for name, loot in escapes.escaped(attempts, mode).items() if loot} == {}

    @cases("target", {"missing at the root": "/data", "missing further down": "/brand/new/deep"})
    def test_state_directory_is_hidden_and_a_part_of_a_volume_shown(self, attempts, mode, target):
        state, _ = escapes.stage(attempts)
        binds = (Bind(str(state / "v"), target, below="made/here", read_only=True),)
        directory = state / "attempt"
        directory.mkdir()
        script = f"ls {state}; ls {target}; touch {target}/x || cat {state}/secret-key"
        attempts.shell(script, directory=directory, mounts=mode, binds=binds, state=str(state))
        assert attempts.end(directory)["exitCode"] == 1, attempts.log(directory)
        assert attempts.output(directory) == b""
        assert (state / "v" / "made" / "here").is_dir()

    @cases("before, beneath, found", {
        # In a namespace of its own, whose limit it may set.
        "root may make no user namespace": (
            "open('/proc/sys/user/max_user_namespaces', 'w').write('0')", ("unshare", "--user", "--map-root-user"),
            ("none", True, False),
        ),
        # By a number that no kernel has, which is what the call's own is to Linux before 5.12.
        "a kernel without the calls for mounts": (
            "from node.shim import linux; linux._MOUNT_SETATTR = 9999", (), ("none", None, True),
        ),
    })  # fmt: skip
    def test_a_wall_that_cannot_be_had_is_told_from_others(self, tmp_path, before, beneath, found):
        if beneath and os.geteuid():
            pytest.skip("it is about root")
        wall = probed(tmp_path, before, beneath)
        assert (wall.mounts, wall.root if beneath else None, wall.old) == found

    @pytest.mark.skipif(os.geteuid() != 0, reason="every test already runs without root")
    def test_unprivileged_user_gets_the_same(self):
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
                preexec_fn=lambda: as_nobody.become(nobody), capture_output=True, text=True,
                timeout=2 * HANG_S, cwd="/",
            )  # fmt: skip
            assert done.stdout.strip().endswith(f'["user", "{nobody.pw_uid}\\n/data\\n", 2, {{}}]'), (
                done.stdout + done.stderr
            )
        finally:
            subprocess.run(["rm", "-rf", str(home)], check=True)

    @pytest.mark.each_runtime
    def test_sub_path_is_named_by_variables_of_the_container(self, node):
        mounts = {"volumeMounts": [mount("v", "/v", subPathExpr="of-$(POD)")]}
        main = {**mounts, "env": env(POD=field("metadata.name"))}
        uid = node.shell("echo x > $VOLUME_V/f", main=main, volumes=[EMPTY], until="Succeeded")
        assert (node.data / "node" / "pods" / uid / "_volumes" / "v" / "of-p" / "f").exists()
        node.shell("true", "q", main=mounts, volumes=[EMPTY])
        node.until_waits('names the variable "POD"', "CreateContainerConfigError", name="q")
