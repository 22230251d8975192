from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from apiserver.streams import exec_attach
from cluster import access
from cluster.access import SYSTEM
from cluster.models import AuditEntry
from node.shim import linux, tree
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import Api

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
SUCCESS = {"metadata": {}, "status": "Success"}
SLEEPER = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


class Connection:
    """An upgraded connection as a client sees it."""

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

    def read(self):
        message = self.socket.recv(timeout=HANG_S)
        data = message if isinstance(message, bytes) else bytes([int(message[0])]) + base64.b64decode(message[1:])
        self.out[data[0]] += data[1:]

    def read_until(self, text, channel=1):
        while text not in self.out[channel]:
            self.read()
        return self.out[channel]

    def finish(self):
        """Read to the end; return the last word, as JSON where it is that."""
        with pytest.raises(ConnectionClosed) as closed:
            self.read_until(b"what nobody says")
        assert closed.value.rcvd.code == 1000
        last = self.out[3]
        return json.loads(last) if last.startswith(b"{") else last.decode()

    @property
    def stdout(self):
        return self.out[1].decode()

    @property
    def stderr(self):
        return self.out[2].decode()


class Door:
    """Opens connections to the containers of one node."""

    def __init__(self, url, node, headers=None):
        self.api = Api(url)
        self.headers = headers
        self.url = url.replace("http", "ws")
        self.node = node
        self.open = contextlib.ExitStack()

    def connect(self, *command, pod="p", kind="exec", protocol=V5, actor=SYSTEM, stdout=True, stderr=True, **options):
        flags = {
            name: "true" for name, value in {"stdout": stdout, "stderr": stderr, **options}.items() if value is True
        }
        texts = {name: value for name, value in options.items() if isinstance(value, str)}
        query = urlencode([*(("command", word) for word in command), *flags.items(), *texts.items()])
        address = f"{self.url}/api/v1/namespaces/d/pods/{pod}/{kind}?{query}"
        self.api.as_(actor)
        options = {"subprotocols": [protocol] if protocol else None, "max_size": None, "compression": None}
        options["open_timeout"] = HANG_S  # its own ten seconds may pass on a machine that does much else
        headers = self.headers or {"x-actor": actor.name}
        socket = self.node.during(lambda: connect(address, additional_headers=headers, legacy=True, **options))
        self.open.callback(socket.close)
        return Connection(socket)

    def run(self, *command, **options):
        connection = self.connect(*command, **options)
        return connection, self.node.during(connection.finish)

    def shell(self, script, **options):
        return self.run("sh", "-c", script, **options)

    def close(self):
        self.open.close()


@pytest.fixture
def running(node, server, settings):
    """A node with a pod p that runs, and a server of its API."""
    settings.DATA = node.data

    def begin(mounts="none", **pod):
        node.begin(mounts)
        node.uid = node.shell(SLEEPER, **pod) if "containers" not in pod else node.submit(**pod)
        node.until(lambda: "running" in node.state() if node.status().get("containerStatuses") else False)
        door = Door(server, node)
        doors.append(door)
        return door

    doors = []
    yield begin
    for door in doors:
        door.close()


def main_of(node):
    return json.loads((node.directory(node.uid) / "started.json").read_bytes())["pid"]


def shim_of(node):
    return node.shims()[0]


def test_a_command_runs_and_its_streams_stay_apart(running):
    connection, last = running().shell("echo out; echo err >&2")
    assert (connection.stdout, connection.stderr, last) == ("out\n", "err\n", SUCCESS)


@pytest.mark.parametrize("protocol", [V5, V4, "v4.base64.channel.k8s.io"])
def test_a_command_that_fails_says_its_exit_code(running, protocol):
    connection, last = running().shell("echo x; exit 42", protocol=protocol)
    assert connection.stdout == "x\n"
    assert last["reason"] == "NonZeroExitCode"
    assert last["details"] == {"causes": [{"reason": "ExitCode", "message": "42"}]}


@pytest.mark.parametrize("protocol", ["channel.k8s.io", "base64.channel.k8s.io", ""])
def test_older_protocols_end_with_a_line_of_text(running, protocol):
    door = running()
    assert door.shell("echo x", protocol=protocol)[1] == ""
    assert "exit status 7" in door.shell("exit 7", protocol=protocol)[1]


def test_a_command_that_is_killed_has_128_more_than_the_signal(running):
    _, last = running().shell("kill -9 $$")
    assert last["details"]["causes"][0]["message"] == "137"


def test_a_command_that_is_not_there_is_an_internal_error(running):
    _, last = running().run("nosuch")
    assert last["reason"] == "InternalError"
    assert 'exec: "nosuch": executable file not found in $PATH' in last["message"]


def test_ten_megabytes_go_through_standard_input_and_back(running, node):
    data = os.urandom(1 << 20) * 10
    connection = running().connect("sh", "-c", "tee /dev/null | cat", stdin=True)

    def talk():
        connection.write(data)
        connection.end_input()

    writer = threading.Thread(target=talk)
    writer.start()
    assert node.during(connection.finish) == SUCCESS
    writer.join()
    assert connection.out[1] == data


def test_input_that_nobody_reads_harms_nobody(running, node):
    connection = running().connect("sh", "-c", "exec 0<&-; sleep 0.5; echo done", stdin=True)
    connection.write(b"x" * 1_000_000)
    assert node.during(connection.finish) == SUCCESS
    assert connection.stdout == "done\n"


@pytest.mark.parametrize("mounts", ["none", "user", "root"])
def test_a_command_has_the_container_s_surroundings(running, node, mounts):
    name = "vol"
    pod = {
        "containers": [
            {
                "name": "main",
                "image": "any",
                "command": ["sh", "-c", SLEEPER],
                "env": [{"name": "COLOUR", "value": "red"}],
                "resources": {"limits": {"cpu": "1"}},
                "volumeMounts": [{"name": name, "mountPath": "/made/for/this"}],
            }
        ],
        "volumes": [{"name": name, "emptyDir": {}}],
    }
    door = running(mounts, **pod)
    connection, last = door.shell("echo $COLOUR $HOSTNAME; pwd; ulimit -c -n; id -u; nproc; echo kept > $VOLUME_VOL/x")
    assert last == SUCCESS, connection.stderr
    main = main_of(node)
    lines = connection.stdout.splitlines()
    assert lines[0] == "red p"
    assert lines[1] == str(Path(f"/proc/{main}/cwd").readlink())
    assert lines[-2:] == [str(os.getuid()), "1"]
    if mounts != "none":
        connection, last = door.shell(f"cat /made/for/this/x; test -e {node.data} || echo nothing")
        assert (connection.stdout.splitlines(), last) == (["kept", "nothing"], SUCCESS)


def test_a_command_counts_towards_the_container_s_memory(running, node):
    pod = {"containers": [{"name": "main", "image": "any", "command": ["sh", "-c", SLEEPER],
                           "resources": {"limits": {"memory": "64Mi"}}}]}  # fmt: skip
    _, last = running(**pod).shell("tail -c 200M /dev/zero | tail")
    assert last["details"]["causes"][0]["message"] == "137"
    node.until(lambda: node.status().get("phase") == "Failed")
    assert node.state()["terminated"]["reason"] == "OOMKilled"


def test_a_terminal_echoes_has_a_size_and_tells_of_a_new_one(running, node):
    connection = running().connect("sh", stdin=True, tty=True)
    connection.send(4, b'{"Width":111,"Height":33}')
    # Sizes and input have channels of their own, and neither waits for the other.
    connection.send(0, b"until stty size | grep '33 111'; do sleep 0.01; done; tty; echo $TERM\n")
    assert b"33 111\r\n/dev/pts/" in node.during(connection.read_until, b"xterm\r\n")
    # Only the group in the foreground hears of a new size: with `set +m` the shell stays in it.
    wait = "until [ $told ]; do sleep 0.01; done"
    connection.send(0, f"set +m; trap 'stty size; told=1' WINCH; echo re''ady; {wait}\n".encode())
    node.during(connection.read_until, b"ready\r\n")
    connection.send(4, b"not JSON")
    connection.send(4, b'{"Width":99999999,"Height":"x"}')
    connection.send(4, b'{"Width":80,"Height":20}')
    node.during(connection.read_until, b"20 80\r\n")
    connection.send(0, b"exit 3\n")
    assert node.during(connection.finish)["details"]["causes"][0]["message"] == "3"


def test_the_end_of_input_reaches_a_terminal(running, node):
    connection = running().connect("cat", stdin=True, tty=True)
    connection.send(0, b"line\n")
    connection.end_input()
    assert node.during(connection.finish) == SUCCESS


def test_what_a_command_leaves_behind_runs_on_and_is_not_waited_for(running, node):
    connection, last = running().shell("sleep 1000 & echo $!")
    assert last == SUCCESS
    left = int(connection.stdout)
    assert linux.start_ticks(left)
    assert left in tree.below(shim_of(node))
    node.delete(grace=1)
    node.until(lambda: node.pod() is None)
    until(lambda: not linux.start_ticks(left))


def streams(pid):
    """Return how many pipes and terminals a process holds."""
    count = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(link.readlink()).startswith(("pipe:", "/dev/pt"))
    return count


def children(node):
    """Return the sleepers in the container."""
    found = []
    for pid in tree.below(shim_of(node)):
        with contextlib.suppress(OSError):
            if b"sleep\x001000" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_a_command_ends_with_its_client(running, node):
    connection = running().connect("sh", "-c", "trap '' HUP; (trap '' TERM; echo up; sleep 1000); true")
    node.during(connection.read_until, b"up\n")
    until(lambda: children(node))
    connection.socket.socket.shutdown(2)
    until(lambda: not children(node))
    assert main_of(node) in tree.below(shim_of(node))


def test_a_command_ends_with_its_container(running, node):
    connection = running().connect("sleep", "1000")
    until(lambda: children(node))
    os.kill(main_of(node), signal.SIGKILL)
    last = node.during(connection.finish)
    assert last["details"]["causes"][0]["message"] == "137"


def test_a_command_goes_on_when_the_agent_is_killed(running, node):
    connection = running().connect("sh", "-c", "echo up; cat", stdin=True)
    node.during(connection.read_until, b"up\n")
    node.crash()
    connection.write(b"still here\n")
    connection.read_until(b"still here\n")
    connection.end_input()
    assert connection.finish() == SUCCESS
    node.again()


def test_without_an_agent_the_answer_says_so(running, node, server):
    door = running()
    node.daemon.port.close()
    with pytest.raises(InvalidStatus) as refused:
        door.connect("true")
    assert refused.value.response.status_code == 503
    assert "the agent of node here does not answer" in json.loads(refused.value.response.body)["message"]


def test_a_command_whose_shim_is_killed_ends_without_an_exit_code(running, node):
    connection = running().connect("sh", "-c", "echo $$; exec sleep 1000")
    pid = int(node.during(connection.read_until, b"\n"))
    os.kill(shim_of(node), signal.SIGKILL)
    assert "is not known" in node.during(connection.finish)["message"]
    until(lambda: not linux.start_ticks(pid))


def sessions_beside_main(node):
    found = set()
    for pid in tree.below(shim_of(node)):
        with contextlib.suppress(ProcessLookupError):
            found.add(os.getsid(pid))
    return found - {main_of(node)}


def test_nothing_is_left_open(running, node):
    door = running()
    door.shell("true")
    before = streams("self"), streams(shim_of(node))
    for _ in range(5):
        door.shell("cat; exit 1", stdin=False)
        door.run("nosuch")
        door.connect("sh", stdin=True, tty=True).socket.close()
    until(lambda: exec_attach._open.total() == 0)
    door.close()
    until(lambda: not sessions_beside_main(node))
    until(lambda: streams(shim_of(node)) <= before[1])
    until(lambda: streams("self") <= before[0])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("command=true", "you must specify at least 1 of stdin, stdout, stderr"),
        ("stdout=1", "you must specify at least one command for the container"),
        ("stdout=1&command=a&container=x", "container x is not valid for pod p"),
        ("stdout=1&command=a", "Upgrade request required"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_without_an_upgrade_is_refused(running, server, query, message, method):
    running()
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"} if method == "POST" else {}
    answer = Api(server).request(method, f"/api/v1/namespaces/d/pods/p/exec?{query}", headers=headers)
    assert answer.status_code == 400
    assert answer.json()["kind"] == "Status"
    assert message in answer.json()["message"]


def test_a_subprotocol_that_is_not_served_is_refused(running):
    with pytest.raises(InvalidStatus) as refused:
        running().connect("true", protocol="v9.channel.k8s.io")
    assert refused.value.response.status_code == 400


def test_a_pod_that_has_ended_is_refused(running, node):
    door = running()
    os.kill(main_of(node), signal.SIGKILL)
    node.until_phase("Failed")
    with pytest.raises(InvalidStatus) as refused:
        door.connect("true")
    assert json.loads(refused.value.response.body)["message"] == (
        "cannot exec into a container in a completed pod; current phase is Failed"
    )


def test_whoever_may_not_is_refused(running):
    nobody = access.Actor("nobody", ("system:authenticated",))
    with pytest.raises(InvalidStatus) as refused:
        running().connect("true", actor=nobody)
    assert refused.value.response.status_code == 403


def test_the_audit_has_the_program_but_not_its_arguments(running):
    running().run("echo", "secret")
    row = AuditEntry.objects.get(resource="pods/exec")
    assert (row.verb, row.namespace, row.name, row.message) == ("create", "d", "p", "container main: echo")


def attachable(script, **fields):
    return {"containers": [{"name": "main", "image": "any", "command": ["sh", "-c", script], **fields}]}


def test_attaching_shows_what_comes_from_now_on(running, node):
    pod = attachable("echo before; read x; echo got $x; echo err >&2; exit 0", stdin=True, stdinOnce=True)
    door = running(**pod)
    until(lambda: list(node.directory(node.uid).glob("log.*")))
    connection = door.connect(kind="attach", stdin=True)
    connection.send(0, b"word\n")
    assert node.during(connection.finish) == SUCCESS
    assert (connection.stdout, connection.stderr) == ("got word\n", "err\n")


def test_input_ends_with_the_first_client_where_the_pod_wants_that(running, node):
    door = running(**attachable("cat; echo over", stdin=True, stdinOnce=True))
    connection = door.connect(kind="attach", stdin=True)
    connection.send(0, b"a\n")
    node.during(connection.read_until, b"a\n")
    connection.socket.close()
    node.until_phase("Succeeded")


def test_input_goes_on_after_a_client_where_the_pod_wants_that(running, node):
    door = running(**attachable("read a; echo got; read b; echo $a $b", stdin=True))
    connection = door.connect(kind="attach", stdin=True)
    connection.send(0, b"one\n")
    node.during(lambda: connection.read_until(b"got"))
    connection.socket.close()
    connection = door.connect(kind="attach", stdin=True)
    connection.send(0, b"two\n")
    assert node.during(connection.finish) == SUCCESS
    assert connection.stdout == "one two\n"


def test_attaching_to_a_terminal(running, node):
    wait = "until stty size | grep '7 70'; do sleep 0.01; done"
    door = running(**attachable(f"read x; {wait}; read x", stdin=True, tty=True))
    connection = door.connect(kind="attach", stdin=True, tty=True)
    connection.send(4, b'{"Width":70,"Height":7}')
    connection.send(0, b"size\n")
    node.during(connection.read_until, b"7 70\r\n")
    connection.send(0, b"end\n")
    assert node.during(connection.finish) == SUCCESS


@pytest.mark.parametrize(
    ("flag", "message"),
    [("stdin", "container main does not read standard input"), ("tty", "container main did not allocate a TTY")],
)
def test_attaching_to_what_a_container_does_not_have_is_refused(running, flag, message):
    with pytest.raises(InvalidStatus) as refused:
        running().connect(kind="attach", **{flag: True})
    assert message in json.loads(refused.value.response.body)["message"]


def test_one_actor_cannot_take_all_the_room(running, node, monkeypatch):
    monkeypatch.setattr(exec_attach, "MOST_OF_ONE", 1)
    door = running()
    first = door.connect("sh", "-c", "echo here; read line", stdin=True)
    node.during(lambda: first.read_until(b"here"))
    with pytest.raises(InvalidStatus) as refused:
        door.connect("true")
    assert refused.value.response.status_code == 429
    other = access.Actor("somebody else", (access.MASTERS,))
    assert door.shell("true", actor=other)[1] == SUCCESS
    first.write(b"go on\n")
    assert node.during(first.finish) == SUCCESS
