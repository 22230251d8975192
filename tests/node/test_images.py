"""Containers of images, with podman: what is pulled, what runs, and what keeps it in its place."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

import pytest

from cluster.store import store
from kube.resources import NODES, SECRETS
from node import devices, usage
from node.agent import cdi, image_containers, images, server
from node.shim import tree
from node.shim.contained import COMMAND_MARK
from proof.harness import engine
from proof.harness.waiting import until
from tests.node.driving import EMPTY, UNTIL_ASKED, mount, put, told
from tests.tables import cases

USERS = "somebody:$2y$05$abcdefghijklmnopqrstuulzd.YqjLDl8lvpSmVj3De/fioSBHnUa\n"  # their password is "hush"


@pytest.fixture
def begun(machine, podman):
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


def run(node, image=engine.SHELL, name="p", *, mounts=(), volumes=(), first=None, **main):
    containers = [{"name": "main", "image": image, "volumeMounts": [*mounts], **main}]
    inits = [{"name": "first", "image": image, "volumeMounts": [*mounts], **first}] if first else []
    return node.submit(name, containers=containers, initContainers=inits, volumes=[*volumes])


def sh(script):
    return ["sh", "-c", script]


def waits(node, reason, name="p"):
    """Wait until a container waits for a reason, and return what it says."""
    return node.until(lambda: [
        each["state"]["waiting"].get("message", "") for each in node.status(name).get("containerStatuses", ())
        if each["state"].get("waiting", {}).get("reason") == reason
    ])[0]  # fmt: skip


def gone(podman, uid):
    until(lambda: not any(uid in each for each in podman.names()))


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
    settings.DEVICES = devices.parse(f"{described}:NPU=/dev/full")
    node = machine.with_engine(podman).begin()
    script = 'echo "$NPU $NPU_MODE"; cat /npu/driver; [ -c /dev/full ] && echo there'
    uid = run(node, command=sh(script), resources={"limits": {described: "1"}})
    node.until_phase("Succeeded")
    assert node.printed(uid) == "/dev/full shared\na driver\nthere\n"
    assert (tmp_path / "hooked").exists()


class TestPulls:
    def test_image_is_pulled_and_told_as_a_kubelet_tells_it(self, begun, registries, podman):
        image = f"{registries[0]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        uid = run(begun, image)
        status = begun.until_phase("Succeeded")["containerStatuses"][0]
        assert status["image"] == image
        assert status["imageID"].startswith(f"{registries[0]}/greeter@sha256:")
        (_, pulling), (_, pulled) = told(uid)
        assert pulling == f'Pulling image "{image}"'
        assert re.match(f'Successfully pulled image "{image}" in .*Image size: ', pulled)
        assert begun.printed(uid) == "hello all\n"

    def test_image_that_is_there_is_not_pulled(self, begun):
        uid = run(begun, command=["true"])
        begun.until_phase("Succeeded")
        assert told(uid) == [("Pulled", f'Container image "{engine.SHELL}" already present on machine')]

    def test_image_that_the_registry_does_not_have_is_waited_for(self, begun, registries):
        image = f"{registries[0]}/nosuch:1"
        uid = run(begun, image)
        assert "manifest unknown" in waits(begun, "ErrImagePull")
        message = waits(begun, "ImagePullBackOff")
        assert message.startswith(f'Back-off pulling image "{image}": ErrImagePull: failed to pull image')
        assert {reason for reason, _ in told(uid)} == {"BackOff", "Failed", "Pulling"}
        assert ("Failed", "Error: ErrImagePull") in told(uid)
        assert begun.status()["phase"] == "Pending"
        begun.delete()
        begun.until(lambda: begun.pod() is None)

    @pytest.mark.parametrize(("password", "is_let_in"), [("hush", True), ("wrong", False), (None, False)])
    def test_registry_that_asks_who_is_there_is_told_by_a_secret(self, begun, registries, podman, password, is_let_in):
        image = f"{registries[1]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        if password:
            auth = base64.b64encode(f"somebody:{password}".encode()).decode()
            config = base64.b64encode(json.dumps({"auths": {registries[1]: {"auth": auth}}}).encode()).decode()
            put(SECRETS, "pull", type="kubernetes.io/dockerconfigjson", data={images.AUTHS: config})
        main = {"name": "main", "image": image}
        begun.submit(containers=[main], imagePullSecrets=[{"name": "pull"}] if password else [])
        if is_let_in:
            begun.until_phase("Succeeded")
        else:
            assert re.search("authentication required|unauthorized|invalid username", waits(begun, "ErrImagePull"))
        assert not list((begun.data / "node" / "pulls").iterdir())

    @cases("image, built, policy, reason, message", {
        "a registry that cannot be reached": ("127.0.0.1:1/a:1", "", None, "ErrImagePull", "connection refused"),
        "not there, and not to be pulled": (
            "localhost/nosuch:1", "", "Never", "ErrImageNeverPull",
            'Container image "localhost/nosuch:1" is not present with pull policy of Never',
        ),
        "that of another registry does not stand in": (
            "tool:1", "another.example/x/tool:1", "Never", "ErrImageNeverPull", "",
        ),
        "no name": ("No Name", "", None, "InvalidImageName", "invalid reference format"),
    })  # fmt: skip
    def test_image_that_cannot_be_had_is_said(self, begun, podman, image, built, policy, reason, message):
        if built:
            podman.make(built, 'CMD ["true"]')
        run(begun, image, **({"imagePullPolicy": policy} if policy else {}))
        assert message in waits(begun, reason)

    def test_image_that_was_built_here_is_found_by_its_short_name(self, begun, podman):
        podman.make("localhost/mine:1", 'CMD ["true"]')
        run(begun, "mine:1", imagePullPolicy="Never")
        begun.until_phase("Succeeded")

    def test_pods_that_wait_for_one_image_wait_for_one_pull(self, begun, registries, podman):
        image = f"{registries[0]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        uids = [run(begun, image, f"p-{number}") for number in range(3)]
        for number in range(3):
            begun.until_phase("Succeeded", f"p-{number}")
        assert [[reason for reason, _ in told(uid)] for uid in uids] == [["Pulling", "Pulled"]] * 3


SEVEN = {"runAsUser": 7, "runAsGroup": 8}


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
        "the image's user and directory": ({"command": sh("id -u; pwd")}, "1234\n/tmp\n"),
        "the pod's user and directory": (
            {"command": sh("id -u; id -g; pwd"), "workingDir": "/home", "securityContext": SEVEN},
            "7\n8\n/home\n",
        ),
        "no input": ({"command": ["sh", "-c", "cat", "tty", "-"], "stdin": False}, ""),
        "its user writes to volumes": (
            {"command": sh("id -u > /v/f && cat /v/f"), "volumeMounts": [mount("v", "/v")]}, "1234\n",
        ),
    })  # fmt: skip
    def test_runs_as_kubernetes_has_it(self, begun, container, output):
        uid = run(begun, engine.GREETER, volumes=[EMPTY], **container)
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == output

    def test_exit_codes_that_engines_have_for_themselves_are_the_commands_own(self, begun):
        for code in (125, 126, 127):
            run(begun, name=f"p-{code}", command=sh(f"exit {code}"))
        for code in (125, 126, 127):
            ended = begun.until_end(f"p-{code}")
            assert (ended["exitCode"], ended["reason"]) == (code, "Error")


class TestLimits:
    def test_memory(self, begun):
        # Nearly all of it is the shell's own variable.
        script = "x=$(head -c 200000000 /dev/zero | tr '\\0' x)"
        run(begun, command=sh(script), resources={"limits": {"memory": "48Mi"}})
        ended = begun.until_end()
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")

    def test_what_a_container_uses_is_measured_without_its_engine(self, begun):
        uid = run(begun, command=sh("x=$(head -c 30000000 /dev/zero | tr '\\0' x); while :; do :; done"))
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
        uid = run(begun, command=sh(self.LOOK.format(data=begun.data, home=Path.home())))
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "done\n"

    def test_hosts_file_that_the_pod_mounts_is_the_one_that_it_sees(self, begun):
        name = {"path": "hosts", "fieldRef": {"fieldPath": "metadata.name"}}
        volume = {"name": "v", "downwardAPI": {"items": [name]}}
        hosts = mount("v", "/etc/hosts", subPath="hosts")
        uid = run(begun, command=["cat", "/etc/hosts"], mounts=[hosts], volumes=[volume])
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "p"

    @pytest.mark.parametrize("context", [{}, {"runAsUser": 7}])
    def test_who_is_not_root_has_no_capabilities(self, begun, context):
        look = ["grep", "-E", "Cap(Inh|Prm|Eff|Amb)", "/proc/self/status"]
        uid = run(begun, engine.GREETER, command=look, securityContext=context)
        begun.until_phase("Succeeded")
        assert [int(line.split()[1], 16) for line in begun.printed(uid).splitlines()] == [0, 0, 0, 0]

    @pytest.mark.parametrize("target", ["{data}", "/etc", "../../.."])
    def test_sub_path_that_a_pod_has_made_a_link_leads_nowhere(self, begun, target):
        first = {"command": sh(f"ln -s {target.format(data=begun.data)} /v/x"), "volumeMounts": [mount("v", "/v")]}
        run(begun, command=["ls", "/x"], mounts=[mount("v", "/x", subPath="x")], volumes=[EMPTY], first=first)
        assert begun.until_waits("leads out of the volume")["phase"] == "Pending"

    def test_sub_path_is_mounted_from_what_was_opened(self, begun):
        mounts = [mount("v", "/v"), mount("v", "/x", subPath="deep/er")]
        uid = run(begun, command=sh("echo here > /x/f; ls /v/deep/er"), mounts=mounts, volumes=[EMPTY])
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "f\n"
        assert (begun.data / "node" / "pods" / uid / "_volumes" / "v" / "deep" / "er" / "f").read_text() == "here\n"


class TestCare:
    def test_what_was_left_while_no_agent_was_there_is_removed_by_the_next(self, begun, podman):
        ended = run(begun, name="ended", command=["true"])
        begun.until_phase("Succeeded", "ended")
        gone(podman, ended)
        uid = run(begun, command=["sleep", "1000"])
        begun.until_phase("Running")
        begun.crash()
        os.kill(begun.shims()[0], signal.SIGKILL)
        assert any(uid in name for name in podman.names())
        begun.again()
        assert begun.until_end()["reason"] == "ContainerStatusUnknown"
        gone(podman, uid)

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
        assert "watched over the container was ended" in begun.until_end()["message"]
        gone(podman, uid)

    def test_pods_may_wish_for_processes_and_the_node_says_by_what_images_run(self, begun):
        begun.shell("[ -n $VOLCANO_HOSTS_FILE ]", annotations={"ui.volcano.sh/runtime": "process"})
        status = begun.until_phase("Succeeded")
        assert status["containerStatuses"][0]["containerID"].startswith("process://")
        found = store.get(NODES, "", "here").object
        assert found["metadata"]["annotations"]["ui.volcano.sh/engine"].startswith("podman ")
        assert found["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("podman://")

    def test_stop_in_order_is_the_commands_to_answer(self, begun):
        uid = run(begun, command=sh(f"echo up; {UNTIL_ASKED}"))
        begun.until_phase("Running")
        until(lambda: begun.printed(uid) == "up\n")
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
        uid = run(begun, engine.GREETER, command=sh(UNTIL_ASKED))
        begun.until_phase("Running")
        line, output = self.execute(begun, uid, "sh", "-c", "id -u; echo $GREETING; exit 7")
        assert self.said(begun, line, "exitCode")[-1] == {"exitCode": 7}
        assert os.read(output, 1000) == b"1234\nhello\n"
        os.close(output)
        line.close()

    def test_command_of_a_client_that_goes_is_ended_in_the_container(self, begun):
        uid = run(begun, command=sh(UNTIL_ASKED))
        begun.until_phase("Running")
        line, output = self.execute(begun, uid, "sh", "-c", "echo up; sleep 1000")
        assert begun.during(os.read, output, 100) == b"up\n"
        os.close(output)
        pod = begun.agent.pods[uid].pod
        wanted = {f"{COMMAND_MARK}={image_containers.name(pod, pod.spec.containers[0], 0)}/0".encode()}
        assert tree.with_variable(wanted)
        line.close()
        until(lambda: not tree.with_variable(wanted))
        assert "running" in begun.state()

    def test_hook_and_probe_are_commands_in_the_container(self, begun):
        probe = {"exec": {"command": ["sh", "-c", "[ -e /tmp/begun ]"]}, "periodSeconds": 1}
        hook = {"postStart": {"exec": {"command": ["touch", "/tmp/begun"]}}}
        run(begun, command=sh(UNTIL_ASKED), lifecycle=hook, readinessProbe=probe)
        begun.until(lambda: begun.status().get("containerStatuses", [{}])[0].get("ready"))

    def test_input_and_terminal(self, begun):
        uid = run(begun, command=sh("tty; read word; echo got $word"), stdin=True, tty=True)
        begun.until_phase("Running")
        line = self.call(begun, uid, [], [], do="attach")
        line.setblocking(True)
        _, fds, _, _ = begun.during(socket.recv_fds, line, 4096, 1)
        os.write(fds[0], b"hello\n")
        begun.until_phase("Succeeded")
        os.close(fds[0])
        line.close()
        assert "got hello" in begun.printed(uid)
        assert "/dev/" in begun.printed(uid)
