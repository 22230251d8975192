"""Requests over real connections, to a server that does as it is told, and which cluster a kubeconfig names."""

import socket
import threading

import pytest
import yaml

from cluster.remote.connection import Connection
from cluster.remote.http import discovery, target
from cluster.remote.http.request import Impersonation, Unreachable
from cluster.remote.http.target import Target, TargetError
from cluster.remote.mirroring import kinds
from kube.errors import ApiError, Conflict, Invalid, Unauthorized, required
from kube.resources import PODS
from tests.cluster.remote.servers import Handler, Server, kubeconfig
from tests.tables import cases


class Puppet(Handler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.server.requests.append((self.command, self.path, dict(self.headers.items()), self.body()))
        self.server.groups.append(self.headers.get_all("Impersonate-Group"))
        self.server.does(self)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = answer  # noqa: N815

    def chunks(self, *parts, is_whole):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n" if is_whole else b"ff\r\nthree\nhalf of a")
        self.close_connection |= not is_whole


@pytest.fixture
def server():
    running = Server(Puppet)
    running.requests, running.groups = [], []
    running.does = lambda asked: asked.say(200, {})
    yield running
    running.shutdown()
    running.server_close()


def connect(folder, port):
    return Connection.of(target.find(kubeconfig(folder, port, token="secret"), ""), folder / "certificates")


@pytest.fixture
def connection(server, tmp_path):
    return connect(tmp_path, server.server_port)


def test_bodies_pass_as_they_are(server, connection):
    server.does = lambda asked: asked.say(200, {"a": 1})
    body = connection.request("PATCH", "/x", query={"dryRun": "All"}, body=[1], media_type="application/x")
    assert body == b'{"a": 1}'
    ((method, path, headers, sent),) = server.requests
    assert (method, path, sent) == ("PATCH", "/x?dryRun=All", b"[1]")
    assert headers["Content-Type"] == "application/x"
    assert headers["authorization"] == "Bearer secret"
    assert "Impersonate-User" not in headers


@cases("user, groups", {
    "ASCII": ("ada", ("a team", "b")),
    "all scripts, which are sent as UTF-8": ("Łukasz", ("研究",)),
})  # fmt: skip
def test_request_is_made_as_somebody(server, connection, user, groups):
    connection.request("GET", "/x", impersonation=Impersonation(user, groups))
    sent = [server.requests[0][2]["Impersonate-User"], *server.groups[0]]
    assert [name.encode("latin-1").decode() for name in sent] == [user, *groups]


@cases("code, body, error", {
    "a Status with causes": (422, Invalid.of("Job", "x", [required("spec")]).status(), Invalid),
    "a Status": (409, Conflict.of("pods", "x").status(), Conflict),
    "a proxy's page": (502, b"<html>Bad Gateway</html>", ApiError),
    "a redirection, which is not followed": (302, b"", ApiError),
})  # fmt: skip
def test_refusal_is_raised(server, connection, code, body, error):
    server.does = lambda asked: asked.say(code, body)
    with pytest.raises(error) as caught:
        connection.request("POST", "/x", body={})
    assert caught.value.code == code
    assert caught.value.causes == ((required("spec"),) if error is Invalid else ())
    assert len(server.requests) == 1, "nothing is sent a second time"


def test_kubeconfig_is_read_again_when_its_user_is_not_known(server, connection, tmp_path):
    def does(handler):
        is_authorized = handler.headers["authorization"] == "Bearer new"
        handler.say(200 if is_authorized else 401, {} if is_authorized else Unauthorized("Unauthorized").status())

    server.does = does
    with pytest.raises(Unauthorized):
        connection.request("GET", "/x")
    kubeconfig(tmp_path, server.server_port, token="new")
    assert connection.request("GET", "/x") == b"{}"


def listened(connection, received):
    with connection.stream("/x") as lines:
        received.extend(lines)


def test_lines_come_also_from_a_chunk_that_never_ends_and_half_a_line_is_dropped(server, connection):
    received = []
    server.does = lambda asked: asked.chunks(b"one\ntwo", is_whole=True)
    listened(connection, received)
    server.does = lambda asked: asked.chunks(b"one\ntw", b"o\n", is_whole=False)
    with pytest.raises(Unreachable, match="it closed the connection") as caught:
        listened(connection, received)
    assert received == [b"one", b"two", b"one", b"two", b"three"]
    assert caught.value.sent


def test_silence_is_an_end(server, connection):
    done = threading.Event()
    server.does = lambda asked: done.wait(60)
    with pytest.raises(Unreachable, match="it takes too long") as caught:
        connection.request("GET", "/x", answer_s=0.2)
    done.set()
    assert caught.value.sent


def test_nobody_at_the_address_is_told_and_nothing_was_sent(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match="connection refused") as caught:
        connect(tmp_path, port).request("GET", "/x")
    assert not caught.value.sent
    found = target.find(kubeconfig(tmp_path, port), "")
    (tmp_path / "kubeconfig").unlink()
    with pytest.raises(Unreachable, match="its kubeconfig cannot be used"):
        Connection.of(found, tmp_path)


def test_kinds_that_are_not_served_are_no_error(server, connection):
    listed = [{"name": "pods", "verbs": ["list", "watch"]}, {"name": "nodes", "verbs": ["get"]}]
    server.does = lambda asked: (
        asked.say(200, {"resources": listed}) if asked.path == "/api/v1" else asked.refuse(404, "", "NotFound")
    )
    assert discovery.served(connection, kinds.KINDS) == {PODS.id}


CONTEXTS = [
    {"name": "dev", "context": {"cluster": "one", "user": "me"}},
    {"name": "lost", "context": {"cluster": "none"}},
]
CLUSTERS = [{"name": "one", "cluster": {"server": "https://one:6443/"}}]
CONFIG = {"contexts": CONTEXTS, "clusters": CLUSTERS, "current-context": "dev"}


@cases("config, context, words", {
    "unknown context": (CONFIG, "prod", "no context 'prod'. It has dev, lost."),
    "unknown cluster": (CONFIG, "lost", "names the cluster 'none', which has no server"),
    "no current context": ({**CONFIG, "current-context": ""}, "", "no current context"),
    "empty": ({}, "", "It has none."),
    "another file": ("- a\n", "", "is no kubeconfig"),
    "no YAML": ("{", "", "is no YAML"),
    "no file": (None, "", "config cannot be read: No such file"),
})  # fmt: skip
def test_current_context_is_taken_and_what_is_wrong_with_a_kubeconfig_is_said(tmp_path, config, context, words):
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(CONFIG))
    assert target.find(str(file), "") == Target("dev", "https://one:6443", str(file))
    file.unlink()
    if config is not None:
        file.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    with pytest.raises(TargetError) as refused:
        target.find(str(file), context)
    assert words in str(refused.value)


def test_pod_finds_its_own_cluster_and_directories_of_two_clusters_differ(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert target.find("in-cluster", "") == Target("in-cluster", "https://[fd00::1]:443", "")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(TargetError, match="runs in no cluster"):
        target.find("in-cluster", "")
    one, other = Target("a/b:c", "https://one", ""), Target("a/b:c", "https://two", "")
    assert one.directory.startswith("a-b-c-")
    assert one.directory != other.directory
    assert "/" not in one.directory
