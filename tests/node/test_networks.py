"""Networks of their own: who reaches whom, who keeps them, and that nothing of them is left."""

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kube.resources import CREATOR_ANNOTATION
from node import leftovers
from node.containers import networks, prepare
from node.containers.networks import Networks
from node.paths import Layout
from node.pods.environment import ConfigError
from node.shim import control_socket, linux, network, tree
from node.shim.network import Network, Plan
from node.shim.order import Wall
from proof.escapes.attempts import layers
from proof.harness.waiting import HANG_S, until
from tests.node.driving import asking, conditions, env, field, person, ran
from tests.tables import cases

SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()
"""

CLIENT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
PYTHON = (sys._base_executable, "-I", "-c")
ADDRESS = "127.1.2.3"


def _python():
    base = Path(sys.base_prefix).resolve()
    return () if base == Path("/usr") else (str(base / "bin"), str(base / "lib"))


@contextlib.contextmanager
def agent_of(attempts, key="key", kind=networks.CLOSED):
    with contextlib.closing(Networks(Layout(attempts.root), attempts.spawner, key, kind)) as agent:
        attempts.networks["team-a"] = agent.of("team-a")
        yield agent
    attempts.networks.pop("team-a", None)


def keeper(attempts, namespace="team-a"):
    return int((Layout(attempts.root).network(namespace) / "claim").read_text().split()[0])


def same(one, other):
    return os.fstat(one.net).st_ino == os.fstat(other.net).st_ino


def server(attempts, namespace, address=ADDRESS, port=0):
    directory = attempts.start(*PYTHON, SERVER, address, str(port), network=namespace)
    until(lambda: b"\n" in attempts.log(directory))
    return directory, int(attempts.output(directory))


def connects(attempts, namespace, address, port):
    directory = attempts.start(*PYTHON, CLIENT, address, str(port), network=namespace)
    return attempts.end(directory)["exitCode"] == 0


OPEN = Wall("user", pids=True, networks="open")


def route(prefix, kind=24, more=b""):
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, prefix, 0, 0, 254, 2, 0, 1, 0) + more
    whole = struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body
    return whole + bytes(-len(whole) % 4)


class TestNetworks:
    @pytest.fixture
    def wall(self, attempts):
        found = attempts.spawner.probe(attempts.root / "probe")
        if not found.networks:
            pytest.skip("this machine lets nobody make a network namespace")
        attempts.layers = layers(found) | {"read": _python()}
        return found

    def test_pods_of_a_namespace_reach_each_other_and_nobody_else(self, attempts, wall):
        assert [server(attempts, each, port=80)[1] for each in ("team-a", "team-b")] == [80, 80], "each has all ports"
        _, port = server(attempts, "team-a")
        assert connects(attempts, "team-a", ADDRESS, port)
        assert not connects(attempts, "team-b", ADDRESS, port)
        assert not connects(attempts, "", ADDRESS, port)
        with socket.create_server(("127.0.0.1", 0)) as machine:
            at = machine.getsockname()[1]
            assert connects(attempts, "", "127.0.0.1", at)
            assert not connects(attempts, "team-a", "127.0.0.1", at)

    @cases("namespace, local, expected", {
        "own network": ("team-a", True, "connected"),
        "own network, its address alone": ("team-a", False, "refused"),
        "the machine's, whose loopback is not the pod's": ("", True, "refused"),
    })  # fmt: skip
    def test_a_port_at_localhost_is_forwarded_where_that_is_the_pods(self, attempts, wall, namespace, local, expected):
        directory, port = server(attempts, namespace, "127.0.0.1")
        with asking(directory, do="connect", host=ADDRESS, port=port, local=local, seconds=HANG_S) as line:
            received, fds, _, _ = socket.recv_fds(line, 4096, 1)
        control_socket.close(fds)
        assert expected in json.loads(received)

    def test_a_later_agent_finds_the_network_of_which_nothing_is_left_without_containers(self, attempts, wall):
        with agent_of(attempts) as first, agent_of(attempts) as later:
            found = first.of("team-a")
            assert found is first.of("team-a")
            assert same(found, later.of("team-a"))
            assert not same(found, first.of("team-b"))
            with agent_of(attempts, key="another") as other:
                assert not same(found, other.of("team-a")), "who does not know the key"
        until(lambda: leftovers.network_keepers(Layout(attempts.root)) == set())
        with agent_of(attempts):
            pid = keeper(attempts)
            processes = [pid, *tree.below(pid)]
            assert leftovers.network_keepers(Layout(attempts.root)) == {pid}
            directory, port = server(attempts, "team-a")
        with agent_of(attempts):
            assert connects(attempts, "team-a", ADDRESS, port)
        assert linux.start_ticks(pid)
        attempts.stop(directory)
        until(lambda: not any(map(linux.start_ticks, processes)))
        assert leftovers.network_keepers(Layout(attempts.root)) == set()

    def test_what_is_not_used_is_let_go_of_and_after_a_killed_keeper_there_is_a_new_network(self, attempts, wall):
        with agent_of(attempts) as agent:
            pid = keeper(attempts)
            agent.tidy()
            assert linux.start_ticks(pid), "used since the last time"
            agent.tidy()
            until(lambda: not linux.start_ticks(pid))
        with agent_of(attempts) as agent:
            directory, port = server(attempts, "team-a")
            pid = keeper(attempts)
            processes = [pid, *tree.below(pid)]
            os.kill(pid, signal.SIGKILL)
            until(lambda: not any(map(linux.start_ticks, processes)))
            attempts.networks["team-a"] = agent.of("team-a")
            assert not connects(attempts, "team-a", ADDRESS, port)
            assert not (directory / "status.json").exists()

    @pytest.mark.parametrize("program", network.UPLINKS)
    def test_a_container_begins_when_there_is_a_way_out(self, attempts, wall, program):
        if wall.networks != "open" or not shutil.which(program):
            pytest.skip(f"{program} is not installed here, or /dev/net/tun is closed")
        with agent_of(attempts, kind=program), socket.create_server(("127.0.0.1", 0)) as machine:
            _, output = ran(attempts, "cat /proc/net/route /proc/net/ipv6_route", network="team-a")
            routes = [line.split() for line in output.decode().splitlines()]
            assert any(route[1] == "00000000" or route[:2] == ["0" * 32, "00"] for route in routes)
            gateways = [socket.inet_ntoa(bytes.fromhex(one[2])[::-1]) for one in routes if len(one[1]) == 8][1:]
            for address in ("127.0.0.1", *gateways):
                assert not connects(attempts, "team-a", address, machine.getsockname()[1]), "by way of the program"

    def test_a_program_that_fails_holds_up_nobody_and_a_network_that_cannot_be_made_is_told(self, attempts, wall):
        """A machine that is offline has no way out, and pods that need none run."""

        def made(folder, *program):
            return Network.received(attempts.spawner.start_network(Plan(str(attempts.root / folder), "key", *program)))

        (attempts.root / "network").mkdir()
        attempts.networks["team-a"] = made("network", "/bin/false")
        assert ran(attempts, "exit 3", network="team-a")[0]["exitCode"] == 3
        with pytest.raises(OSError, match=r"the network of the namespace cannot be made: .*No such file"):
            made("missing")

    @cases("wall, setting, installed, expected", {
        "the best of the programs": (OPEN, "own", network.UPLINKS, "pasta"),
        "the other one": (OPEN, "own", ("slirp4netns",), "slirp4netns"),
        "none installed: the machine's": (OPEN, "own", (), ""),
        "closed needs none": (OPEN, "closed", network.UPLINKS, "closed"),
        "the machine's where that is wished": (OPEN, "machine", network.UPLINKS, ""),
        "no /dev/net/tun": (OPEN._replace(networks="closed"), "own", network.UPLINKS, ""),
        "no /dev/net/tun, closed": (OPEN._replace(networks="closed"), "closed", (), "closed"),
        "no namespaces": (OPEN._replace(networks=""), "closed", network.UPLINKS, ""),
        "no root of their own": (OPEN._replace(mounts="none"), "closed", network.UPLINKS, ""),
    })  # fmt: skip
    def test_which_networks_pods_have(self, monkeypatch, tmp_path, wall, setting, installed, expected):
        for name in installed:
            (tmp_path / name).touch(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(networks, "search_path", lambda: str(tmp_path))
        assert networks.chosen(wall, setting).networks == expected

    def test_a_route_to_everywhere_is_noticed_and_programs_let_nothing_in_and_nothing_to_the_machine(self):
        for messages in (route(0), route(24, more=b"abc") + route(0)):
            assert network._has_default(messages)
        for messages in (route(24), route(0, kind=25), route(0)[:17], bytes(64), b""):
            assert not network._has_default(messages)
        spaces = "/proc/7/ns/user", "/proc/7/ns/net"
        pasta, slirp = (network.command(f"/usr/bin/{name}", *spaces) for name in network.UPLINKS)
        assert [pasta[pasta.index(each) + 1] for each in ("-t", "-u", "-T", "-U")] == ["none"] * 4
        assert "--no-map-gw" in pasta
        assert "--disable-host-loopback" in slirp

    # Whole nodes.

    @pytest.fixture
    def closed(self, machine, settings):
        settings.POD_NETWORK = "closed"
        if not machine.allowed().networks:
            pytest.skip("this machine lets nobody make a network namespace")
        return machine.begin(mounts=machine.allowed().mounts)

    @pytest.mark.parametrize("role", ["submitter", "administrator"])
    def test_pods_do_not_run_where_no_network_without_a_way_out_can_be_had(self, machine, settings, role):
        """Only those of administrators that ask for the machine's do."""
        settings.POD_NETWORK, settings.ALLOW_UNWALLED = "closed", True
        person("pat", role, "*")
        machine.begin("none")
        machine.shell("true", "own", annotations={CREATOR_ANNOTATION: "pat"})
        machine.shell("true", annotations={CREATOR_ANNOTATION: "pat"}, hostNetwork=True)
        machine.until_waits("VOLCANO_UI_POD_NETWORK=closed", "CreateContainerConfigError", name="own")
        if role == "administrator":
            machine.until_phase("Succeeded")
        else:
            machine.until_waits("leave hostNetwork out", "CreateContainerConfigError")

    @pytest.mark.parametrize("stages", [True, False])
    def test_images_do_not_run_by_an_engine_that_has_them_in_the_machine_s_network(self, stages):
        """Where pods are to have none with a way out: only podman that root has started goes into ours."""
        pod = SimpleNamespace(spec=SimpleNamespace(host_network=False), metadata=SimpleNamespace(namespace="d"))
        engine = SimpleNamespace(engine=SimpleNamespace(stages=stages))
        means = SimpleNamespace(wall=OPEN._replace(networks="closed", closed=True), engine=engine)
        assert prepare._network(pod, means, of_image=False) == "d"
        with (
            contextlib.nullcontext() if stages else pytest.raises(ConfigError, match="this engine lets them have none")
        ):
            assert prepare._network(pod, means, of_image=True) == "d"

    def test_pods_of_a_job_find_each_other_by_name_also_with_the_agent_that_follows_a_killed_one(self, closed):
        serve = f"{PYTHON[0]} -I -c '{SERVER}' $HOSTNAME 7000"
        connect = f"until {PYTHON[0]} -I -c '{CLIENT}' one.ring 7000; do sleep 0.05; done"
        closed.shell(serve, "one", owner="j", hostname="one", subdomain="ring", until="Running")
        for name in ("two", "three"):
            closed.shell(connect, name, owner="j", hostname=name, subdomain="ring", until="Succeeded")
            closed.again()

    @pytest.mark.parametrize("network", ["machine", "closed"])
    def test_probes_and_hooks_ask_at_the_pod_s_own_address_in_its_network(self, request, network):
        """In a network of its own one that asked from the machine would find nobody."""
        node = request.getfixturevalue("closed" if network == "closed" else "node")
        serve = "import http.server as h, os; h.test(h.SimpleHTTPRequestHandler, port=7000, bind=os.environ['IP'])"
        main = {
            "name": "main", "command": [*PYTHON, serve], "ports": [{"name": "web", "containerPort": 7000}],
            "readinessProbe": {"httpGet": {"port": "web"}, "periodSeconds": 1},
            "env": env(IP=field("status.podIP")),
            "startupProbe": {"tcpSocket": {"port": 7000}, "periodSeconds": 1, "failureThreshold": 60},
            "lifecycle": {"preStop": {"httpGet": {"port": 7000, "path": "/last"}}},
        }  # fmt: skip
        uid = node.submit(containers=[main], terminationGracePeriodSeconds=30)
        node.until(lambda: conditions(node.status()).get("Ready") == "True")
        node.delete()
        node.until(lambda: uid not in node.agent.pods)
        for entry in ('"GET / HTTP/1.1" 200', '"GET /last HTTP/1.1" 404'):
            assert entry in node.printed(uid)
        ended = json.loads((node.directory(uid) / "status.json").read_text())
        assert ended["hook"] == "", "whatever is answered is an answer"

    @pytest.mark.parametrize("role", ["submitter", "administrator"])
    def test_only_administrators_pods_have_the_network_of_the_machine(self, closed, role):
        person("pat", role, "*")
        made = {"annotations": {CREATOR_ANNOTATION: "pat"}}
        with socket.create_server(("127.0.0.1", 0)) as machine:
            connect = f"{PYTHON[0]} -I -c '{CLIENT}' 127.0.0.1 {machine.getsockname()[1]}"
            closed.shell(connect, "own", **made, until="Failed")
            closed.shell(connect, hostNetwork=True, **made)
            if role == "administrator":
                closed.until_phase("Succeeded")
            else:
                closed.until_waits("leave hostNetwork out", "only pods of administrators of all namespaces")
