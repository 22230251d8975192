"""What works behind the wall round a container, what is said of it, whose pods run without one, and as whom."""

import ctypes
import io
import itertools
import os
import pwd
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from django.core.management import call_command

from kube.kinds.core import Pod
from kube.resources import CREATOR_ANNOTATION, SECRETS
from node import file_trees
from node.agent import reach, wall_check
from node.containers import networks, walls
from node.containers.spawn import Spawner
from node.containers.user_ranges import UserRanges
from node.rules import users
from node.rules.users import Own, RunAs, User
from node.shim import launch, tree
from node.shim import users as subordinates
from node.shim.isolation.landlock import SCOPES_ABI
from node.shim.order import Order, Wall
from tests.node.driving import EMPTY, asking, container, in_ways, mount, person, put, short_folder
from tests.tables import cases


def reached(home, *folders, monkeypatch):
    """Return what of a home is shown with these of its folders on the search path."""
    for folder in folders:
        (home / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", *(str(home / folder) for folder in folders)]))
    found = reach.of_this_machine(home / "data")
    return {os.path.relpath(path, home) for path in found if Path(path).is_relative_to(home)}


def check_wall():
    out = io.StringIO()
    try:
        call_command("check-wall", stdout=out)
    except SystemExit as end:
        return out.getvalue().splitlines(), end.code
    return out.getvalue().splitlines(), 0


class TestReach:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        """The home of the user who runs this, for what looks it up."""
        path = tmp_path / "home"
        path.mkdir()
        entry = pwd.struct_passwd(("u", "x", os.getuid(), os.getgid(), "", str(path), "/bin/sh"))
        monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
        return path

    def test_programs_in_a_home_are_shown_with_their_libraries_alone(self, home, monkeypatch):
        for each in ("conda/lib", "conda/share", "conda/pkgs", "documents", "tools"):
            (home / each).mkdir(parents=True)
        (home / "tools" / "lib").symlink_to(home)
        read = reached(home, "conda/bin", "mine/programs", "tools/bin", monkeypatch=monkeypatch)
        assert read == {"conda/bin", "conda/lib", "mine/programs", "tools/bin"}, "no link beside programs is followed"
        for folder in (".", "..", "data/tools", "data"):
            assert reached(home, folder, monkeypatch=monkeypatch) == set(), "neither it nor the state directory"

    @cases("wall, holds, has, lacks", {
        "old Landlock": (Wall("none", 4, False), True, "(ABI 4); without a root", "send signals to each other and"),
        "no Landlock": (Wall("user", 0, True), True, "holds: a root directory of their own", "Landlock; pods may send"),
        "whole": (Wall("user", 7, True, pids=True, networks="pasta"), True, "namespace with a way out by pasta", ""),
        "root's": (Wall("none", 7, True, root=True), False, "what root may; there is only Landlock (ABI 7)", "an ordinary user"),
        "none": (Wall(), False, "pods reach what the user may who runs the cluster. To have one", ", or have Landlock"),
        "old kernel": (Wall(seccomp=True, root=True, old=True), False, "root may; there", "run Linux 5.15 or newer"),
        "no network": (Wall("user", 7, True, pids=True, closed=True), True, "no pods run", "VOLCANO_UI_POD_NETWORK=closed"),
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
        lines, code = check_wall()
        assert walls.describe(wall) in lines[0]
        results = {line.split(None, 1)[1]: line.split()[0] for line in lines if "held" in line}
        if wall.mounts != "none" and wall.pids and wall.landlock and wall.seccomp:
            tried = wall_check.ATTEMPTS.keys() - ({wall_check.BY_NETWORK} if not wall.networks else set())
            is_scoped = wall.networks or wall.landlock >= SCOPES_ABI
            through = {"connect to a socket without a path"} if not is_scoped else set()
            assert results == dict.fromkeys(tried - through, "held")
            assert code == (0 if is_scoped else 1)
        shares = not wall.networks and network != "closed"
        assert any(line.startswith("  open") for line in lines) is shares

    def test_it_fails_where_pods_are_to_have_a_network_that_cannot_be_had(self, settings, monkeypatch):
        settings.POD_NETWORK = "closed"
        monkeypatch.setattr(Spawner, "probe", lambda *_: Wall("none", landlock=7, seccomp=True))
        monkeypatch.setattr(wall_check, "run_attempts", lambda *_: [])
        lines, code = check_wall()
        assert code
        assert "  refused      all pods: a network without a way out cannot be had" in lines

    def test_without_a_wall_the_attempts_get_through(self, attempts):
        """Otherwise a slip in one of them would look like a wall."""
        found = {one.words for one in wall_check.run_attempts(attempts.spawner, Wall()) if one.got_through}
        kernels = {"read the hashes of passwords", "write among the machine's programs"}
        kernels |= {"mount something", "make a user namespace"}
        assert found | kernels == wall_check.ATTEMPTS.keys() - {wall_check.BY_NETWORK}


class TestControlSockets:
    """Where there is no mount namespace a pod can connect to whatever socket it can name."""

    def test_nothing_is_answered_without_the_node_s_key_which_stays_and_is_its_owner_s_alone(self, machine):
        machine.begin("none")
        uid = machine.held("true", until="Running")
        file = machine.data / "run" / "node-key"
        key = file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
        request = {
            "do": "exec", "uid": uid, "container": "main", "attempt": 0, "argv": ["true"], "streams": [], "tty": False,
        }  # fmt: skip
        for folder, name in ((machine.data / "run", "agent.sock"), (machine.directory(uid), "control")):
            for more, answer in (({}, b""), ({"key": key[:-1] + "?"}, b""), ({"key": key}, b"started")):
                with asking(folder, socket_name=name, **request, **more) as line:
                    received = machine.during(line.recv, 1000)
                    assert (answer in received, bool(answer)) == (True, bool(received))
        machine.again()
        assert file.read_text() == key


@cases("role, namespace, allowed, phase", {
    "administrator of everything": ("administrator", "*", False, "Succeeded"),
    "administrator of the namespace": ("administrator", "d", False, "Pending"),
    "submitter": ("submitter", "d", False, "Pending"),
    "submitter, where a setting allows it": ("submitter", "d", True, "Succeeded"),
})  # fmt: skip
def test_pods_of_others_than_administrators_wait_without_a_wall(machine, settings, role, namespace, allowed, phase):
    settings.ALLOW_UNWALLED = allowed
    person("pat", role, namespace)
    machine.begin("none", landlock=0).shell("true", annotations={CREATOR_ANNOTATION: "pat"})
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
        begin_walled(machine)
        with short_folder(dir="/var/tmp") as folder:
            shutil.copy("/bin/true", folder / "program")
            machine.submit(command=[str(folder / "program")])
            remedy = "containers do not reach this directory of their node; mount it as a hostPath volume"
            machine.until_waits("StartError", remedy)

    @in_ways("root", "user")
    def test_programs_make_terminals_and_write_what_proc_has_of_processes_but_not_the_kernel_s_settings(self, begun):
        """Sshd's login writes into /proc/self; root may write settings without any capability."""
        script = "import os, pty; raise SystemExit(os.waitstatus_to_exitcode(pty.spawn(['tty'])))"
        begun.submit("tty", command=["python3", "-c", script], until="Succeeded")
        script = """
        echo 900 > /proc/self/oom_score_adj
        for setting in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger; do
          if [ -e $setting ] && (exec 3>> $setting) 2> /dev/null; then echo open: $setting; exit 1; fi
        done
        """
        begun.submit(containers=[container(script)], until="Succeeded")

    @pytest.fixture
    def silent(self):
        """A directory of a file system that answers nothing, as one on the network whose server is gone."""
        if os.geteuid() != 0 or not Path("/dev/fuse").exists():
            pytest.skip("only root mounts such a file system, by /dev/fuse")
        libc = ctypes.CDLL(None, use_errno=True)
        with short_folder(dir="/var/tmp") as folder:  # containers without a root of their own open all of /tmp
            device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
            options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
            assert libc.mount(b"silent", os.fsencode(folder), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
            yield folder
            os.close(device)  # whoever waits for it goes on
            assert libc.umount2(os.fsencode(folder), 2) == 0

    def test_a_file_system_that_does_not_answer_holds_up_its_pod_alone(self, machine, settings, silent):
        settings.HOST_PATHS = [str(silent)]
        begin_walled(machine)
        volumes = [{"name": "s", "hostPath": {"path": f"{silent}/deep"}}]
        uid = machine.submit(containers=[container("true", mount("s"))], volumes=volumes)
        machine.until_waits("the pod starts when it does", "does not answer on this node")
        machine.shell("true", "other", until="Succeeded")
        machine.delete()
        machine.until(lambda: uid not in machine.agent.pods)

    def test_command_that_waits_for_such_a_file_system_does_not_hold_up_the_shim(self, silent, tmp_path, monkeypatch):
        monkeypatch.setattr(launch, "NEXT_S", 0.2)
        order = Order(str(tmp_path), [f"{silent}/program"], {}, "/")
        before = tree.children(os.getpid())
        with pytest.raises(launch.LaunchError, match="does a file system not answer"):
            launch.launch(order, launch.Streams(), launch.Inside(main=os.getpid()), [*os.sched_getaffinity(0)])
        assert tree.children(os.getpid()) == before


ROOT, BOXED, ORDINARY = Own(0, 0, (0,), "root"), Own(0, 0, (0,), "user"), Own(1000, 1000, (1000, 27), "user")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


def requested_of(pod=None, container=None):
    body = {"spec": {"securityContext": pod, "containers": [{"name": "main", "securityContext": container}]}}
    for part in (body["spec"], body["spec"]["containers"][0]):
        if part["securityContext"] is None:
            del part["securityContext"]
    read = msgspec.convert(body, Pod)
    return users.requested(read, read.spec.containers[0])


def as_user(script, *mounts, name="main", **context):
    return container(script, *mounts, name=name, securityContext=context)


class TestUsers:
    @cases("pod, container, expected", {
        "nothing": (None, None, RunAs(None, None, (), False)),
        "the pod's": ({"runAsUser": 5, "runAsGroup": 6}, None, RunAs(5, 6, (), False)),
        "the container's first": ({"runAsUser": 5, "runAsGroup": 6}, {"runAsUser": 0}, RunAs(0, 6, (), False)),
        "groups": ({"fsGroup": 7, "supplementalGroups": [8, 7]}, None, RunAs(None, None, (8, 7), False)),
        "allowed by the container": ({"runAsNonRoot": True}, {"runAsNonRoot": False}, RunAs(None, None, (), False)),
    })  # fmt: skip
    def test_what_is_asked_for(self, pod, container, expected):
        assert requested_of(pod, container) == expected

    @cases("wish, own, words", {
        "root gives everything": (RunAs(5, 6, (7,), True), ROOT, ""),
        "root itself": (RunAs(0, 0, (0,), False), ROOT, ""),
        "nobody named": (RunAs(None, None, (), True), ROOT, "has runAsNonRoot and would run as root"),
        "root named": (RunAs(0, None, (), True), ROOT, "breaks non-root policy"),
        "root in a box": (RunAs(5, None, (), False), BOXED, "runAsUser 5 cannot be had, because this machine lets root"),
        "root as itself in a box": (RunAs(0, 0, (), False), BOXED, ""),
        "the user itself": (RunAs(1000, 1000, (27,), True), ORDINARY, ""),
        "not root anyway": (RunAs(None, None, (), True), ORDINARY, ""),
        "root": (RunAs(0, None, (), False), ORDINARY, "runAsUser 0 cannot be had: user 1000 started this cluster"),
        "another group first": (RunAs(None, 27, (), False), ORDINARY, "runAsGroup 27 cannot be had"),
        "a foreign group": (RunAs(None, None, (28,), False), ORDINARY, "the group 28 cannot be had"),
        "-1, which changes nothing": (RunAs(2**32 - 1, None, (), False), ROOT, "is not the number of a user"),
        "negative": (RunAs(-1, None, (), False), ROOT, "is not the number of a user"),
    })  # fmt: skip
    def test_what_can_be_had(self, wish, own, words):
        found = users.problem(wish, own)
        assert words in found if words else found == ""

    @cases("wish, own, expected", {
        "all said": (RunAs(5, 6, (7,), False), ROOT, User(5, 6, (7,))),
        "the user's own group": (RunAs(5, None, (), False), ROOT, User(5, 105, ())),
        "another group beside": (RunAs(None, None, (7,), False), ROOT, User(0, 0, (7,))),
        "who it is anyway": (RunAs(0, None, (), False), ROOT, None),
        "an ordinary user stays": (RunAs(1000, 1000, (27,), True), ORDINARY, None),
    })  # fmt: skip
    def test_whom_the_command_becomes(self, wish, own, expected):
        assert users.user(wish, own, lambda uid: uid + 100) == expected

    @pytest.fixture
    def rooted(self, machine):
        if os.geteuid() != 0 or machine.allowed().mounts != "root":
            pytest.skip("this machine lets this user make no mounts as root")
        machine.begin("root")
        machine.out.chmod(0o777)
        return machine

    def test_command_and_what_joins_it_are_the_user(self, rooted):
        out = rooted.out
        script = f"id -u > {out}/who; id -G >> {out}/who; touch here $TMPDIR/there; echo out > /dev/stdout; sleep 600"
        hook = {"postStart": {"exec": {"command": ["sh", "-c", f"id -u > {out}/hook"]}}}
        main = as_user(script, runAsUser=1234, runAsGroup=4321)
        uid = rooted.submit(containers=[{**main, "lifecycle": hook}], securityContext={"supplementalGroups": [77]})
        rooted.until_phase("Running")
        rooted.until(lambda: "out" in rooted.printed(uid))
        assert [(out / name).read_text() for name in ("who", "hook")] == ["1234\n4321 77\n", "1234\n"]
        made = rooted.data / "node" / "pods" / uid / "_work" / "here"
        assert (made.stat().st_uid, made.stat().st_gid) == (1234, 4321)
        rooted.remove()

    def test_command_of_another_user_neither_outlives_its_shim_nor_becomes_root_nor_reads_what_is_roots(self, rooted):
        program = "import os\ntry:\n    os.setuid(0)\nexcept PermissionError:\n    print(open('/etc/shadow').read())"
        stolen = rooted.out / "stolen"
        thief = as_user(f'python3 -c "{program}" > {stolen}', runAsUser=1234)
        rooted.submit("thief", containers=[thief], until="Failed")
        assert stolen.read_text() == ""
        rooted.submit(containers=[as_user("sleep 600", runAsUser=1234)], until="Running")
        os.kill(rooted.shims()[0], 9)
        rooted.until_phase("Failed")

    def test_volumes_belong_to_the_pods_group_and_users_of_a_pod_share_what_is_its(self, rooted):
        put(SECRETS, "s", data={"key": "aHVzaA=="})
        claim = rooted.claim()
        script = "touch $VOLUME_V/mine $VOLUME_C/mine; cat $VOLUME_S/key"
        mounts = mount("v", "/v"), mount("c", "/c"), mount("s", "/s")
        volumes = [EMPTY, {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
        secret = {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}}
        main = as_user(script, *mounts, runAsUser=1234)
        rooted.submit(containers=[main], securityContext={"fsGroup": 55}, volumes=[*volumes, secret], until="Succeeded")
        made = rooted.files(claim) / "mine"
        assert (made.stat().st_uid, made.stat().st_gid) == (1234, 55)
        first = as_user("touch here $TMPDIR/there $VOLUME_V/too", mount("v", "/v"), name="first", runAsUser=5)
        main = as_user("touch mine; ls here $TMPDIR/there $VOLUME_V/too", mount("v", "/v"), runAsUser=6)
        rooted.submit("shared", initContainers=[first], containers=[main], volumes=[EMPTY], until="Succeeded")

    @root_only
    def test_giving_a_tree_follows_no_link_and_leaves_files_with_several_names(self, tmp_path):
        volume, outside = tmp_path / "volume", tmp_path / "outside"
        (volume / "deep").mkdir(parents=True)
        outside.mkdir()
        (outside / "file").touch()
        (volume / "deep" / "file").touch()
        (volume / "link").symlink_to(outside)
        os.link(outside / "file", volume / "hard")
        fd = os.open(volume, os.O_PATH)
        file_trees.give_to_group(fd, 55)
        os.close(fd)
        groups = {path.name: path.stat().st_gid for path in (volume, volume / "deep", volume / "deep" / "file")}
        assert groups == {"volume": 55, "deep": 55, "file": 55}
        assert [outside.stat().st_gid, (outside / "file").stat().st_gid] == [0, 0]

    @root_only
    @pytest.mark.each_runtime
    def test_root_in_a_pod_is_nobody_outside_and_owns_its_files(self, machine):
        machine.begin(machine.allowed().mounts)
        mounts = {"volumeMounts": [mount("v", "/v")]}
        uid = machine.shell("cat /proc/self/uid_map; id -u; echo x > $VOLUME_V/made", main=mounts, volumes=[EMPTY])
        machine.until_phase("Succeeded")
        first, *_, own = [line.split() for line in machine.printed(uid).splitlines()]
        assert (first[0], int(first[1]) >= subordinates.FIRST, own) == ("0", True, ["0"])
        assert (machine.data / "node" / "pods" / uid / "_volumes" / "v" / "made").stat().st_uid == 0

    def test_ranges_of_namespaces_are_apart_and_stay(self, tmp_path):
        ranges = UserRanges(tmp_path / "users.json")
        assert [ranges.of(name) for name in ("a", "b", "a")] == [0, 1, 0]
        assert [UserRanges(tmp_path / "users.json").of(name) for name in ("b", "c")] == [1, 2]
        parts = [each for number in (0, 1) for each in subordinates.subordinate(number, [70000, 5])]
        ends = sorted((each.outside, each.outside + each.size) for each in parts)
        assert all(one[1] <= two[0] for one, two in itertools.pairwise(ends))
        ids = subordinates.subordinate(3, [80000, 70000, 70000, 12])
        wanted = {0: 0, 1000: 1000, 65535: 65535, 70000: 65536, 80000: 65537}
        assert {number: subordinates.outside(ids, number) - ids[0].outside for number in wanted} == wanted
        assert subordinates.outside(ids, 71000) == 71000, "of nobody there"
