"""Containers of images, with podman, and with docker what is not podman's own: what is pulled, and what runs."""

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest

from cluster.store import store
from kube.resources import NODES, SECRETS
from node import usage
from node.agent import server
from node.containers import cdi, image_containers, images
from node.rules import devices
from node.shim import linux, tree
from node.shim.contained import COMMAND_MARK
from proof.harness import engine
from proof.harness.waiting import until
from tests.node.driving import EMPTY, UNTIL_TERM, in_ways, mount, put, short_folder

USERS = "somebody:$2y$05$abcdefghijklmnopqrstuulzd.YqjLDl8lvpSmVj3De/fioSBHnUa\n"  # their password is "hush"


by_podman, each_engine = in_ways("podman"), in_ways("podman", "docker")


@contextlib.contextmanager
def registry_at(folder, *users):
    if not shutil.which("docker-registry"):
        pytest.skip("no registry: apt-get install docker-registry")
    with contextlib.closing(engine.Registry(folder, *users)) as one:
        yield one.address


@pytest.fixture(scope="session")
def registries(podman):
    with short_folder() as one, short_folder() as two, registry_at(one) as public, registry_at(two, USERS) as private:
        podman.trust(public, private)
        podman.run("push", engine.GREETER, f"{public}/greeter:1")
        podman.run("push", "--creds", "somebody:hush", engine.GREETER, f"{private}/greeter:1")
        yield public, private


def run(node, image=engine.SHELL, name="p", *, mounts=(), volumes=(), first=None, until="", **main):
    containers = [{"name": "main", "image": image, "volumeMounts": [*mounts], **main}]
    inits = [{"name": "first", "image": image, "volumeMounts": [*mounts], **first}] if first else []
    return node.submit(name, containers=containers, initContainers=inits, volumes=[*volumes], until=until)


def sh(script):
    return ["sh", "-c", script]


def waits(node, reason, name="p"):
    return node.until(lambda: [
        each["state"]["waiting"].get("message", "") for each in node.status(name).get("containerStatuses", ())
        if each["state"].get("waiting", {}).get("reason") == reason
    ])[0]  # fmt: skip


def gone(runs, uid):
    until(lambda: not any(uid in each for each in runs.names()))


@pytest.mark.skipif(os.getuid() != 0, reason="only root describes devices to podman")
def test_a_device_comes_with_all_that_its_vendor_describes(machine, podman, settings, tmp_path):
    (tmp_path / "driver").write_text("a driver\n")
    edits = {
        "deviceNodes": [{"path": "/dev/full"}],
        "env": ["NPU_MODE=shared"],
        "mounts": [{"hostPath": f"{tmp_path}/driver", "containerPath": "/npu/driver", "options": ["ro", "bind"]}],
        "hooks": [{"hookName": "createRuntime", "path": "/usr/bin/touch", "args": ["touch", f"{tmp_path}/hooked"]}],
    }
    kind = f"volcano-ui.example/npu-{secrets.token_hex(4)}"
    spec = {"cdiVersion": "0.5.0", "kind": kind, "devices": [{"name": "0", "containerEdits": edits}]}
    file = cdi.FOLDERS[-1] / f"{kind.rpartition('/')[2]}.json"  # in the place where podman looks
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec))
    settings.DEVICES = devices.parse(f"{kind}:NPU=/dev/full")
    node = machine.with_engine(podman).begin()
    script = 'echo "$NPU $NPU_MODE"; cat /npu/driver; [ -c /dev/full ] && echo there'
    uid = run(node, command=sh(script), resources={"limits": {kind: "1"}}, until="Succeeded")
    file.unlink()
    assert node.printed(uid) == "/dev/full shared\na driver\nthere\n"
    assert (tmp_path / "hooked").exists()


class TestPulls:
    @by_podman
    def test_image_is_pulled_once_and_told_as_a_kubelet_tells_it(self, begun, registries, podman):
        image = f"{registries[0]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        uids = [run(begun, image, f"p-{number}") for number in range(3)]
        for number in range(3):
            status = begun.until_phase("Succeeded", f"p-{number}")["containerStatuses"][0]
        assert status["image"] == image
        assert status["imageID"].startswith(f"{registries[0]}/greeter@sha256:")
        for uid in uids:
            (_, pulling), (_, pulled) = begun.events_of(uid)
            assert pulling == f'Pulling image "{image}"'
            assert re.match(f'Successfully pulled image "{image}" in .*Image size: ', pulled)
            assert begun.printed(uid) == "hello all\n"

    def test_image_is_pulled_by_docker_and_told(self, docker, machine):
        begun = machine.with_engine(docker).begin()
        with short_folder() as folder, registry_at(folder) as registry:
            image = f"{registry}/greeter:1"
            docker.run("tag", engine.GREETER, image)
            docker.run("push", image)
            docker.run("rmi", image)
            uid = run(begun, image)
            status = begun.until_phase("Succeeded")["containerStatuses"][0]
            assert (status["image"], status["imageID"].partition("@sha256")[0]) == (image, f"{registry}/greeter")
            assert status["containerID"].startswith("docker://")
            assert [reason for reason, _ in begun.events_of(uid)] == ["Pulling", "Pulled"]
            assert begun.printed(uid) == "hello all\n"
            run(begun, f"{registry}/nosuch:1", "waits")
            assert "manifest unknown" in waits(begun, "ErrImagePull", "waits")

    @by_podman
    def test_image_that_is_there_is_not_pulled_and_one_that_was_built_here_found_by_its_short_name(self, begun, podman):
        uid = run(begun, command=["true"], until="Succeeded")
        assert begun.events_of(uid) == [("Pulled", f'Container image "{engine.SHELL}" already present on machine')]
        podman.make("localhost/mine:1", 'CMD ["true"]')
        run(begun, "mine:1", "built", imagePullPolicy="Never", until="Succeeded")

    @by_podman
    def test_image_that_the_registry_does_not_have_is_waited_for(self, begun, registries):
        image = f"{registries[0]}/nosuch:1"
        uid = run(begun, image)
        assert "manifest unknown" in waits(begun, "ErrImagePull")
        message = waits(begun, "ImagePullBackOff")
        assert message.startswith(f'Back-off pulling image "{image}": ErrImagePull: failed to pull image')
        assert {reason for reason, _ in begun.events_of(uid)} == {"BackOff", "Failed", "Pulling"}
        assert ("Failed", "Error: ErrImagePull") in begun.events_of(uid)
        assert begun.status()["phase"] == "Pending"
        begun.remove()

    @by_podman
    @pytest.mark.parametrize(("password", "is_let_in"), [("hush", True), ("wrong", False), (None, False)])
    def test_registry_that_asks_who_is_there_is_told_by_a_secret(self, begun, registries, podman, password, is_let_in):
        image = f"{registries[1]}/greeter:1"
        podman.run("rmi", "--force", image, check=False)
        auth = base64.b64encode(f"somebody:{password}".encode()).decode()
        config = base64.b64encode(json.dumps({"auths": {registries[1]: {"auth": auth}}}).encode()).decode()
        put(SECRETS, "pull", type="kubernetes.io/dockerconfigjson", data={images.AUTHS: config})
        secrets_ = [{"name": "pull"}] if password else []
        begun.submit(containers=[{"name": "main", "image": image}], imagePullSecrets=secrets_)
        if is_let_in:
            begun.until_phase("Succeeded")
        else:
            assert re.search("authentication required|unauthorized|invalid username", waits(begun, "ErrImagePull"))
        assert not list((begun.data / "node" / "pulls").iterdir())

    @by_podman
    def test_image_that_cannot_be_had_is_said(self, begun, podman):
        podman.make("another.example/x/tool:1", 'CMD ["true"]')  # which does not stand in for that of another registry
        absent = 'Container image "localhost/nosuch:1" is not present with pull policy of Never'
        images = {
            "away": ("127.0.0.1:1/a:1", "IfNotPresent", "ErrImagePull", "connection refused"),
            "absent": ("localhost/nosuch:1", "Never", "ErrImageNeverPull", absent),
            "other": ("tool:1", "Never", "ErrImageNeverPull", ""),
            "none": ("No Name", "IfNotPresent", "InvalidImageName", "invalid reference format"),
        }
        for name, (image, policy, *_) in images.items():
            run(begun, image, name, imagePullPolicy=policy)
        for name, (*_, reason, message) in images.items():
            assert message in waits(begun, reason, name)


@by_podman
class TestCommands:
    def test_runs_as_kubernetes_has_it(self, begun):
        me, lines = [{"name": "WHO", "value": "me"}], [{"name": "GREETING", "value": "two\nlines"}]
        where, volume = {"command": sh("id -u; id -g; pwd"), "workingDir": "/home"}, [mount("v", "/v")]
        look = ["grep", "-E", "Cap(Inh|Prm|Eff|Amb)", "/proc/self/status"]
        none = "".join(f"Cap{each}:\t{0:016x}\n" for each in ("Inh", "Prm", "Eff", "Amb"))
        pods = {
            "own": ({}, "hello all\n"),
            "other-arguments": ({"args": ["you"]}, "hello you\n"),
            "command": ({"command": ["/bin/greet"]}, "hello \n"),
            "both": ({"command": ["/bin/greet"], "args": ["$(WHO)", "--x"], "env": me}, "hello me --x\n"),
            "variable": ({"env": lines}, "two\nlines all\n"),
            "user": ({"command": sh("id -u; pwd")}, "1234\n/tmp\n"),
            "pods-user": ({**where, "securityContext": {"runAsUser": 7, "runAsGroup": 8}}, "7\n8\n/home\n"),
            "no-input": ({"command": ["sh", "-c", "cat", "tty", "-"], "stdin": False}, ""),
            "volume": ({"command": sh("id -u > /v/f && cat /v/f"), "volumeMounts": volume}, "1234\n"),
            "powerless": ({"command": look}, none),
            "pods-user-too": ({"command": look, "securityContext": {"runAsUser": 7}}, none),
        }
        uids = {name: run(begun, engine.GREETER, name, volumes=[EMPTY], **main) for name, (main, _) in pods.items()}
        for code in (125, 126, 127):  # which engines have for themselves
            run(begun, name=f"p-{code}", command=sh(f"exit {code}"))
        for name, (_, output) in pods.items():
            begun.until_phase("Succeeded", name)
            assert begun.printed(uids[name]) == output, name
        for code in (125, 126, 127):
            ended = begun.until_end(f"p-{code}")
            assert (ended["exitCode"], ended["reason"]) == (code, "Error")


@each_engine
def test_memory_is_limited_and_what_a_container_uses_measured_without_its_engine(begun):
    # Nearly all of it is the shell's own variable.
    script = "x=$(head -c {} /dev/zero | tr '\\0' x)"
    run(begun, name="large", command=sh(script.format(200_000_000)), resources={"limits": {"memory": "48Mi"}})
    ended = begun.until_end("large")
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    uid = run(begun, command=sh(f"{script.format(30_000_000)}; while :; do :; done"), until="Running")
    begun.daemon.sampler.sample()
    time.sleep(1.2)  # the kernel counts hundredths: less says little
    begun.daemon.sampler.sample()
    figures = json.loads((begun.data / "node" / usage.NAME).read_text())["containers"]
    ((found, name, nanocores, memory, _),) = figures
    assert (found, name, nanocores > 10_000_000, memory < 200 << 20) == (uid, "main", True, True)


@by_podman
class TestWalls:
    def test_hosts_file_that_the_pod_mounts_is_the_one_that_it_sees(self, begun):
        name = {"path": "hosts", "fieldRef": {"fieldPath": "metadata.name"}}
        volume = {"name": "v", "downwardAPI": {"items": [name]}}
        hosts = mount("v", "/etc/hosts", subPath="hosts")
        uid = run(begun, command=["cat", "/etc/hosts"], mounts=[hosts], volumes=[volume], until="Succeeded")
        assert begun.printed(uid) == "p"

    def test_sub_path_is_mounted_from_what_was_opened_and_through_no_link_that_leads_out(self, begun):
        mounts = [mount("v", "/v"), mount("v", "/x", subPath="deep/er")]
        uid = run(begun, command=sh("echo here > /x/f; ls /v/deep/er"), mounts=mounts, volumes=[EMPTY])
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "f\n"
        assert (begun.data / "node" / "pods" / uid / "_volumes" / "v" / "deep" / "er" / "f").read_text() == "here\n"
        options = {"command": ["ls", "/x"], "mounts": [mount("v", "/x", subPath="x")], "volumes": [EMPTY]}
        for number, target in enumerate((begun.data, "/etc", "../../..")):
            first = {"command": sh(f"ln -s {target} /v/x"), "volumeMounts": [mount("v", "/v")]}
            run(begun, name=f"p-{number}", first=first, **options)
        for number in range(3):
            begun.until_waits("leads out of the volume", name=f"p-{number}")


class TestCare:
    @by_podman
    def test_what_was_left_while_no_agent_was_there_is_removed_by_the_next(self, begun, podman):
        ended = run(begun, name="ended", command=["true"], until="Succeeded")
        gone(podman, ended)
        uid = run(begun, command=["sleep", "1000"], until="Running")
        begun.crash()
        os.kill(begun.shims()[0], signal.SIGKILL)
        assert any(uid in name for name in podman.names())
        begun.again()
        assert begun.until_end()["reason"] == "ContainerStatusUnknown"
        gone(podman, uid)

    @by_podman
    def test_containers_of_other_state_directories_are_left_alone(self, begun, podman):
        podman.run("create", "--name", "another", "--network", "host", engine.SHELL, "true")
        begun.daemon.sweep._all(("podman",))
        assert "another" in podman.names()
        podman.run("rm", "another")

    @by_podman
    def test_who_ends_the_engines_program_ends_the_container(self, begun, podman):
        uid = run(begun, command=["sleep", "1000"], until="Running")
        (shim,) = begun.shims()
        started = [pid for pid in tree.children(shim) if b"start" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(started[0], signal.SIGKILL)
        assert "watched over the container was ended" in begun.until_end()["message"]
        gone(podman, uid)

    @each_engine
    def test_container_is_adopted_by_the_next_agent_and_stops_in_order_and_is_gone(self, begun):
        uid = run(begun, command=sh(f"echo up; {UNTIL_TERM}"), until="Running")
        until(lambda: begun.printed(uid) == "up\n")
        begun.again()
        begun.remove()
        assert json.loads((begun.directory(uid) / "status.json").read_text())["exitCode"] == 143
        gone(begun.engine, uid)
        found, kind = store.get(NODES, "", "here").object, begun.engine.kind
        assert found["metadata"]["annotations"]["ui.volcano.sh/engine"].startswith(f"{kind} ")
        assert found["status"]["nodeInfo"]["containerRuntimeVersion"].startswith(f"{kind}://")


@each_engine
class TestCommandsOfClients:
    """What `kubectl exec` and `attach` do, through the shim's control socket."""

    def call(self, node, uid, streams, fds, **fields):
        request = {"uid": uid, "container": "main", "attempt": 0, "streams": streams, "tty": False, **fields}
        return node.during(server.call, node.data, request, fds)

    def execute(self, node, uid, *argv, **fields):
        reader, writer = os.pipe()
        line = self.call(node, uid, ["stdout"], [writer], do="exec", argv=list(argv), **fields)
        os.close(writer)
        return line, reader

    def parts_of(self, node, line, word):
        received = bytearray()

        def listen():
            with contextlib.suppress(BlockingIOError):
                received.extend(line.recv(4096))
            return word in received.decode()

        node.until(listen)
        return [json.loads(each) for each in received.split(b"\n") if each]

    def test_commands_are_in_the_container_and_end_with_their_client(self, begun):
        """Hooks and probes are such commands."""
        probe = {"exec": {"command": ["sh", "-c", "[ -e /tmp/begun ]"]}, "periodSeconds": 1}
        hook = {"postStart": {"exec": {"command": ["touch", "/tmp/begun"]}}}
        uid = run(begun, engine.GREETER, command=sh(UNTIL_TERM), lifecycle=hook, readinessProbe=probe)
        begun.until(lambda: begun.status().get("containerStatuses", [{}])[0].get("ready"))
        line, output = self.execute(begun, uid, "sh", "-c", "id -u; echo $GREETING; exit 7")
        assert self.parts_of(begun, line, "exitCode")[-1] == {"exitCode": 7}
        assert os.read(output, 1000) == b"1234\nhello\n"
        os.close(output)
        line.close()
        line, output = self.execute(begun, uid, "sh", "-c", "echo up; sleep 1000")
        assert begun.during(os.read, output, 100) == b"up\n"
        os.close(output)
        name = image_containers.name(begun.agent.pods[uid].pod, begun.agent.pods[uid].pod.spec.containers[0], 0)
        marked = tree.with_variable({f"{COMMAND_MARK}={name}/{number}".encode() for number in range(99)})
        assert marked
        line.close()
        until(lambda: not any(map(linux.start_ticks, marked)))
        assert "running" in begun.state()

    def test_input_and_terminal(self, begun):
        uid = run(begun, command=sh("tty; read word; echo got $word"), stdin=True, tty=True, until="Running")
        line = self.call(begun, uid, [], [], do="attach")
        line.setblocking(True)
        _, fds, _, _ = begun.during(socket.recv_fds, line, 4096, 1)
        os.write(fds[0], b"hello\n")
        begun.until_phase("Succeeded")
        os.close(fds[0])
        line.close()
        assert "got hello" in begun.printed(uid)
        assert "/dev/" in begun.printed(uid)
