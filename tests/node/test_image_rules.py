"""Images without an engine: names, what an engine is told, pulls and sweeps by a program that stands in for one."""

from __future__ import annotations

import json
import os
import threading

import msgspec
import pytest

from kube.kinds.core import Container, Pod
from kube.kinds.pod import PullPolicy
from node import image_names
from node.agent import image_containers, images
from node.agent.engine_sweep import EngineSweep
from node.agent.engines import Engine
from node.agent.environment import ConfigError
from node.agent.images import AUTHS, Images, ImageWaits
from node.paths import Layout
from node.shim.capabilities import KEPT, NAMES
from node.shim.contained import VARIABLES, Contained
from node.shim.launch import Streams
from node.shim.order import Bind, Image, Order
from proof.harness.waiting import until
from tests.tables import cases

DIGEST = "sha256:" + "a" * 64


class TestNames:
    @pytest.mark.parametrize(("text", "whole"), [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("volcanosh/example", "docker.io/volcanosh/example:latest"),
        ("quay.io/a/b/c:v1", "quay.io/a/b/c:v1"),
        ("localhost/mine", "localhost/mine:latest"),
        ("127.0.0.1:5000/a", "127.0.0.1:5000/a:latest"),
        ("registry:5000/a:b", "registry:5000/a:b"),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"quay.io/a:v1@{DIGEST}", f"quay.io/a@{DIGEST}"),
    ])  # fmt: skip
    def test_name_is_what_a_kubelet_pulls(self, text, whole):
        assert image_names.parse(text).whole == whole

    @pytest.mark.parametrize(("text", "built"), [
        ("mine", "localhost/mine:latest"),
        ("mine:1", "localhost/mine:1"),
        ("team/mine:1", "localhost/team/mine:1"),
        ("docker.io/mine", ""),
        ("quay.io/team/mine:1", ""),
        ("localhost/mine", ""),
        (f"mine@{DIGEST}", ""),
    ])  # fmt: skip
    def test_what_names_no_registry_may_have_been_built_here(self, text, built):
        assert image_names.built(text) == built

    @pytest.mark.parametrize("text", [
        "", "UPPER", "a b", "-a", "a:", "a@", "a@sha256:12", "a//b", "a/:b", "--help", "x/UPPER", "a:b:c", "a\n", "ü",
    ])  # fmt: skip
    def test_what_is_no_name_is_refused_with_the_form(self, text):
        with pytest.raises(image_names.InvalidImageName, match=r"invalid reference format; write registry/path:tag"):
            image_names.parse(text)

    @pytest.mark.parametrize(("image", "given", "policy"), [
        ("a", "", "Always"),
        ("a:latest", "", "Always"),
        ("a:1", "", "IfNotPresent"),
        (f"a@{DIGEST}", "", "IfNotPresent"),
        (f"a:latest@{DIGEST}", "", "IfNotPresent"),
        ("a", "Never", "Never"),
        ("a", "IfNotPresent", "IfNotPresent"),
        ("a:1", "Always", "Always"),
    ])  # fmt: skip
    def test_policy_follows_from_the_tag_unless_it_is_given(self, image, given, policy):
        assert image_names.policy(Container(image=image, image_pull_policy=given)) == policy

    def test_pulls_that_fail_are_tried_later_each_time(self):
        assert [image_names.back_off_s(count) for count in (1, 2, 3, 5, 6, 7, 1000)] == [10, 20, 40, 160, 300, 300, 300]
        due = {policy: images._Pull("a", policy, {}, failures=3).due() for policy in PullPolicy}
        assert due == {"Always": 40, "IfNotPresent": 40, "Never": 10}


ENGINE = Engine("podman", "4.3.1", ("podman",))


def pod(container=None, annotations=None, **spec):
    one = {"name": "main", "image": "i", **(container or {})}
    metadata = {"name": "p", "namespace": "d", "uid": "u", "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [one], **spec}}, Pod)


def options(made, argv=(), engine=ENGINE):
    return image_containers.options(made, made.spec.containers[0], list(argv), engine)


def values(said, name):
    return [said[place + 1] for place, each in enumerate(said) if each == name]


class TestContainers:
    @cases("container, argv, entrypoint, words", {
        "the image's own": ({}, [], [], []),
        "its entry point with other arguments": ({"args": ["x"]}, ["x"], [], ["x"]),
        "a command, no arguments of the image": ({"command": ["c", "d"]}, ["c", "d"], ["c"], ["d"]),
        "a command with arguments": ({"command": ["c"], "args": ["x"]}, ["c", "x"], ["c"], ["x"]),
    })  # fmt: skip
    def test_entry_point_command_and_arguments_are_combined_as_kubernetes_has_it(
        self, container, argv, entrypoint, words
    ):
        made = pod(container)
        assert values(options(made, argv), "--entrypoint") == entrypoint
        assert image_containers.words(made.spec.containers[0], argv) == words

    def test_walls_are_always_there(self):
        said = options(pod({"securityContext": {"privileged": True, "allowPrivilegeEscalation": True}}))
        assert values(said, "--security-opt") == ["no-new-privileges"]
        assert values(said, "--cap-drop") == ["ALL"]
        assert values(said, "--network") == ["host"]
        assert not {"--privileged", "--pid", "--ipc", "--userns"} & set(said)

    @pytest.mark.parametrize(("asked", "kept"), [
        ({}, set(NAMES)),
        ({"drop": ["ALL"]}, set()),
        ({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"NET_BIND_SERVICE"}),
        ({"drop": ["CAP_KILL"]}, set(NAMES) - {"KILL"}),
        ({"add": ["SYS_ADMIN", "NET_ADMIN"]}, set(NAMES)),
    ])  # fmt: skip
    def test_capabilities_are_at_most_those_of_processes(self, asked, kept):
        assert set(values(options(pod({"securityContext": {"capabilities": asked}})), "--cap-add")) == kept

    @cases("container, user, kept", {
        "the image's user": ({}, "nobody", set()),
        "the image's root": ({}, "0:0", set(NAMES)),
        "the pod's user": ({"runAsUser": 7}, "", set()),
        "the pod's root": ({"runAsUser": 0}, "nobody", set(NAMES)),
        "one by name": ({"runAsUser": 7, "capabilities": {"add": ["KILL"]}}, "", {"KILL"}),
    })  # fmt: skip
    def test_who_is_not_root_has_no_capabilities_but_those_that_the_pod_names(self, container, user, kept):
        made = pod({"securityContext": container})
        said = image_containers.options(made, made.spec.containers[0], [], ENGINE, user=user)
        assert set(values(said, "--cap-add")) == kept

    def test_capabilities_have_names_for_all_their_numbers(self):
        assert len(NAMES) == len(KEPT)

    @pytest.mark.parametrize(
        ("name", "shown"), [("p", "p"), ("a" * 70, "a" * 63), ("a" * 62 + "-" + "b" * 9, "a" * 62)]
    )
    def test_host_name_is_as_much_of_the_pods_name_as_the_kernel_takes(self, name, shown):
        made = pod()
        named = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, name=name))
        assert values(options(named), "--hostname") == [shown]

    @pytest.mark.parametrize(("given", "seconds"), [({}, "30"), ({"terminationGracePeriodSeconds": 0}, "0")])
    def test_no_grace_is_not_the_default_one(self, given, seconds):
        assert values(options(pod(**given)), "--stop-timeout") == [seconds]

    def test_limits_are_the_engines(self):
        made = pod({"resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "64Mi"}}})
        said = options(made)
        assert values(said, "--memory") == values(said, "--memory-swap") == [str(64 << 20)]
        assert (values(said, "--cpus"), values(said, "--cpu-shares")) == (["1.5"], ["256"])
        assert "--memory" not in options(made, engine=ENGINE._replace(limits=False))

    def test_who_runs_it_is_what_the_container_says_before_the_pod(self):
        pods = {"runAsUser": 1, "runAsGroup": 2, "fsGroup": 3, "supplementalGroups": [4]}
        said = options(pod({"securityContext": {"runAsUser": 5}}, securityContext=pods))
        assert (values(said, "--user"), values(said, "--group-add")) == (["5:2"], ["4", "3"])

    @pytest.mark.parametrize(("user", "context", "is_refused"), [
        ("", {}, False),
        ("", {"runAsNonRoot": True}, True),
        ("0:0", {"runAsNonRoot": True}, True),
        ("00", {"runAsNonRoot": True}, True),
        ("7:0", {"runAsNonRoot": True}, False),
        ("nobody", {"runAsNonRoot": True}, True),
        ("nobody", {}, False),
        ("root", {"runAsNonRoot": True, "runAsUser": 7}, False),
        ("nobody", {"runAsNonRoot": True, "runAsUser": 0}, True),
    ])  # fmt: skip
    def test_root_is_refused_where_the_pod_says_so(self, user, context, is_refused):
        made = pod({"securityContext": context})
        if not is_refused:
            image_containers.check_user(made, made.spec.containers[0], user)
            return
        with pytest.raises(ConfigError, match=r"give it (a|another) runAsUser"):
            image_containers.check_user(made, made.spec.containers[0], user)

    @cases("bind, staged, said", {
        "another option in a path": (Bind("/v", "/a,src=/etc"), True, "no comma"),
        "a quote": (Bind("/v", '/a"'), True, "no comma, quote"),
        "a subPath that a pod could exchange": (Bind("/v", "/a", below="x"), False, "a subPath"),
        "a hostPath": (Bind("/v", "/a", within=("/",)), False, "a hostPath"),
        "a subPath that is mounted before": (Bind("/v", "/a", below="x"), True, ""),
        "a whole volume": (Bind("/v", "/a"), False, ""),
    })  # fmt: skip
    def test_mounts_that_cannot_be_had_are_refused(self, bind, staged, said):
        if not said:
            image_containers.check_binds([bind], staged=staged)
            return
        with pytest.raises(ConfigError, match=said):
            image_containers.check_binds([bind], staged=staged)

    @pytest.mark.parametrize(("container", "annotations", "wants"), [
        ({}, {}, True),
        ({"image": ""}, {}, False),
        ({}, {"ui.volcano.sh/runtime": "process"}, False),
        ({}, {"ui.volcano.sh/runtime": "image"}, True),
    ])  # fmt: skip
    def test_pods_may_wish_for_processes(self, container, annotations, wants):
        made = pod(container, annotations)
        assert image_containers.wants_image(made, made.spec.containers[0]) is wants


PULLS = """#!/bin/sh
case "$1 $2" in
  "image inspect") case "$3" in *here*) echo '[{"Id": "1234"}]';; *) exit 1;; esac;;
  *) echo "$@" >> FOLDER/pulled; exec cat FOLDER/gate;;
esac
"""


class Lookup:
    """A namespace with one Secret."""

    def secret(self, namespace, name):
        return {AUTHS: json.dumps({"auths": {"registry.example": {"auth": "aHVzaA=="}}}).encode()}


class Pulls:
    """Images, and the program that pulls them."""

    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "engine"
        self.program.write_text(PULLS.replace("FOLDER", str(folder)))
        self.program.chmod(0o755)
        os.mkfifo(folder / "gate")
        self.gate = os.open(folder / "gate", os.O_RDWR)
        self.images = self.again()

    def again(self):
        engine = Engine("podman", "1", (str(self.program),))
        return Images(engine, Lookup(), lambda: None, self.folder / "pulls")

    def pulled(self):
        """Return the names that are or were pulled."""
        file = self.folder / "pulled"
        return [line.split()[-1] for line in file.read_text().splitlines()] if file.exists() else []

    def had(self, pod):
        """Return the image of a pod's container, None while it has none."""
        self.images.heard()
        try:
            return self.images.have(pod, pod.spec.containers[0])
        except ImageWaits:
            return None


@pytest.fixture
def pulls(tmp_path):
    found = Pulls(tmp_path)
    yield found
    found.images.stop()
    os.close(found.gate)


def pulling(image, uid="u", **spec):
    metadata = {"name": uid, "namespace": "d", "uid": uid}
    containers = [{"name": "main", "image": image}]
    return msgspec.convert({"metadata": metadata, "spec": {"containers": containers, **spec}}, Pod)


class TestPulls:
    def test_credentials_of_an_agent_that_was_killed_are_removed_by_the_next(self, pulls):
        pulls.had(pulling("registry.example/away:1", imagePullSecrets=[{"name": "pull"}]))
        until(pulls.pulled)
        (left,) = (pulls.folder / "pulls").rglob("config.json")
        assert left.stat().st_mode & 0o777 == 0o600
        pulls.again()
        assert not left.exists()

    def test_pull_that_hangs_gives_its_turn_back_when_its_pods_are_gone(self, pulls):
        away = [pulling(f"registry.example/away:{number}", uid=f"u-{number}") for number in range(4)]
        for each in away:
            pulls.had(each)
        until(lambda: len(pulls.pulled()) == 3)
        (last,) = {f"registry.example/away:{number}" for number in range(4)} - set(pulls.pulled())
        for each in away:
            if each.spec.containers[0].image != last:
                pulls.images.forget(each.metadata.uid)
        until(lambda: last in pulls.pulled())

    def test_image_that_is_here_does_not_wait_for_pulls_that_never_end(self, pulls):
        for number in range(5):
            pulls.had(pulling(f"registry.example/away:{number}", uid=f"u-{number}"))
        until(lambda: len(pulls.pulled()) == 3)
        here = pulling("registry.example/here:1")
        until(lambda: pulls.had(here))

    def test_no_pull_begins_when_the_agent_ends(self, pulls):
        for number in range(5):
            pulls.had(pulling(f"registry.example/away:{number}", uid=f"u-{number}"))
        until(lambda: len(pulls.pulled()) == 3)
        pulls.images.stop()
        over = set()
        until(lambda: over.update(pulls.images.heard()) or len(over) == 5)
        assert len(pulls.pulled()) == 3

    def test_image_that_the_pod_does_not_name_any_more_is_not_had(self, pulls):
        pulls.had(pulling("registry.example/here:1"))
        until(lambda: pulls.had(pulling("registry.example/here:1")))
        assert not pulls.had(pulling("registry.example/away:1"))
        assert pulls.had(pulling("registry.example/here:1"))


MOST = 10


def contained(*engine):
    image = Image(engine, "podman", "sha256:1", "c")
    return Contained(Order("/none", [], {}, "/", image=image), image)


class TestContained:
    @pytest.fixture(autouse=True)
    def _few_are_kept(self, monkeypatch):
        # Each command is a fork of all that this process has.
        monkeypatch.setattr("node.shim.contained.ENDED_KEPT", MOST)

    def test_commands_that_have_ended_are_forgotten_but_for_the_last(self):
        container = contained("/bin/true")
        for _ in range(MOST * 2):
            os.waitpid(container.execute(["x"], Streams(), {}), 0)
        assert len(container._commands) <= MOST + 1

    def test_marks_of_commands_are_never_the_same(self, tmp_path):
        said = tmp_path / "said"
        program = tmp_path / "engine"
        program.write_text(f'#!/bin/sh\necho "$2" >> {said}\n')
        program.chmod(0o755)
        container = contained(str(program))
        for _ in range(MOST * 2):
            os.waitpid(container.execute(["x"], Streams(), {}), 0)
        assert len(set(said.read_text().splitlines())) == MOST * 2


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
        program = tmp_path / "engine"
        program.write_text(SWEPT.replace("FOLDER", str(tmp_path)))
        program.chmod(0o755)
        (tmp_path / "gate").touch()
        return program

    @pytest.fixture
    def sweep(self, tmp_path):
        return EngineSweep(Layout(tmp_path), None)

    def test_container_that_goes_meanwhile_keeps_no_other_from_being_removed(self, tmp_path, engine, sweep):
        sweep._all([str(engine)])
        assert (tmp_path / "removed").read_text() == "left-0\n"

    def test_variables_of_a_container_whose_shim_was_killed_before_it_was_created_are_removed(self, tmp_path, sweep):
        (tmp_path / VARIABLES).write_text("PASSWORD=hush\n")
        sweep.remove(tmp_path)
        assert not (tmp_path / VARIABLES).exists()

    def test_engine_that_hangs_is_asked_once(self, tmp_path, engine, sweep):
        (tmp_path / "gate").unlink()
        os.mkfifo(tmp_path / "gate")
        first = threading.Thread(target=sweep._all, args=([str(engine)],))
        first.start()
        until(sweep._sweeping.locked)
        sweep._all([str(engine)])
        (tmp_path / "gate").write_text("")
        first.join()
        assert (tmp_path / "asked").read_text() == "asked\n"
