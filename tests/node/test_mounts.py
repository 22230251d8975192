"""What a container has mounted, and ways out that were ways out once: what a pod can change is never followed by the node."""

import os
import pwd
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cluster.store import Create, Patch, store
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, JOBS, SECRETS
from node.paths import Layout
from node.shim import control_socket, tree
from node.shim.order import Bind, Wall
from node.volumes import retention
from proof.escapes import as_nobody, escapes
from proof.harness.waiting import HANG_S, until
from tests.node.driving import EMPTY, container, env, executing, field, in_ways, mount, person, put, ran, short_folder
from tests.tables import cases


@pytest.fixture(params=["root", "user"])
def mode(request, attempts):
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
        script = "; ".join(f"(echo x > {path}/mark) 2>/dev/null && echo {path}" for path in places)
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
        with executing(directory, "kill", "-USR1", "2"):
            assert apart.end(directory)["exitCode"] == 7


def probed(folder, before, beneath=()):
    """Return the wall that a process finds, which runs a statement before."""
    program = (
        f"import sys; sys.path.insert(0, sys.argv[1]); {before};"
        "from node.shim import spawner; print(spawner._probe(sys.argv[2]).encode())"
    )
    command = [*beneath, sys.executable, "-c", program, str(as_nobody.PROJECT), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True)
    return Wall.decode(done.stdout)


NONE = "open('/proc/sys/user/max_user_namespaces', 'w').write('0')"
OLD = "from node.shim import linux; linux._MOUNT_SETATTR = 9999"
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
            outcome = status["reason"], "which are each container's own" in status["message"]
            assert outcome == ("StartError", True), target
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
        "root may make no user namespace": (NONE, ("unshare", "--user", "--map-root-user"), ("none", True, False)),
        # By a number that no kernel has, which is what the call's own is to Linux before 5.12.
        "a kernel without the calls for mounts": (OLD, (), ("none", None, True)),
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


in_every_way = in_ways("root", "user", "none")


@in_every_way
class TestSubPath:
    def test_link_of_a_container_shows_nothing_of_the_cluster_to_another(self, begun):
        begun.claim()
        empty, claim = [EMPTY], [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        first = container(f"ln -s {begun.data} $VOLUME_V/out", mount("v", "/v"), name="init")
        main = container(f"cat $VOLUME_V/secret-key > {begun.out}/stolen", mount("v", subPath="out"))
        begun.submit("before", volumes=claim, containers=[first], until="Succeeded")
        begun.submit("of-claim", volumes=claim, containers=[main])
        begun.submit("of-init", volumes=empty, initContainers=[first], containers=[main])
        for name in ("of-claim", "of-init"):
            begun.until_waits("CreateContainerConfigError", "failed to prepare subPath for volumeMount", name=name)
            begun.until_waits("leads out of the volume, by the symbolic link", name=name)
        assert not (begun.out / "stolen").exists()

    def test_what_is_missing_is_not_made_through_a_link_nor_a_mount_point_in_another_volume(self, begun):
        inits = [container(f"ln -s {begun.out} $VOLUME_V/out", mount("v", "/v"), name="init")]
        main = container("true", mount("v", subPath="out/made"))
        begun.submit(volumes=[EMPTY], initContainers=inits, containers=[main])
        begun.until_waits("leads out of the volume")
        if begun.mounts != "none":
            main = container("true", mount("v", "/v"), mount("w", "/v/out/made"))
            begun.submit("q", volumes=[EMPTY, {**EMPTY, "name": "w"}], initContainers=inits, containers=[main])
            begun.until_waits("A volume cannot be mounted at /v/out/made", name="q")
        assert not (begun.out / "made").exists()

    def test_link_that_stays_in_the_volume_is_followed_and_one_key_can_be_mounted(self, begun):
        put(CONFIGMAPS, "c", data={"k": "v"})
        make = "mkdir $VOLUME_V/v1; echo one > $VOLUME_V/v1/file; ln -s v1 $VOLUME_V/latest"
        inits = [container(make, mount("v", "/v"), name="init")]
        mounts = [mount("v", subPath="latest"), mount("c", "/etc/k.conf", subPath="k")]
        main = container(f"cat $VOLUME_V/file $VOLUME_C > {begun.out}/seen", *mounts)
        volumes = [EMPTY, {"name": "c", "configMap": {"name": "c"}}]
        begun.submit(volumes=volumes, initContainers=inits, containers=[main], until="Succeeded")
        assert (begun.out / "seen").read_text() == "one\nv"


@in_every_way
class TestHostPath:
    def exchanged(self, node, name, target, **fields):
        """Submit a pod whose first container makes a link of a directory; its second one reads through that."""
        path = node.out / name
        volumes = [{"name": "h", "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}]
        first = container(f"rmdir {path}; ln -s {target} {path}", mount("h", "/h"), name="init")
        main = container(f"cat $VOLUME_H/secret-key > {node.out}/stolen", mount("h"))
        node.submit(name, volumes=volumes, initContainers=[first], containers=[main], **fields)
        node.until_waits("failed to prepare volume for volumeMount", name=name)
        assert not (node.out / "stolen").exists()

    def test_exchanged_by_an_init_container_it_shows_nothing_of_the_cluster(self, begun, settings):
        settings.HOST_PATHS = ["/"]
        (begun.data / "pki").mkdir()
        (begun.data / "pki" / "secret-key").write_text("hush")
        for name, target in (("is", begun.data), ("below", begun.data / "pki"), ("contains", "/")):
            self.exchanged(begun, name, target)

    def test_nothing_outside_of_what_is_allowed_is_shown_or_made(self, begun, settings, tmp_path):
        (tmp_path / "secret-key").write_text("hush")
        settings.HOST_PATHS, sams = [str(begun.out)], {CREATOR_ANNOTATION: "sam"}
        self.exchanged(begun, "x", tmp_path, annotations=sams)
        for kind in ("DirectoryOrCreate", "FileOrCreate"):
            for name, folder in (("in", begun.out), ("out", tmp_path)):
                path = {"path": f"{folder}/{kind}", "type": kind}
                main, volumes = container("true", mount("h")), [{"name": "h", "hostPath": path}]
                begun.submit(f"{name}-{kind.lower()}", volumes=volumes, containers=[main], annotations=sams)
            begun.until_waits("does not lie below", name=f"out-{kind.lower()}")
            begun.until_phase("Succeeded", f"in-{kind.lower()}")
            assert ((begun.out / kind).exists(), (tmp_path / kind).exists()) == (True, False)


class TestWhoMayHaveAHostPath:
    def of(self, node, **fields):
        volumes = [{"name": "h", "hostPath": {"path": str(node.out)}}]
        node.submit(volumes=volumes, containers=[container("true", mount("h"))], **fields)

    @cases("role, namespace, allowed, phase", {
        "administrator of everything": ("administrator", "*", False, "Succeeded"),
        "administrator of the namespace": ("administrator", "d", False, "Pending"),
        "operator": ("operator", "*", False, "Pending"),
        "submitter": ("submitter", "d", False, "Pending"),
        "submitter, where the setting names it": ("submitter", "d", True, "Succeeded"),
    })  # fmt: skip
    def test_it_takes_an_administrator_of_everything(self, machine, settings, role, namespace, allowed, phase):
        settings.HOST_PATHS = [str(machine.out.parent)] if allowed else []
        person("pat", role, namespace)
        self.of(machine.begin(), annotations={CREATOR_ANNOTATION: "pat"})
        if phase == "Pending":
            machine.until_waits("hostPath", "ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS")
        machine.until_phase(phase)

    def test_a_pod_is_its_jobs_and_one_that_names_nobody_or_whose_owner_is_gone_is_nobodys(self, machine):
        person("root", "administrator")
        person("sam", "submitter", "d")
        job = {"metadata": {"name": "j", "namespace": "d", "annotations": {CREATOR_ANNOTATION: "sam"}}, "spec": {}}
        uid = store.write(Create(JOBS, job))[0].uid
        machine.begin()
        claims = {"owner": uid, "annotations": {CREATOR_ANNOTATION: "root"}}
        pods = {"claims": claims, "bare": {}, "past": {"owner": "gone"}}
        for name, fields in pods.items():
            self.of(machine, name=name, **fields)
        for name in pods:
            machine.until_waits("hostPath", name=name)


def made_from(kind):
    if kind == "secret":
        put(SECRETS, "c", data={"key": "b25l"})
        return {"name": "c", "secret": {"secretName": "c"}}, Patch(SECRETS, "d", "c", {"data": {"key": "dHdv"}})
    put(CONFIGMAPS, "c", data={"key": "one"})
    source = {"configMap": {"name": "c"}}
    volume = {"name": "c", **({"projected": {"sources": [source]}} if kind == "projected" else source)}
    return volume, Patch(CONFIGMAPS, "d", "c", {"data": {"key": "two"}})


@in_every_way
class TestPublishedFiles:
    @cases("kind, attack", {
        "draft": ("configMap", "ln -s {victim} $VOLUME_C/.key.new"),
        "key": ("secret", "ln -sf {victim} $VOLUME_C/key"),
        "version": ("projected", "ln -sfn {folder} $VOLUME_C/..data"),
        "no version": ("configMap", "rm -r $VOLUME_C/..data $VOLUME_C/..2*; ln -s {folder} $VOLUME_C/..data"),
        "in the version": ("secret", "rm $VOLUME_C/..2*/key; ln -s {victim} $VOLUME_C/..data/key"),
        "directory": ("projected", "rm $VOLUME_C/key; mkdir $VOLUME_C/key"),
        "FIFO": ("configMap", "rm $VOLUME_C/key; mkfifo $VOLUME_C/key"),
        "FIFO as version": ("secret", "rm $VOLUME_C/..data; mkfifo $VOLUME_C/..data"),
        "FIFO in the version": ("projected", "rm $VOLUME_C/..2*/key; mkfifo $VOLUME_C/..data/key"),
    })  # fmt: skip
    def test_update_writes_through_no_link_of_the_pod_which_can_write_nothing_there(self, begun, kind, attack):
        volume, update = made_from(kind)
        victim, folder = begun.out / "victim", begun.out / "folder"
        victim.write_text("untouched")
        folder.mkdir()
        tried = f"({attack.format(victim=victim, folder=folder)}) || true"
        script = f"{tried}; echo x > $VOLUME_C/new && touch {begun.out}/written; touch {begun.out}/ready; sleep 60"
        uid = begun.shell(script, main={"volumeMounts": [mount("c", "/cfg")]}, volumes=[volume])
        begun.until((begun.out / "ready").exists)
        assert not (begun.out / "written").exists()
        store.write(update)
        published = begun.data / "node" / "pods" / uid / "_volumes" / "c" / "key"
        begun.until(lambda: published.is_file() and not published.samefile(victim) and published.read_text() == "two")
        assert (victim.read_text(), [*folder.iterdir()]) == ("untouched", [])

    def test_all_files_change_at_once_and_old_ones_go(self, begun):
        put(CONFIGMAPS, "c", data={"a": "1", "b": "1", "gone": "1"})
        # A name goes after the files have changed, as a kubelet does it.
        script = """touch {0}/ready; while [ -e $VOLUME_C/gone ]; do :; done; cat $VOLUME_C/a $VOLUME_C/b > {0}/seen
            while [ -L $VOLUME_C/gone ]; do :; done; ls -A $VOLUME_C > {0}/names"""
        absent = {"name": "absent", "projected": {"sources": [{"secret": {"name": "s", "optional": True}}]}}
        volumes = [{"name": "c", "configMap": {"name": "c"}}, absent]
        begun.submit(volumes=volumes, containers=[container(script.format(begun.out), mount("c", "/cfg"))])
        begun.until((begun.out / "ready").exists)
        store.write(Patch(CONFIGMAPS, "d", "c", {"data": {"a": "2", "b": "2", "gone": None}}))
        begun.until_phase("Succeeded")
        assert (begun.out / "seen").read_text() == "22"
        names = (begun.out / "names").read_text().split()
        assert [one for one in names if not one.startswith("..2")] == ["..data", "a", "b"]


@in_every_way
def test_fifos_where_the_node_looks_hold_nobody(begun):
    """Who opens a FIFO waits for its other end: the node opens none that a pod has made."""
    limited = {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}
    first = container("mkfifo $VOLUME_V/pipe $TMPDIR/pipe pipe", mount("v", "/v"), name="init", **limited)
    main = container("test -p $VOLUME_V; sleep 600", mount("v", subPath="pipe"), **limited)
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]
    begun.submit(volumes=volumes, initContainers=[first], containers=[main], until="Running")
    begun.agent.storage.check()
    begun.shell("true", "other", until="Succeeded")
    begun.remove()
    retention.clean(begun.agent.layout, set(), set(), days=0, most_bytes=0)


def test_removing_a_pod_s_files_and_writing_its_log_follow_no_link(tmp_path, attempts):
    layout, victim = Layout(tmp_path), tmp_path / "victim"
    layout.pods.mkdir(parents=True)
    (victim / "_work").mkdir(parents=True)
    (victim / "_work" / "file").write_text("untouched")
    (layout.pods / "uid").symlink_to(victim)
    for each in (layout.pods / "uid", victim):
        os.utime(each, (0, 0), follow_symlinks=False)
    retention.clean(layout, set(), set(), days=0, most_bytes=0)
    directory = attempts.directory()
    (directory / "log.000000000000000").symlink_to(victim / "_work" / "file")
    attempts.shell("echo out", directory=directory)
    attempts.until_gone(attempts.shim(directory))
    assert (victim / "_work" / "file").read_text() == "untouched"
