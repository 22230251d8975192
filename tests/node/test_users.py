"""As whom containers run: what can be had, and real processes that are somebody else."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from kube.kinds.core import Pod
from kube.resources import SECRETS
from node import file_trees, users
from node.agent.user_ranges import UserRanges
from node.shim import users as subordinates
from node.users import Asked, Own, User
from tests.node import driving
from tests.node.driving import EMPTY, mount, put
from tests.tables import cases

ROOT, BOXED, ORDINARY = Own(0, 0, (0,), "root"), Own(0, 0, (0,), "user"), Own(1000, 1000, (1000, 27), "user")


NOBODY = 65534


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


def asked(pod=None, container=None):
    body = {"spec": {"securityContext": pod, "containers": [{"name": "main", "securityContext": container}]}}
    for part in (body["spec"], body["spec"]["containers"][0]):
        if part["securityContext"] is None:
            del part["securityContext"]
    read = msgspec.convert(body, Pod)
    return users.asked(read, read.spec.containers[0])


def container(script, *mounts, name="main", **context):
    return driving.container(script, *mounts, name=name, securityContext=context)


class TestUsers:
    @cases("pod, container, expected", {
        "nothing": (None, None, Asked(None, None, (), False)),
        "the pod's": ({"runAsUser": 5, "runAsGroup": 6}, None, Asked(5, 6, (), False)),
        "the container's first": ({"runAsUser": 5, "runAsGroup": 6}, {"runAsUser": 0}, Asked(0, 6, (), False)),
        "groups": ({"fsGroup": 7, "supplementalGroups": [8, 7]}, None, Asked(None, None, (8, 7), False)),
        "allowed by the container": ({"runAsNonRoot": True}, {"runAsNonRoot": False}, Asked(None, None, (), False)),
    })  # fmt: skip
    def test_what_is_asked_for(self, pod, container, expected):
        assert asked(pod, container) == expected

    @cases("wish, own, words", {
        "root gives everything": (Asked(5, 6, (7,), True), ROOT, ""),
        "root itself": (Asked(0, 0, (0,), False), ROOT, ""),
        "nobody named": (Asked(None, None, (), True), ROOT, "has runAsNonRoot and would run as root"),
        "root named": (Asked(0, None, (), True), ROOT, "breaks non-root policy"),
        "root in a box": (
            Asked(5, None, (), False), BOXED, "runAsUser 5 cannot be had, because this machine lets root",
        ),
        "root as itself in a box": (Asked(0, 0, (), False), BOXED, ""),
        "the user itself": (Asked(1000, 1000, (27,), True), ORDINARY, ""),
        "not root anyway": (Asked(None, None, (), True), ORDINARY, ""),
        "root": (Asked(0, None, (), False), ORDINARY, "runAsUser 0 cannot be had: user 1000 started this cluster"),
        "another group first": (Asked(None, 27, (), False), ORDINARY, "runAsGroup 27 cannot be had"),
        "a foreign group": (Asked(None, None, (28,), False), ORDINARY, "the group 28 cannot be had"),
        "-1, which changes nothing": (Asked(2**32 - 1, None, (), False), ROOT, "is not the number of a user"),
        "negative": (Asked(-1, None, (), False), ROOT, "is not the number of a user"),
    })  # fmt: skip
    def test_what_can_be_had(self, wish, own, words):
        found = users.problem(wish, own)
        assert words in found if words else found == ""

    @cases("wish, own, expected", {
        "all said": (Asked(5, 6, (7,), False), ROOT, User(5, 6, (7,))),
        "the user's own group": (Asked(5, None, (), False), ROOT, User(5, 105, ())),
        "another group beside": (Asked(None, None, (7,), False), ROOT, User(0, 0, (7,))),
        "who it is anyway": (Asked(0, None, (), False), ROOT, None),
        "an ordinary user stays": (Asked(1000, 1000, (27,), True), ORDINARY, None),
    })  # fmt: skip
    def test_whom_the_command_becomes(self, wish, own, expected):
        assert users.user(wish, own, lambda uid: uid + 100) == expected

    @pytest.fixture
    def rooted(self, machine):
        """A machine of root whose containers have mounts."""
        if os.geteuid() != 0 or machine.allowed().mounts != "root":
            pytest.skip("this machine lets this user make no mounts as root")
        machine.begin("root")
        machine.out.chmod(0o777)
        return machine

    def test_command_and_what_joins_it_are_the_user(self, rooted):
        script = (
            f"id -u > {rooted.out}/who; id -G >> {rooted.out}/who; touch here $TMPDIR/there; echo out > /dev/stdout"
        )
        hook = {"postStart": {"exec": {"command": ["sh", "-c", f"id -u > {rooted.out}/hook"]}}}
        main = container(f"{script}; sleep 600", runAsUser=1234, runAsGroup=4321)
        uid = rooted.submit(containers=[{**main, "lifecycle": hook}], securityContext={"supplementalGroups": [77]})
        rooted.until_phase("Running")
        rooted.until(lambda: "out" in rooted.printed(uid))
        assert (rooted.out / "who").read_text() == "1234\n4321 77\n"
        assert (rooted.out / "hook").read_text() == "1234\n"
        made = rooted.data / "node" / "pods" / uid / "_work" / "here"
        assert (made.stat().st_uid, made.stat().st_gid) == (1234, 4321)
        rooted.delete()
        rooted.until(lambda: rooted.pod() is None)

    def test_command_of_another_user_dies_with_its_shim(self, rooted):
        rooted.submit(containers=[container("sleep 600", runAsUser=1234)])
        rooted.until_phase("Running")
        os.kill(rooted.shims()[0], 9)
        rooted.until_phase("Failed")

    def test_user_cannot_become_root_again_nor_read_what_is_roots(self, rooted):
        program = "import os\ntry:\n    os.setuid(0)\nexcept PermissionError:\n    print(open('/etc/shadow').read())"
        rooted.submit(containers=[container(f'python3 -c "{program}" > {rooted.out}/stolen', runAsUser=1234)])
        rooted.until_phase("Failed")
        assert (rooted.out / "stolen").read_text() == ""

    def test_volumes_belong_to_the_pods_group(self, rooted):
        put(SECRETS, "s", data={"key": "aHVzaA=="})
        claim = rooted.claim()
        script = "touch $VOLUME_V/mine $VOLUME_C/mine; cat $VOLUME_S/key"
        rooted.submit(
            containers=[container(script, mount("v", "/v"), mount("c", "/c"), mount("s", "/s"), runAsUser=1234)],
            securityContext={"fsGroup": 55},
            volumes=[
                {"name": "v", "emptyDir": {}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
            ],
        )  # fmt: skip
        rooted.until_phase("Succeeded")
        made = rooted.files(claim) / "mine"
        assert (made.stat().st_uid, made.stat().st_gid) == (1234, 55)

    def test_containers_of_several_users_share_what_is_the_pods(self, rooted):
        first = container("touch here $TMPDIR/there $VOLUME_V/too", mount("v", "/v"), name="first", runAsUser=5)
        main = container("touch mine; ls here $TMPDIR/there $VOLUME_V/too", mount("v", "/v"), runAsUser=6)
        rooted.submit(initContainers=[first], containers=[main], volumes=[EMPTY])
        rooted.until_phase("Succeeded")

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
        file_trees.give(fd, 55)
        os.close(fd)
        groups = {path.name: path.stat().st_gid for path in (volume, volume / "deep", volume / "deep" / "file")}
        assert groups == {"volume": 55, "deep": 55, "file": 55}
        assert [outside.stat().st_gid, (outside / "file").stat().st_gid] == [0, 0]

    def test_user_that_cannot_be_had_is_told_with_the_remedy(self, node):
        root = {} if os.geteuid() == 0 else {"runAsUser": 0}
        node.submit("root", containers=[container("true", runAsNonRoot=True, **root)])
        node.submit(containers=[container("true", runAsUser=NOBODY - 1)])
        node.until_waits("CreateContainerConfigError", "root", name="root")
        node.until_waits("CreateContainerConfigError", f"runAsUser {NOBODY - 1} cannot be had")
        assert not list(Path(node.data).glob("node/pods/*/main/*/started.json"))

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
        found = [ranges.of(name) for name in ("a", "b", "a")]
        assert found == [0, 1, 0]
        assert [UserRanges(tmp_path / "users.json").of(name) for name in ("b", "c")] == [1, 2]
        ends = [
            (each.outside, each.outside + each.size) for n in (0, 1) for each in subordinates.subordinate(n, [70000, 5])
        ]
        assert sorted(ends) == sorted(set(ends))
        assert all(one[1] <= two[0] for one, two in zip(sorted(ends), sorted(ends)[1:], strict=False))

    @pytest.mark.parametrize(
        ("number", "where"), [(0, 0), (1000, 1000), (65535, 65535), (70000, 65536), (80000, 65537), (71000, None)]
    )
    def test_who_a_user_of_a_pod_is_outside(self, number, where):
        ids = subordinates.subordinate(3, [80000, 70000, 70000, 12])
        first = ids[0].outside
        assert subordinates.outside(ids, number) == (number if where is None else first + where)
