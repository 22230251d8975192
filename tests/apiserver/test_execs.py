import base64
import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from apiserver.streams import exec_attach
from apiserver.streams.channels import PROTOCOLS, STDOUT, Channels
from cluster import access
from cluster.access import SYSTEM
from cluster.models import AuditEntry
from node import port_client
from node.shim import linux, tree
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import Api, linked
from tests.builders import container

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
SUCCESS = {"metadata": {}, "status": "Success"}
SLEEPER = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
NOBODY = access.Actor("nobody", ("system:authenticated",))


class Connection:
    def __init__(self, socket):
        self.socket = socket
        self.out = {1: b"", 2: b"", 3: b""}

    def send(self, channel, data):
        self.socket.send(bytes([channel]) + data)

    def write(self, data, piece=32 * 1024):
        for start in range(0, len(data), piece):
            self.send(0, data[start : start + piece])

    def end_input(self):
        self.socket.send(bytes([255, 0]))

    def read_until(self, text, channel=1):
        while text not in self.out[channel]:
            message = self.socket.recv(timeout=HANG_S)
            data = message if isinstance(message, bytes) else bytes([int(message[0])]) + base64.b64decode(message[1:])
            self.out[data[0]] += data[1:]
        return self.out[channel]

    def finish(self):
        """Read to the end; return the last word, as JSON where it is that."""
        with pytest.raises(ConnectionClosed) as closed:
            self.read_until(b"what nobody says")
        assert closed.value.rcvd.code == 1000
        last = self.out[3]
        return json.loads(last) if last.startswith(b"{") else last.decode()

    @property
    def printed(self):
        return self.out[1].decode(), self.out[2].decode()


class Door:
    def __init__(self, url, node, headers=None):
        self.api, self.node, self.headers = Api(url), node, headers
        self.url = url.replace("http", "ws")
        self.opened = contextlib.ExitStack()

    def upgrade(self, path, protocol, actor=SYSTEM):
        self.api.as_(actor)
        options = {"subprotocols": [protocol] if protocol else None, "max_size": None, "compression": None}
        options |= {"additional_headers": self.headers or {"x-actor": actor.name}, "legacy": True}
        options["open_timeout"] = HANG_S  # its own ten seconds may pass on a machine that does much else
        address = f"{self.url}/api/v1/namespaces/d/pods/{path}"
        socket = self.node.during(lambda: connect(address, **options))
        self.opened.callback(socket.close)
        return socket

    def connect(self, *command, pod="p", kind="exec", protocol=V5, actor=SYSTEM, stdout=True, stderr=True, **flags):
        flags = [(name, "true") for name, value in {"stdout": stdout, "stderr": stderr, **flags}.items() if value]
        query = urlencode([*(("command", word) for word in command), *flags])
        return Connection(self.upgrade(f"{pod}/{kind}?{query}", protocol, actor))

    def run(self, *command, **options):
        connection = self.connect(*command, **options)
        return connection, self.node.during(connection.finish)

    def shell(self, script, **options):
        return self.run("sh", "-c", script, **options)

    def close(self):
        self.opened.close()


FILES = pytest.param(lambda server, data: contextlib.nullcontext(), id="its files")


@pytest.fixture(params=[FILES, pytest.param(linked, id="a link")])
def way(request):
    """How the server reaches the node: through the files of this machine, or by a link as on another one."""
    return request.param


@pytest.fixture
def running(node, server, settings, way):
    settings.DATA = node.data
    with contextlib.ExitStack() as opened:

        def begin(mounts="none", **pod):
            node.begin(mounts)
            node.uid = node.submit(**pod) if "containers" in pod else node.shell(SLEEPER, **pod)
            node.until(lambda: "running" in node.state() if node.status().get("containerStatuses") else False)
            opened.enter_context(way(server, node.data))
            door = Door(server, node)
            opened.callback(door.close)
            return door

        yield begin


def main_of(node):
    return json.loads((node.directory(node.uid) / "started.json").read_bytes())["pid"]


def shim_of(node):
    return node.shims()[0]


def read_each(paths, read):
    """Return what can be read of files of processes that may end meanwhile."""
    for path in paths:
        with contextlib.suppress(OSError):
            yield read(path)


def descriptors(pid, *kinds):
    return sum(str(link).startswith(kinds) for link in read_each(Path(f"/proc/{pid}/fd").iterdir(), Path.readlink))


def exit_code(last):
    (cause,) = last["details"]["causes"]
    assert (last["reason"], cause["reason"]) == ("NonZeroExitCode", "ExitCode")
    return int(cause["message"])


def refusal(connecting, *arguments, **options):
    with pytest.raises(InvalidStatus) as refused:
        connecting(*arguments, **options)
    return refused.value.response.status_code, json.loads(refused.value.response.body)["message"]


def test_a_command_has_its_streams_apart_and_ends_with_its_exit_code_in_each_protocol(running):
    door = running()
    for protocol in (V5, V4, "v4.base64.channel.k8s.io"):
        connection, last = door.shell("echo out; echo err >&2; exit 42", protocol=protocol)
        assert (connection.printed, exit_code(last)) == (("out\n", "err\n"), 42)
    for protocol in ("channel.k8s.io", "base64.channel.k8s.io", ""):  # older ones end with a line of text
        assert door.shell("echo x", protocol=protocol)[1] == ""
        assert "exit status 7" in door.shell("exit 7", protocol=protocol)[1]
    assert door.shell("true")[1] == SUCCESS
    assert exit_code(door.shell("kill -9 $$")[1]) == 137
    _, last = door.run("nosuch")
    assert last["reason"] == "InternalError"
    assert 'exec: "nosuch": executable file not found in $PATH' in last["message"]
    assert door.run("echo", "secret")[1] == SUCCESS
    row = AuditEntry.objects.filter(resource="pods/exec").latest("pk")
    assert (row.verb, row.namespace, row.name) == ("create", "d", "p")
    assert row.message == "container main: echo", "the program and not its arguments"


def test_ten_megabytes_go_through_standard_input_and_back_and_input_that_nobody_reads_harms_nobody(running, node):
    door, data = running(), os.urandom(1 << 20) * 10
    connection = door.connect("sh", "-c", "tee /dev/null | cat", stdin=True)
    writer = threading.Thread(target=lambda: (connection.write(data), connection.end_input()))
    writer.start()
    assert node.during(connection.finish) == SUCCESS
    writer.join()
    assert connection.out[1] == data
    connection = door.connect("sh", "-c", "exec 0<&-; sleep 0.5; echo done", stdin=True)
    connection.write(b"x" * 1_000_000)
    assert node.during(connection.finish) == SUCCESS
    assert connection.printed == ("done\n", "")


@pytest.mark.parametrize("mounts", ["none", "user", "root"])
def test_a_command_has_the_container_s_surroundings(running, node, mounts):
    main = container(command=["sh", "-c", SLEEPER], limits={"cpu": "1"}, env=[{"name": "COLOUR", "value": "red"}])
    main["volumeMounts"] = [{"name": "vol", "mountPath": "/made/for/this"}]
    door = running(mounts, containers=[main], volumes=[{"name": "vol", "emptyDir": {}}])
    connection, last = door.shell("echo $COLOUR $HOSTNAME; pwd; ulimit -c -n; id -u; nproc; echo kept > $VOLUME_VOL/x")
    assert last == SUCCESS, connection.printed
    first, directory, *_, user, processors = connection.printed[0].splitlines()
    assert (first, directory) == ("red p", str(Path(f"/proc/{main_of(node)}/cwd").readlink()))
    assert (user, processors) == (str(os.getuid()), "1")
    if mounts != "none":
        connection, last = door.shell(f"cat /made/for/this/x; test -e {node.data} || echo nothing")
        assert (connection.printed, last) == (("kept\nnothing\n", ""), SUCCESS)


def test_a_command_counts_towards_the_container_s_memory(running, node):
    main = container(command=["sh", "-c", SLEEPER], limits={"memory": "64Mi"})
    _, last = running(containers=[main]).shell("tail -c 200M /dev/zero | tail")
    assert exit_code(last) == 137
    node.until(lambda: node.status().get("phase") == "Failed")
    assert node.state()["terminated"]["reason"] == "OOMKilled"


def test_a_terminal_echoes_has_a_size_and_tells_of_a_new_one_and_of_the_end(running, node):
    door = running()
    connection = door.connect("sh", stdin=True, tty=True)
    connection.send(4, b'{"Width":111,"Height":33}')
    # Sizes and input have channels of their own, and neither waits for the other.
    connection.send(0, b"until stty size | grep '33 111'; do sleep 0.01; done; tty; echo $TERM\n")
    assert b"33 111\r\n/dev/pts/" in node.during(connection.read_until, b"xterm\r\n")
    # Only the group in the foreground hears of a new size: with `set +m` the shell stays in it.
    wait = "until [ $told ]; do sleep 0.01; done"
    connection.send(0, f"set +m; trap 'stty size; told=1' WINCH; echo re''ady; {wait}\n".encode())
    node.during(connection.read_until, b"ready\r\n")
    for size in (b"not JSON", b'{"Width":99999999,"Height":"x"}', b'{"Width":80,"Height":20}'):
        connection.send(4, size)
    node.during(connection.read_until, b"20 80\r\n")
    connection.send(0, b"exit 3\n")
    assert exit_code(node.during(connection.finish)) == 3
    connection = door.connect("cat", stdin=True, tty=True)
    connection.send(0, b"line\n")
    connection.end_input()
    assert node.during(connection.finish) == SUCCESS


def test_what_a_command_leaves_behind_runs_on_and_is_not_waited_for(running, node):
    connection, last = running().shell("sleep 1000 & echo $!")
    assert last == SUCCESS
    left = int(connection.printed[0])
    assert linux.start_ticks(left)
    assert left in tree.below(shim_of(node))
    node.delete(grace=1)
    node.until(lambda: node.pod() is None)
    until(lambda: not linux.start_ticks(left))


def sleepers(node):
    lines = read_each((Path(f"/proc/{pid}/cmdline") for pid in tree.below(shim_of(node))), Path.read_bytes)
    return sum(b"sleep\x001000" in line for line in lines)


async def test_a_stream_whose_client_is_slow_is_not_taken_for_a_quiet_one():
    waits = []

    async def send(message):
        waits.append(copier.waits)

    ours, theirs = port_client.open_pipes(["stdout"])
    os.write(theirs["stdout"], b"x")
    port_client.close_all(theirs)
    talk = Channels(SimpleNamespace(receive=None, send=send), PROTOCOLS["v5.channel.k8s.io"])
    copier = exec_attach.Copier(talk, ours["stdout"], STDOUT)
    await copier.run()
    port_client.close_all(ours)
    assert waits == [False]


def test_a_command_ends_with_its_client_or_its_container_after_which_there_is_none(running, node):
    door = running()
    connection = door.connect("sh", "-c", "trap '' HUP; (trap '' TERM; echo up; sleep 1000); true")
    node.during(connection.read_until, b"up\n")
    until(lambda: sleepers(node))
    connection.socket.socket.shutdown(2)
    until(lambda: not sleepers(node))
    assert main_of(node) in tree.below(shim_of(node))
    connection = door.connect("sleep", "1000")
    until(lambda: sleepers(node))
    os.kill(main_of(node), signal.SIGKILL)
    assert exit_code(node.during(connection.finish)) == 137
    node.until_phase("Failed")
    message = "cannot exec into a container in a completed pod; current phase is Failed"
    assert refusal(door.connect, "true")[1] == message


def test_a_command_goes_on_when_the_agent_is_killed(running, node):
    connection = running().connect("sh", "-c", "echo up; cat", stdin=True)
    node.during(connection.read_until, b"up\n")
    node.crash()
    connection.write(b"still here\n")
    connection.read_until(b"still here\n")
    connection.end_input()
    assert connection.finish() == SUCCESS
    node.again()


def test_a_command_whose_shim_is_killed_ends_without_an_exit_code(running, node):
    connection = running().connect("sh", "-c", "echo $$; exec sleep 1000")
    pid = int(node.during(connection.read_until, b"\n"))
    os.kill(shim_of(node), signal.SIGKILL)
    assert "is not known" in node.during(connection.finish)["message"]
    until(lambda: not linux.start_ticks(pid))


@pytest.mark.parametrize("way", [FILES], indirect=True)  # of a link it is looked at, see test_upgrades
def test_without_an_agent_the_answer_says_so(running, node):
    door = running()
    node.daemon.port.close()
    code, message = refusal(door.connect, "true")
    assert (code, "the agent of node here does not answer" in message) == (503, True)


def test_nothing_is_left_open(running, node):
    def held():
        return [descriptors(pid, "pipe:", "/dev/pt") for pid in ("self", shim_of(node))]

    door = running()
    door.shell("true")
    before = held()
    for _ in range(5):
        door.shell("cat; exit 1", stdin=False)
        door.run("nosuch")
        door.connect("sh", stdin=True, tty=True).socket.close()
    until(lambda: exec_attach._open.total() == 0)
    door.close()
    until(lambda: set(read_each(tree.below(shim_of(node)), os.getsid)) == {main_of(node)})
    until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))


def test_what_cannot_be_done_is_refused(running, server):
    door = running()
    for query, message in (
        ("command=true", "you must specify at least 1 of stdin, stdout, stderr"),
        ("stdout=1", "you must specify at least one command for the container"),
        ("stdout=1&command=a&container=x", "container x is not valid for pod p"),
        ("stdout=1&command=a", "Upgrade request required"),
    ):
        for method, headers in (("GET", {}), ("POST", {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"})):
            answer = Api(server).request(method, f"/api/v1/namespaces/d/pods/p/exec?{query}", headers=headers)
            assert (answer.status_code, answer.json()["kind"]) == (400, "Status")
            assert message in answer.json()["message"]
    assert refusal(door.connect, "true", protocol="v9.channel.k8s.io")[0] == 400
    assert refusal(door.connect, "true", actor=NOBODY)[0] == 403
    assert "main does not read standard input" in refusal(door.connect, kind="attach", stdin=True)[1]
    assert "main did not allocate a TTY" in refusal(door.connect, kind="attach", tty=True)[1]


def attachable(script, **fields):
    return {"containers": [container(command=["sh", "-c", script], stdin=True, **fields)]}


def test_attaching_shows_what_comes_from_now_on_and_input_ends_with_the_client_where_the_pod_wants_that(running, node):
    door = running(**attachable("echo before; read x; echo got $x; echo err >&2; cat", stdinOnce=True))
    until(lambda: list(node.directory(node.uid).glob("log.*")))
    connection = door.connect(kind="attach", stdin=True)
    connection.send(0, b"word\n")
    node.during(connection.read_until, b"got word\n")
    node.during(connection.read_until, b"err\n", 2)
    assert connection.printed == ("got word\n", "err\n")
    connection.socket.close()
    node.until_phase("Succeeded")


def test_input_goes_on_after_a_client_where_the_pod_wants_that(running, node):
    door = running(**attachable("read a; echo got; read b; echo $a $b"))
    first = door.connect(kind="attach", stdin=True)
    first.send(0, b"one\n")
    node.during(first.read_until, b"got")
    first.socket.close()
    second = door.connect(kind="attach", stdin=True)
    second.send(0, b"two\n")
    assert (node.during(second.finish), second.printed[0]) == (SUCCESS, "one two\n")


def test_attaching_to_a_terminal(running, node):
    wait = "until stty size | grep '7 70'; do sleep 0.01; done"
    door = running(**attachable(f"read x; {wait}; read x", tty=True))
    connection = door.connect(kind="attach", stdin=True, tty=True)
    connection.send(4, b'{"Width":70,"Height":7}')
    connection.send(0, b"size\n")
    node.during(connection.read_until, b"7 70\r\n")
    connection.send(0, b"end\n")
    assert node.during(connection.finish) == SUCCESS


def test_one_actor_cannot_take_all_the_room(running, node, monkeypatch):
    monkeypatch.setattr(exec_attach, "MAX_OF_ONE", 1)
    door = running()
    first = door.connect("sh", "-c", "echo here; read line", stdin=True)
    node.during(first.read_until, b"here")
    assert refusal(door.connect, "true")[0] == 429
    other = access.Actor("somebody else", (access.MASTERS,))
    assert door.shell("true", actor=other)[1] == SUCCESS
    first.write(b"go on\n")
    assert node.during(first.finish) == SUCCESS
