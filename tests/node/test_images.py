"""Containers of images, with podman: what is pulled, what runs, and what keeps it in its place."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

import pytest

from cluster.store import Create, store
from kube.resources import EVENTS, NODES, SECRETS
from node import devices, logs, usage
from node.agent import cdi, image_containers, images, server
from node.shim import tree
from node.shim.contained import COMMAND_MARK
from proof.harness import engine
from proof.harness.waiting import until
from tests.node.driving import UNTIL_ASKED
from tests.tables import cases

USERS = "somebody:$2y$05$abcdefghijklmnopqrstuulzd.YqjLDl8lvpSmVj3De/fioSBHnUa\n"  # their password is "hush"


@pytest.fixture
def begun(machine, podman, settings):
    settings.DATA = machine.data  # whose logs are read
    return machine.with_engine(podman).begin()


@pytest.fixture(scope="session")
def registries(podman):
    """A registry for everybody and one that asks who is there, with the same image in both."""
    folders = [Path(tempfile.mkdtemp(prefix="volcano-registry-")) for _ in range(2)]
    if not shutil.which("docker-registry"):
        pytest.skip("no registry: apt-get install docker-registry")
    both = [engine.Registry(folders[0]), engine.Registry(folders[1], USERS)]
    podman.trust(*(each.place for each in both))
    for each, more in zip(both, ((), ("--creds", "somebody:hush")), strict=True):
        podman.run("push", *more, engine.GREETER, f"{each.place}/greeter:1")
    yield [each.place for each in both]
    for each, folder in zip(both, folders, strict=True):
        each.close()
        shutil.rmtree(folder)


def run(node, image=engine.SHELL, name="p", **container):
    return node.submit(name, containers=[{"name": "main", "image": image, **container}])


def printed(uid, container="main"):
    return b"".join(line.data + b"\n" for line in logs.tail(uid, container).lines).decode()


def events(uid):
    return [(each.object["reason"], each.object["message"]) for each in store.find(EVENTS, owner=uid)]


def waits(node, reason, name="p"):
    """Wait until a container waits for a reason, and return what it says."""
    node.until(
        lambda: (
            node.state(name).get("waiting", {}).get("reason") == reason
            if node.status(name).get("containerStatuses")
            else False
        )
    )
    return node.state(name)["waiting"].get("message", "")


@pytest.fixture
def described(tmp_path):
    """A kind of devices that is declared, and described by a spec in the place where podman looks."""
    if os.getuid():
        pytest.skip("only root describes devices to podman")
    kind = f"volcano-ui.example/npu-{secrets.token_hex(4)}"
    (tmp_path / "driver").write_text("a driver\n")
    edits = {
        "deviceNodes": [{"path": "/dev/full"}],
        "env": ["NPU_MODE=shared"],
        "mounts": [{"hostPath": f"{tmp_path}/driver", "containerPath": "/npu/driver", "options": ["ro", "bind"]}],
        "hooks": [{"hookName": "createRuntime", "path": "/usr/bin/touch", "args": ["touch", f"{tmp_path}/hooked"]}],
    }
    spec = {"cdiVersion": "0.5.0", "kind": kind, "devices": [{"name": "0", "containerEdits": edits}]}
    file = cdi.FOLDERS[-1] / f"{kind.rpartition('/')[2]}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec))
    yield kind
    file.unlink()


def test_a_device_comes_with_all_that_its_vendor_describes(machine, podman, settings, described, tmp_path):
    settings.DATA = machine.data
    settings.DEVICES = devices.parse(f"{described}:NPU=/dev/full")
    machine.with_engine(podman).begin()
    uid = run(
        machine,
        command=["sh", "-c", 'echo "$NPU $NPU_MODE"; cat /npu/driver; [ -c /dev/full ] && echo there'],
        resources={"limits": {described: "1"}},
    )
    machine.until_phase("Succeeded")
    assert printed(uid) == "/dev/full shared\na driver\nthere\n"
    assert (tmp_path / "hooked").exists()


class TestPulls:
    def test_image_is_pulled_and_told_as_a_kubelet_tells_it(self, begun, registries, podman):
        image = f"{registries[0]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        uid = run(begun, image)
        status = begun.until_phase("Succeeded")["containerStatuses"][0]
        assert status["image"] == image
        assert status["imageID"].startswith(f"{registries[0]}/greeter@sha256:")
        told = events(uid)
        assert ("Pulling", f'Pulling image "{image}"') in told
        (pulled,) = [message for reason, message in told if reason == "Pulled"]
        assert pulled.startswith(f'Successfully pulled image "{image}" in ')
        assert "Image size: " in pulled
        assert printed(uid) == "hello all\n"

    def test_image_that_is_there_is_not_pulled(self, begun):
        uid = run(begun, command=["true"])
        begun.until_phase("Succeeded")
        assert events(uid) == [("Pulled", f'Container image "{engine.SHELL}" already present on machine')]

    def test_image_that_the_registry_does_not_have_is_waited_for(self, begun, registries):
        image = f"{registries[0]}/nosuch:1"
        uid = run(begun, image)
        assert "manifest unknown" in waits(begun, "ErrImagePull")
        message = waits(begun, "ImagePullBackOff")
        assert message.startswith(f'Back-off pulling image "{image}": ErrImagePull: failed to pull image')
        reasons = [reason for reason, _ in events(uid)]
        assert sorted(set(reasons)) == ["BackOff", "Failed", "Pulling"]
        assert ("Failed", "Error: ErrImagePull") in events(uid)
        assert begun.status()["phase"] == "Pending"
        begun.delete()
        begun.until(lambda: begun.pod() is None)

    @pytest.mark.parametrize(("password", "is_let_in"), [("hush", True), ("wrong", False), (None, False)])
    def test_registry_that_asks_who_is_there_is_told_by_a_secret(self, begun, registries, podman, password, is_let_in):
        image = f"{registries[1]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        secrets = []
        if password:
            auth = base64.b64encode(f"somebody:{password}".encode()).decode()
            config = base64.b64encode(json.dumps({"auths": {registries[1]: {"auth": auth}}}).encode()).decode()
            metadata = {"name": "pull", "namespace": "d"}
            kind = "kubernetes.io/dockerconfigjson"
            store.write(Create(SECRETS, {"metadata": metadata, "type": kind, "data": {images.AUTHS: config}}))
            secrets = [{"name": "pull"}]
        begun.submit(containers=[{"name": "main", "image": image}], imagePullSecrets=secrets)
        if is_let_in:
            begun.until_phase("Succeeded")
        else:
            said = waits(begun, "ErrImagePull")
            assert "authentication required" in said or "unauthorized" in said or "invalid username" in said
        assert not list((begun.data / "node" / "pulls").iterdir())

    def test_registry_that_cannot_be_reached_is_said(self, begun):
        run(begun, "127.0.0.1:1/a:1")
        assert "connection refused" in waits(begun, "ErrImagePull")

    def test_image_that_must_not_be_pulled_and_is_not_there(self, begun):
        run(begun, "localhost/nosuch:1", imagePullPolicy="Never")
        message = waits(begun, "ErrImageNeverPull")
        assert message == 'Container image "localhost/nosuch:1" is not present with pull policy of Never'

    def test_image_that_was_built_here_is_found_by_its_short_name(self, begun, podman):
        podman.make("localhost/mine:1", 'CMD ["true"]')
        run(begun, "mine:1", imagePullPolicy="Never")
        begun.until_phase("Succeeded")

    def test_image_of_another_registry_does_not_stand_in_for_a_short_name(self, begun, podman):
        podman.make("another.example/somebody/tool:1", 'CMD ["true"]')
        run(begun, "tool:1", imagePullPolicy="Never")
        waits(begun, "ErrImageNeverPull")

    def test_name_that_is_none_is_said(self, begun):
        run(begun, "No Name")
        assert "invalid reference format" in waits(begun, "InvalidImageName")

    def test_pods_that_wait_for_one_image_wait_for_one_pull(self, begun, registries, podman):
        image = f"{registries[0]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        uids = [run(begun, image, f"p-{number}") for number in range(3)]
        for number in range(3):
            begun.until_phase("Succeeded", f"p-{number}")
        assert [[reason for reason, _ in events(uid)] for uid in uids] == [["Pulling", "Pulled"]] * 3


class TestCommands:
    @cases("container, output", {
        "the image's own": ({}, "hello all\n"),
        "its entry point with other arguments": ({"args": ["you"]}, "hello you\n"),
        "a command without the image's arguments": ({"command": ["/bin/greet"]}, "hello \n"),
        "a command with arguments": (
            {"command": ["/bin/greet"], "args": ["$(WHO)", "--x"], "env": [{"name": "WHO", "value": "me"}]},
            "hello me --x\n",
        ),
        "a variable of two lines": ({"env": [{"name": "GREETING", "value": "two\nlines"}]}, "two\nlines all\n"),
        "the image's user and directory": ({"command": ["sh", "-c", "id -u; pwd"]}, "1234\n/tmp\n"),
        "the pod's user and directory": (
            {"command": ["sh", "-c", "id -u; id -g; pwd"], "workingDir": "/home",
                          "securityContext": {"runAsUser": 7, "runAsGroup": 8}},
            "7\n8\n/home\n",
        ),
        "no input": ({"command": ["sh", "-c", "cat", "tty", "-"], "stdin": False}, ""),
    })  # fmt: skip
    def test_runs_as_kubernetes_has_it(self, begun, container, output):
        uid = run(begun, engine.GREETER, **container)
        begun.until_phase("Succeeded")
        assert printed(uid) == output

    def test_exit_codes_that_engines_have_for_themselves_are_the_commands_own(self, begun):
        for code in (125, 126, 127):
            run(begun, name=f"p-{code}", command=["sh", "-c", f"exit {code}"])
        for code in (125, 126, 127):
            begun.until_phase("Failed", f"p-{code}")
            assert (
                begun.state(f"p-{code}")["terminated"] | {"reason": "Error"} == begun.state(f"p-{code}")["terminated"]
            )
            assert begun.state(f"p-{code}")["terminated"]["exitCode"] == code

    def test_volume_is_written_by_who_is_not_root(self, begun):
        begun.submit(
            containers=[{
                "name": "main", "image": engine.GREETER, "command": ["sh", "-c", "id > /v/f"],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }],
            volumes=[{"name": "v", "emptyDir": {}}],
        )  # fmt: skip
        begun.until_phase("Succeeded")


class TestLimits:
    def test_memory(self, begun):
        # Nearly all of it is the shell's own variable.
        script = "x=$(head -c 200000000 /dev/zero | tr '\\0' x)"
        run(begun, command=["sh", "-c", script], resources={"limits": {"memory": "48Mi"}})
        begun.until_phase("Failed")
        ended = begun.state()["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")

    def test_what_a_container_uses_is_measured_without_its_engine(self, begun):
        uid = run(begun, command=["sh", "-c", "x=$(head -c 30000000 /dev/zero | tr '\\0' x); while :; do :; done"])
        begun.until_phase("Running")
        begun.daemon.sampler.sample()
        time.sleep(1.2)  # the kernel counts hundredths: less says little
        begun.daemon.sampler.sample()
        figures = json.loads((begun.data / "node" / usage.NAME).read_text())["containers"]
        ((found, name, nanocores, memory, _),) = figures
        assert (found, name) == (uid, "main")
        assert nanocores > 10_000_000
        assert memory < 200 << 20


class TestWalls:
    LOOK = """
    for file in {data}/secret-key {data}/run/node-key {home}/.bashrc /proc/1/root/{data}/secret-key; do
      cat $file >/dev/null 2>&1 && echo read $file
    done
    mount -t tmpfs none /mnt 2>/dev/null && echo mounted
    grep -q 'NoNewPrivs:.1' /proc/self/status || echo may gain privileges
    ps | grep -q [v]olcano-shim && echo sees the shim
    [ -e /dev/kmsg ] && echo sees devices
    ls /proc/self/fd | grep -q '[4-9]' && echo has descriptors
    echo done
    """

    def test_nothing_of_the_cluster_is_in_reach(self, begun):
        (begun.data / "secret-key").write_text("hush")
        uid = run(begun, command=["sh", "-c", self.LOOK.format(data=begun.data, home=Path.home())])
        begun.until_phase("Succeeded")
        assert printed(uid) == "done\n"

    def test_hosts_file_that_the_pod_mounts_is_the_one_that_it_sees(self, begun):
        name = {"path": "hosts", "fieldRef": {"fieldPath": "metadata.name"}}
        uid = begun.submit(
            containers=[{
                "name": "main", "image": engine.SHELL, "command": ["cat", "/etc/hosts"],
                "volumeMounts": [{"name": "v", "mountPath": "/etc/hosts", "subPath": "hosts"}],
            }],
            volumes=[{"name": "v", "downwardAPI": {"items": [name]}}],
        )  # fmt: skip
        begun.until_phase("Succeeded")
        assert printed(uid) == "p\n"

    @pytest.mark.parametrize("context", [{}, {"runAsUser": 7}])
    def test_who_is_not_root_has_no_capabilities(self, begun, context):
        look = ["grep", "-E", "Cap(Inh|Prm|Eff|Amb)", "/proc/self/status"]
        uid = run(begun, engine.GREETER, command=look, securityContext=context)
        begun.until_phase("Succeeded")
        assert [int(line.split()[1], 16) for line in printed(uid).splitlines()] == [0, 0, 0, 0]

    @pytest.mark.parametrize("target", ["{data}", "/etc", "../../.."])
    def test_sub_path_that_a_pod_has_made_a_link_leads_nowhere(self, begun, target):
        target = target.format(data=begun.data)
        mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        begun.submit(
            initContainers=[{"name": "first", "image": engine.SHELL, "command": ["sh", "-c", f"ln -s {target} /v/x"], **mounts}],
            containers=[{
                "name": "main", "image": engine.SHELL, "command": ["ls", "/x"],
                "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "x"}],
            }],
            volumes=[{"name": "v", "emptyDir": {}}],
        )  # fmt: skip
        node_says = begun.until(lambda: "leads out of the volume" in json.dumps(begun.status()) and begun.status())
        assert node_says["phase"] == "Pending"

    def test_sub_path_is_mounted_from_what_was_opened(self, begun):
        uid = begun.submit(
            containers=[{
                "name": "main", "image": engine.SHELL, "command": ["sh", "-c", "echo here > /x/f; ls /v/deep/er"],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/x", "subPath": "deep/er"}],
            }],
            volumes=[{"name": "v", "emptyDir": {}}],
        )  # fmt: skip
        begun.until_phase("Succeeded")
        assert printed(uid) == "f\n"
        assert (begun.data / "node" / "pods" / uid / "_volumes" / "v" / "deep" / "er" / "f").read_text() == "here\n"


class TestCare:
    def test_containers_are_gone_when_they_have_ended(self, begun, podman):
        uid = run(begun, command=["true"])
        begun.until_phase("Succeeded")
        until(lambda: not any(uid in each for each in podman.names()))

    def test_what_was_left_while_no_agent_was_there_is_removed_by_the_next(self, begun, podman):
        uid = run(begun, command=["sleep", "1000"])
        begun.until_phase("Running")
        begun.crash()
        os.kill(begun.shims()[0], signal.SIGKILL)
        assert any(uid in name for name in podman.names())
        begun.again()
        begun.until_phase("Failed")
        assert begun.state()["terminated"]["reason"] == "ContainerStatusUnknown"
        until(lambda: not any(uid in each for each in podman.names()))

    def test_containers_of_other_state_directories_are_left_alone(self, begun, podman):
        podman.run("create", "--name", "another", "--network", "host", engine.SHELL, "true")
        begun.daemon.sweep._all(("podman",))
        assert "another" in podman.names()
        podman.run("rm", "another")

    def test_who_ends_the_engines_program_ends_the_container(self, begun, podman):
        uid = run(begun, command=["sleep", "1000"])
        begun.until_phase("Running")
        (shim,) = begun.shims()
        started = [pid for pid in tree.children(shim) if b"start" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(started[0], signal.SIGKILL)
        begun.until_phase("Failed")
        assert "watched over the container was ended" in begun.state()["terminated"]["message"]
        until(lambda: not any(uid in each for each in podman.names()))

    def test_pods_may_wish_for_processes(self, begun):
        uid = begun.submit(
            command=["sh", "-c", "echo $VOLCANO_HOSTS_FILE"], annotations={"ui.volcano.sh/runtime": "process"}
        )
        status = begun.until_phase("Succeeded")
        assert status["containerStatuses"][0]["containerID"].startswith("process://")
        assert printed(uid)

    def test_node_says_by_what_images_run(self, begun):
        found = store.get(NODES, "", "here").object
        assert found["metadata"]["annotations"]["ui.volcano.sh/engine"].startswith("podman ")
        assert found["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("podman://")

    def test_stop_in_order_is_the_commands_to_answer(self, begun):
        uid = run(begun, command=["sh", "-c", f"echo up; {UNTIL_ASKED}"])
        begun.until_phase("Running")
        until(lambda: printed(uid) == "up\n")
        begun.delete()
        begun.until(lambda: begun.pod() is None)
        assert json.loads((begun.directory(uid) / "status.json").read_text())["exitCode"] == 143


class TestCommandsOfClients:
    """What `kubectl exec` and `attach` do, through the shim's control socket."""

    def call(self, node, uid, streams, fds, **fields):
        request = {"uid": uid, "container": "main", "attempt": 0, "streams": streams, "tty": False, **fields}
        return node.during(server.call, node.data, request, fds)

    def execute(self, node, uid, *argv, **fields):
        """Run a command, and return the line to it and the end of a pipe with its output."""
        reader, writer = os.pipe()
        line = self.call(node, uid, ["stdout"], [writer], do="exec", argv=list(argv), **fields)
        os.close(writer)
        return line, reader

    def said(self, node, line, word):
        heard = b""

        def listen():
            nonlocal heard
            with contextlib.suppress(BlockingIOError):
                heard += line.recv(4096)
            return word in heard.decode()

        node.until(listen)
        return [json.loads(each) for each in heard.split(b"\n") if each]

    def test_exec_sees_the_container_and_answers_with_its_exit_code(self, begun):
        uid = run(begun, engine.GREETER, command=["sh", "-c", UNTIL_ASKED])
        begun.until_phase("Running")
        line, output = self.execute(begun, uid, "sh", "-c", "id -u; echo $GREETING; exit 7")
        assert self.said(begun, line, "exitCode")[-1] == {"exitCode": 7}
        assert os.read(output, 1000) == b"1234\nhello\n"
        os.close(output)
        line.close()

    def test_command_of_a_client_that_goes_is_ended_in_the_container(self, begun):
        uid = run(begun, command=["sh", "-c", UNTIL_ASKED])
        begun.until_phase("Running")
        line, output = self.execute(begun, uid, "sh", "-c", "echo up; sleep 1000")
        assert begun.during(os.read, output, 100) == b"up\n"
        os.close(output)
        wanted = {f"{COMMAND_MARK}={name(begun.agent.pods[uid].pod, 0)}/0".encode()}
        assert tree.with_variable(wanted)
        line.close()
        until(lambda: not tree.with_variable(wanted))
        assert "running" in begun.state()

    def test_hook_and_probe_are_commands_in_the_container(self, begun):
        probe = {"exec": {"command": ["sh", "-c", "[ -e /tmp/begun ]"]}, "periodSeconds": 1}
        hook = {"postStart": {"exec": {"command": ["touch", "/tmp/begun"]}}}
        run(begun, command=["sh", "-c", UNTIL_ASKED], lifecycle=hook, readinessProbe=probe)
        begun.until(lambda: begun.status().get("containerStatuses", [{}])[0].get("ready"))

    def test_input_and_terminal(self, begun):
        uid = run(begun, command=["sh", "-c", "tty; read word; echo got $word"], stdin=True, tty=True)
        begun.until_phase("Running")
        line = self.call(begun, uid, [], [], do="attach")
        _, fds, _, _ = begun.during(socket.recv_fds, _blocking(line), 4096, 1)
        os.write(fds[0], b"hello\n")
        begun.until_phase("Succeeded")
        os.close(fds[0])
        line.close()
        assert "got hello" in printed(uid)
        assert "/dev/" in printed(uid)


def _blocking(line):
    line.setblocking(True)
    return line


def name(pod, number):
    return image_containers.name(pod, pod.spec.containers[0], number)
