"""A second machine whose agent is real, asked for logs, commands and use by a server that is real: through kills, restarts and cuts."""

import httpx
import pytest

from cluster import clock
from kube.meta import parse_time
from proof.harness.waiting import until
from proof.systems.second import Client, Linked
from proof.systems.system import running

pytestmark = pytest.mark.system
COUNTER = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done"
METRICS = "/apis/metrics.k8s.io/v1beta1"


@pytest.fixture(scope="module")
def system(tmp_path_factory, django_db_blocker):
    with django_db_blocker.unblock(), running(tmp_path_factory.mktemp("first") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def machine(system, tmp_path_factory):
    """A machine that has joined it."""
    joined = Linked(system, tmp_path_factory.mktemp("second") / "data", "second")
    try:
        yield joined.join().linked()
    finally:
        joined.close()


@pytest.fixture(scope="module")
def client(system, machine, tmp_path_factory):
    with Client(system, tmp_path_factory.mktemp("client") / "kubeconfig") as opened:
        yield opened


@pytest.fixture
def pod(client, request):
    """Starts pods on the second machine, which go with the test."""
    made = []

    def begin(script, **container):
        name = f"{request.node.originalname.replace('_', '-')[:50]}-{len(made)}"
        made.append(client.run(name, script, "second", **container))
        return name

    yield begin
    for name in made:
        client.http.delete(f"/api/v1/namespaces/default/pods/{name}", params={"gracePeriodSeconds": 0})


def last_number(text):
    return int(text.rstrip().rpartition(b" ")[2])


def whole(text):
    """Return the lines of a counter's log without one that is not finished, and require that none is missing."""
    lines = text[: text.rfind(b"\n")].split(b"\n")
    assert lines == [b"line %d" % number for number in range(1, len(lines) + 1)]
    return lines


def test_a_log_is_read_and_followed(client, pod):
    name = pod(COUNTER)
    until(lambda: b"line 5\n" in client.log(name).content)
    with client.follow(name) as answer:
        got = b""
        for part in answer.iter_raw():
            got += part
            if b"line 60\n" in got:
                break
    whole(got)
    tail = client.log(name, tailLines=2, timestamps="true").text.splitlines()
    assert len(tail) >= 2  # what is written while it is looked for comes on top
    assert abs(parse_time(tail[0][:19] + "Z") - clock.milliseconds()) < 60_000


def test_commands_and_terminals_run_there_and_containers_are_attached_to(client, pod):
    name = pod("sleep 1000")
    talk = client.exec(name, "sh", "-c", "cat; exit 7", stdin=True)
    talk.send(0, b"to and fro\n")
    talk.send(255, b"\0")
    assert talk.finish()["details"]["causes"][0]["message"] == "7"
    assert talk.out[1] == b"to and fro\n"
    talk = client.exec(name, "sh", stdin=True, tty=True)
    talk.send(4, b'{"Width":77,"Height":22}')
    talk.send(0, b"until stty size | grep '22 77'; do sleep 0.01; done; exit\n")
    talk.until(b"22 77\r\n")
    assert talk.finish()["status"] == "Success"
    talk = client.exec(pod("read x; echo got $x", stdin=True), kind="attach", stdin=True)
    talk.send(0, b"word\n")
    assert talk.until(b"got word\n")
    assert talk.finish()["status"] == "Success"


def test_its_use_is_measured(client, pod):
    name = pod("while :; do :; done")

    def figures():
        found = client.http.get(f"{METRICS}/namespaces/default/pods/{name}")
        return found.status_code == 200 and found.json()["containers"]

    (container,) = until(figures)
    assert container["usage"]["cpu"] != "0"
    machines = until(lambda: len(found := client.http.get(f"{METRICS}/nodes").json()["items"]) == 2 and found)
    assert "second" in {one["metadata"]["name"] for one in machines}


def test_an_agent_that_is_killed_ends_commands_and_is_missed_in_words(client, machine, pod):
    name = pod(COUNTER)
    talk = client.exec(name, "sh", "-c", "echo up; sleep 1000")
    talk.until(b"up\n")
    with client.follow(name) as answer:
        parts = answer.iter_raw()
        next(parts)
        machine.kill()
        with pytest.raises(httpx.RemoteProtocolError):
            for _ in parts:
                pass
    last = talk.finish()
    assert "node second is not connected any more" in last["message"]
    until(lambda: client.log(name).status_code == 503)
    refused = client.log(name)
    assert refused.json()["reason"] == "ServiceUnavailable"
    assert "Node second is not connected since " in refused.json()["message"]
    machine.start().linked()
    before = last_number(client.log(name, tailLines=1).content)
    until(lambda: last_number(client.log(name, tailLines=1).content) > before)
    whole(client.log(name).content)


def test_a_server_that_is_restarted_is_dialled_again(system, client, machine, pod):
    name = pod(COUNTER)
    with client.follow(name) as answer:
        parts = answer.iter_raw()
        next(parts)
        system.stop()
        with pytest.raises(httpx.HTTPError):
            for _ in parts:
                pass
    system.start()
    machine.linked()
    got = b""
    with client.follow(name) as answer:
        for part in answer.iter_raw():
            got += part
            if len(whole(got)) > 20:
                break
    assert client.phase(name) == "Running"
