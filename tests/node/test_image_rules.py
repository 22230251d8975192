"""Images without an engine: names, what an engine is told, pulls and sweeps by a program that stands in for one."""

import contextlib
import json
import os
import threading

import msgspec
import pytest

from kube.kinds.core import Container, Pod
from kube.kinds.pod import PullPolicy
from node.containers import image_containers, images
from node.containers.engine_sweep import EngineSweep
from node.containers.engines import Engine
from node.containers.images import AUTHS, Images, ImageWaits
from node.paths import Layout
from node.pods.environment import ConfigError
from node.rules import image_names
from node.shim.contained import VARIABLES, Contained
from node.shim.isolation.capabilities import ALLOWED, NAMES
from node.shim.launch import Streams
from node.shim.order import Bind, Image, Order
from proof.harness.waiting import until
from tests.tables import cases

DIGEST = "sha256:" + "a" * 64


class TestNames:
    @pytest.mark.parametrize(("text", "whole", "built"), [
        ("busybox", "docker.io/library/busybox:latest", "localhost/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36", "localhost/busybox:1.36"),
        ("volcanosh/example:1", "docker.io/volcanosh/example:1", "localhost/volcanosh/example:1"),
        ("docker.io/mine", "docker.io/library/mine:latest", ""),
        ("quay.io/a/b/c:v1", "quay.io/a/b/c:v1", ""),
        ("localhost/mine", "localhost/mine:latest", ""),
        ("127.0.0.1:5000/a", "127.0.0.1:5000/a:latest", ""),
        ("registry:5000/a:b", "registry:5000/a:b", ""),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}", ""),
        (f"quay.io/a:v1@{DIGEST}", f"quay.io/a@{DIGEST}", ""),
    ])  # fmt: skip
    def test_name_is_what_a_kubelet_pulls_and_without_a_registry_may_have_been_built_here(self, text, whole, built):
        assert (image_names.parse(text).whole, image_names.built(text)) == (whole, built)

    def test_what_is_no_name_is_refused_with_the_form_and_pulls_that_fail_are_tried_later_each_time(self):
        words = "UPPER -a a: a@ a@sha256:12 a//b a/:b --help x/UPPER a:b:c ü"
        for text in ("", "a b", "a\n", *words.split()):
            with pytest.raises(image_names.InvalidImageName, match="invalid reference format; write registry/path:tag"):
                image_names.parse(text)
        assert [image_names.back_off_s(count) for count in (1, 2, 3, 5, 6, 7, 1000)] == [10, 20, 40, 160, 300, 300, 300]
        due = {policy: images._Pull("a", policy, {}, failures=3).due() for policy in PullPolicy}
        assert due == {"Always": 40, "IfNotPresent": 40, "Never": 10}

    @pytest.mark.parametrize(("image", "given", "policy"), [
        ("a", "", "Always"), ("a:latest", "", "Always"), (f"a:latest@{DIGEST}", "", "IfNotPresent"),
        ("a:1", "", "IfNotPresent"), (f"a@{DIGEST}", "", "IfNotPresent"),
        ("a", "Never", "Never"), ("a", "IfNotPresent", "IfNotPresent"), ("a:1", "Always", "Always"),
    ])  # fmt: skip
    def test_policy_follows_from_the_tag_unless_it_is_given(self, image, given, policy):
        assert image_names.policy(Container(image=image, image_pull_policy=given)) == policy


ENGINE = Engine("podman", "4.3.1", ("podman",))


def pod(container=None, annotations=None, name="p", uid="u", **spec):
    one = {"name": "main", "image": "i", **(container or {})}
    metadata = {"name": name, "namespace": "d", "uid": uid, "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [one], **spec}}, Pod)


def options(made, name=None, engine=ENGINE, argv=(), user=""):
    arguments = image_containers.options(made, made.spec.containers[0], [*argv], engine, user=user)
    return [arguments[position + 1] for position, each in enumerate(arguments) if each == name] if name else arguments


PRIVILEGED = pod({"securityContext": {"privileged": True, "allowPrivilegeEscalation": True}})
LIMITED = pod({"resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "64Mi"}}})
OF_POD = {"runAsUser": 1, "runAsGroup": 2, "fsGroup": 3, "supplementalGroups": [4]}
RUN_AS = pod({"securityContext": {"runAsUser": 5}}, securityContext=OF_POD)


def refused(words):
    """What is refused with words; "" for what is not refused."""
    return pytest.raises(ConfigError, match=words) if words else contextlib.nullcontext()


class TestContainers:
    @cases("container, argv, entrypoint, words", {
        "the image's own": ({}, [], [], []),
        "its entry point with other arguments": ({"args": ["x"]}, ["x"], [], ["x"]),
        "a command, no arguments of the image": ({"command": ["c", "d"]}, ["c", "d"], ["c"], ["d"]),
        "a command with arguments": ({"command": ["c"], "args": ["x"]}, ["c", "x"], ["c"], ["x"]),
    })  # fmt: skip
    def test_entry_point_and_arguments_are_combined_as_kubernetes_has_it(self, container, argv, entrypoint, words):
        made = pod(container)
        assert options(made, "--entrypoint", argv=argv) == entrypoint
        assert image_containers.image_arguments(made.spec.containers[0], argv) == words

    @cases("made, option, expected", {
        "no gaining of privileges": (PRIVILEGED, "--security-opt", ["no-new-privileges"]),
        "the capabilities of processes at most": (PRIVILEGED, "--cap-drop", ["ALL"]),
        "the machine's network": (PRIVILEGED, "--network", ["host"]),
        "a name": (pod(), "--hostname", ["p"]),
        "as much of it as the kernel takes": (pod(name="a" * 70), "--hostname", ["a" * 63]),
        "without a dash at its end": (pod(name="a" * 62 + "-" + "b" * 9), "--hostname", ["a" * 62]),
        "the default grace": (pod(), "--stop-timeout", ["30"]),
        "no grace": (pod(terminationGracePeriodSeconds=0), "--stop-timeout", ["0"]),
        "memory": (LIMITED, "--memory", [str(64 << 20)]),
        "and no more by swapping": (LIMITED, "--memory-swap", [str(64 << 20)]),
        "processors": (LIMITED, "--cpus", ["1.5"]),
        "their share": (LIMITED, "--cpu-shares", ["256"]),
        "the container's user first": (RUN_AS, "--user", ["5:2"]),
        "the pod's groups": (RUN_AS, "--group-add", ["4", "3"]),
    })  # fmt: skip
    def test_what_an_engine_is_told(self, made, option, expected):
        assert options(made, option) == expected

    def test_what_an_engine_is_never_told(self):
        assert not {"--privileged", "--pid", "--ipc", "--userns"} & set(options(PRIVILEGED))
        assert "--memory" not in options(LIMITED, engine=ENGINE._replace(limits=False))
        assert len(NAMES) == len(ALLOWED), "capabilities have names for all their numbers"

    @cases("context, user, capabilities", {
        "those of processes": ({}, "", set(NAMES)),
        "none": ({"capabilities": {"drop": ["ALL"]}}, "", set()),
        "one": ({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}, "", {"NET_BIND_SERVICE"}),
        "all but one": ({"capabilities": {"drop": ["CAP_KILL"]}}, "", set(NAMES) - {"KILL"}),
        "none beyond them": ({"capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN"]}}, "", set(NAMES)),
        "of the image's user": ({}, "nobody", set()),
        "of the image's root": ({}, "0:0", set(NAMES)),
        "of the pod's user": ({"runAsUser": 7}, "", set()),
        "of the pod's root": ({"runAsUser": 0}, "nobody", set(NAMES)),
        "one by name of the pod's user": ({"runAsUser": 7, "capabilities": {"add": ["KILL"]}}, "", {"KILL"}),
    })  # fmt: skip
    def test_who_is_not_root_has_no_capabilities_but_those_that_the_pod_names(self, context, user, capabilities):
        assert set(options(pod({"securityContext": context}), "--cap-add", user=user)) == capabilities

    @pytest.mark.parametrize(("user", "context", "is_refused"), [
        ("", {}, False),
        ("nobody", {}, False),
        ("", {"runAsNonRoot": True}, True),
        ("0:0", {"runAsNonRoot": True}, True),
        ("00", {"runAsNonRoot": True}, True),
        ("7:0", {"runAsNonRoot": True}, False),
        ("nobody", {"runAsNonRoot": True}, True),
        ("root", {"runAsNonRoot": True, "runAsUser": 7}, False),
        ("nobody", {"runAsNonRoot": True, "runAsUser": 0}, True),
    ])  # fmt: skip
    def test_root_is_refused_where_the_pod_says_so(self, user, context, is_refused):
        made = pod({"securityContext": context})
        with refused(r"give it (a|another) runAsUser" if is_refused else ""):
            image_containers.check_user(made, made.spec.containers[0], user)

    @cases("bind, staged, message", {
        "another option in a path": (Bind("/v", "/a,src=/etc"), True, "no comma"),
        "a quote": (Bind("/v", '/a"'), True, "no comma, quote"),
        "a subPath that a pod could exchange": (Bind("/v", "/a", below="x"), False, "a subPath"),
        "a hostPath": (Bind("/v", "/a", within=("/",)), False, "a hostPath"),
        "a subPath that is mounted before": (Bind("/v", "/a", below="x"), True, ""),
        "a whole volume": (Bind("/v", "/a"), False, ""),
    })  # fmt: skip
    def test_mounts_that_cannot_be_had_are_refused(self, bind, staged, message):
        with refused(message):
            image_containers.check_binds([bind], staged=staged)

    def test_pods_may_wish_for_processes(self):
        wishes = ({}, "", True), ({"image": ""}, "", False), ({}, "process", False), ({}, "image", True)
        for container, runtime, is_image in wishes:
            made = pod(container, {"ui.volcano.sh/runtime": runtime} if runtime else {})
            assert image_containers.wants_image(made, made.spec.containers[0]) is is_image


def program(folder, text):
    file = folder / "engine"
    file.write_text(text.replace("FOLDER", str(folder)))
    file.chmod(0o755)
    return str(file)


PULLS = """#!/bin/sh
case "$1 $2" in
  "image inspect") case "$3" in *here*) echo '[{"Id": "1234"}]';; *) exit 1;; esac;;
  *) echo "$@" >> FOLDER/pulled; exec cat FOLDER/gate;;
esac
"""


class Lookup:
    def secret(self, namespace, name):
        return {AUTHS: json.dumps({"auths": {"registry.example": {"auth": "aHVzaA=="}}}).encode()}


class Pulls:
    def __init__(self, folder):
        self.folder = folder
        self.program = program(folder, PULLS)
        os.mkfifo(folder / "gate")
        self.gate = os.open(folder / "gate", os.O_RDWR)
        self.images = self.again()

    def again(self):
        return Images(Engine("podman", "1", (self.program,)), Lookup(), lambda: None, self.folder / "pulls")

    def pulled(self):
        file = self.folder / "pulled"
        return [line.split()[-1] for line in file.read_text().splitlines()] if file.exists() else []

    def had(self, image, uid="u", **spec):
        made = pod({"image": f"registry.example/{image}"}, name=uid, uid=uid, **spec)
        self.images.take_changed()
        try:
            return self.images.image_for(made, made.spec.containers[0])
        except ImageWaits:
            return None

    def hang(self, count):
        for number in range(count):
            self.had(f"away:{number}", uid=f"u-{number}")
        until(lambda: len(self.pulled()) == 3)


@pytest.fixture
def pulls(tmp_path):
    found = Pulls(tmp_path)
    yield found
    found.images.stop()
    os.close(found.gate)


class TestPulls:
    def test_credentials_of_an_agent_that_was_killed_are_removed_by_the_next(self, pulls):
        pulls.had("away:1", imagePullSecrets=[{"name": "pull"}])
        until(pulls.pulled)
        (left,) = (pulls.folder / "pulls").rglob("config.json")
        assert left.stat().st_mode & 0o777 == 0o600
        pulls.again()
        assert not left.exists()

    def test_pull_that_hangs_gives_its_turn_back_when_its_pods_are_gone(self, pulls):
        pulls.hang(4)
        (last,) = {f"registry.example/away:{number}" for number in range(4)} - set(pulls.pulled())
        for number in range(4):
            if not last.endswith(str(number)):
                pulls.images.forget(f"u-{number}")
        until(lambda: last in pulls.pulled())

    def test_image_that_is_here_does_not_wait_for_pulls_that_never_end_of_which_none_begins_at_the_end(self, pulls):
        pulls.hang(5)
        until(lambda: pulls.had("here:1"))
        pulls.images.stop()
        over = set()
        until(lambda: over.update(pulls.images.take_changed()) or len(over) == 5)
        assert len(pulls.pulled()) == 3

    def test_image_that_the_pod_does_not_name_any_more_is_not_had(self, pulls):
        until(lambda: pulls.had("here:1"))
        assert not pulls.had("away:1")
        assert pulls.had("here:1")


MOST = 10


class TestContained:
    def test_commands_that_have_ended_are_forgotten_and_marks_are_never_the_same(self, tmp_path, monkeypatch):
        monkeypatch.setattr("node.shim.contained.ENDED_MARKS", MOST)  # each command is a fork of this whole process
        engine = program(tmp_path, '#!/bin/sh\necho "$2" >> FOLDER/said\n')
        image = Image((engine,), "podman", "sha256:1", "c")
        container = Contained(Order("/none", [], {}, "/", image=image), image)
        for _ in range(MOST * 2):
            os.waitpid(container.execute(["x"], Streams(), {}), 0)
        assert len(container._commands) <= MOST + 1
        assert len(set((tmp_path / "said").read_text().splitlines())) == MOST * 2


LABELS = json.dumps({"io.kubernetes.pod.uid": "u", "io.kubernetes.container.name": "main"})

# As docker: of a container that has gone meanwhile there is an empty line.
SWEPT = f"""#!/bin/sh
case "$1 $5" in
  "ps "*) cat FOLDER/gate; echo asked >> FOLDER/asked; printf 'went-0\\nleft-0\\n';;
  "container went-0") echo; exit 1;;
  "container left-0") echo '{LABELS}';;
  "rm "*) echo "$4" >> FOLDER/removed;;
esac
"""


class TestSweep:
    @pytest.fixture
    def engine(self, tmp_path):
        (tmp_path / "gate").touch()
        return program(tmp_path, SWEPT)

    @pytest.fixture
    def sweep(self, tmp_path):
        return EngineSweep(Layout(tmp_path), None)

    def test_container_that_goes_meanwhile_keeps_no_other_from_being_removed(self, tmp_path, engine, sweep):
        sweep._all([engine])
        assert (tmp_path / "removed").read_text() == "left-0\n"

    def test_variables_of_a_container_whose_shim_was_killed_before_it_was_created_are_removed(self, tmp_path, sweep):
        (tmp_path / VARIABLES).write_text("PASSWORD=hush\n")
        sweep.remove(tmp_path)
        assert not (tmp_path / VARIABLES).exists()

    def test_engine_that_hangs_is_asked_once(self, tmp_path, engine, sweep):
        (tmp_path / "gate").unlink()
        os.mkfifo(tmp_path / "gate")
        first = threading.Thread(target=sweep._all, args=([engine],))
        first.start()
        until(sweep._sweeping.locked)
        sweep._all([engine])
        (tmp_path / "gate").write_text("")
        first.join()
        assert (tmp_path / "asked").read_text() == "asked\n"
