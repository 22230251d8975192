"""Requests over real connections, to a server that does as it is told."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from cluster.remote import discovery, kinds, target
from cluster.remote.connection import Connection
from cluster.remote.request import Impersonation, Unreachable
from kube.errors import ApiError, Conflict, Invalid, Unauthorized, required
from kube.resources import JOBS, PODS
from tests.cluster.remote.answering import Quiet


class Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.server.heard.append((self.command, self.path, dict(self.headers.items()), self.rfile.read(length)))
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
        if is_whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.write(b"ff\r\nthree\nhalf of a")
            self.close_connection = True


@pytest.fixture
def server():
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.heard, running.groups = [], []
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture
def kubeconfig(tmp_path):
    """Write a kubeconfig of a port, with a token."""

    def write(port, token="secret"):
        file = tmp_path / "config"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "dev",
        }
        file.write_text(yaml.safe_dump(config))
        return str(file)

    return write


@pytest.fixture
def connection(server, kubeconfig, tmp_path):
    return Connection.of(target.find(kubeconfig(server.server_port), ""), tmp_path / "certificates")


def test_bodies_pass_as_they_are(server, connection):
    server.does = lambda asked: asked.say(200, {"a": 1})
    body = connection.request("PATCH", "/x", query={"dryRun": "All"}, body=[1], media_type="application/x")
    assert body == b'{"a": 1}'
    ((method, path, headers, sent),) = server.heard
    assert (method, path, sent) == ("PATCH", "/x?dryRun=All", b"[1]")
    assert headers["Content-Type"] == "application/x"
    assert headers["authorization"] == "Bearer secret"
    assert "Impersonate-User" not in headers


def test_request_is_made_as_somebody(server, connection):
    server.does = lambda asked: asked.say(200, {})
    connection.request("GET", "/x", impersonation=Impersonation("ada", ("a team", "b")))
    assert server.heard[0][2]["Impersonate-User"] == "ada"
    assert server.groups == [["a team", "b"]]


def test_names_of_all_scripts_are_sent_as_utf_8(server, connection):
    server.does = lambda asked: asked.say(200, {})
    connection.request("GET", "/x", impersonation=Impersonation("Łukasz", ("研究",)))
    sent = [server.heard[0][2]["Impersonate-User"], *server.groups[0]]
    assert [name.encode("latin-1").decode() for name in sent] == ["Łukasz", "研究"]


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        pytest.param(422, Invalid.of("Job", "x", [required("spec")]).status(), Invalid, id="a Status with causes"),
        pytest.param(409, Conflict.of("pods", "x").status(), Conflict, id="a Status"),
        pytest.param(502, b"<html>Bad Gateway</html>", ApiError, id="a proxy's page"),
        pytest.param(302, b"", ApiError, id="a redirection, which is not followed"),
    ],
)
def test_refusal_is_raised(server, connection, code, body, error):
    server.does = lambda asked: asked.say(code, body)
    with pytest.raises(error) as caught:
        connection.request("POST", "/x", body={})
    assert caught.value.code == code
    assert caught.value.causes == ((required("spec"),) if error is Invalid else ())
    assert len(server.heard) == 1, "nothing is sent a second time"


def test_kubeconfig_is_read_again_when_its_user_is_not_known(server, connection, kubeconfig):
    def does(asked):
        known = asked.headers["authorization"] == "Bearer new"
        asked.say(200 if known else 401, {} if known else Unauthorized("Unauthorized").status())

    server.does = does
    with pytest.raises(Unauthorized):
        connection.request("GET", "/x")
    kubeconfig(server.server_port, token="new")
    assert connection.request("GET", "/x") == b"{}"


def listened(connection, heard):
    with connection.stream("/x") as lines:
        heard.extend(lines)


def test_lines_come_also_from_a_chunk_that_never_ends_and_half_a_line_is_dropped(server, connection):
    server.does = lambda asked: asked.chunks(b"one\ntw", b"o\n", is_whole=False)
    heard = []
    with pytest.raises(Unreachable, match="it closed the connection") as caught:
        listened(connection, heard)
    assert heard == [b"one", b"two", b"three"]
    assert caught.value.sent


def test_whole_answer_ends_with_its_last_line(server, connection):
    server.does = lambda asked: asked.chunks(b"one\ntwo", is_whole=True)
    with connection.stream("/x") as lines:
        assert list(lines) == [b"one", b"two"]


def test_silence_is_an_end(server, connection):
    done = threading.Event()
    server.does = lambda asked: done.wait(60)
    with pytest.raises(Unreachable, match="it takes too long") as caught:
        connection.request("GET", "/x", answer_s=0.2)
    done.set()
    assert caught.value.sent


def test_nobody_at_the_address_is_told_and_nothing_was_sent(kubeconfig, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    connection = Connection.of(target.find(kubeconfig(port), ""), tmp_path)
    with pytest.raises(Unreachable, match="connection refused") as caught:
        connection.request("GET", "/x")
    assert not caught.value.sent


def test_kubeconfig_that_went_away_is_told(kubeconfig, tmp_path):
    found = target.find(kubeconfig(1), "")
    (tmp_path / "config").unlink()
    with pytest.raises(Unreachable, match="its kubeconfig cannot be used"):
        Connection.of(found, tmp_path)


def test_kinds_that_are_not_served_are_no_error(server, connection):
    def does(asked):
        if asked.path == "/api/v1":
            listed = [{"name": "pods", "verbs": ["list", "watch"]}, {"name": "nodes", "verbs": ["get"]}]
            asked.say(200, {"resources": listed})
        else:
            asked.say(404, {"kind": "Status", "reason": "NotFound", "code": 404})

    server.does = does
    assert discovery.served(connection, kinds.KINDS) == {PODS.id}
    assert JOBS.id in kinds.BY_ID
