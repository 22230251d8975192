"""A machine that is a node over the API: the rules, and what its agent does beside a real API server."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import ssl
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.http import authentication
from cluster import access, clock, fingerprint, issuing
from cluster.access import joining as invitations
from cluster.access import tokens
from cluster.models import AuditEntry, Token
from cluster.remote.request import Unreachable
from cluster.runtime import nudge
from cluster.store import Create, Delete, Patch, retention, store
from kube.kinds.core import Event, Lease, Node
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NAMESPACES, NODES, PODS, SECRETS
from node.agent import claims
from node.agent.cluster import Dismissed
from node.joined import addresses, client, joining, membership, requests
from node.joined.joining import JoinError
from node.joined.pod_watch import Gap, PodWatch
from proof.escapes import breaking_out, security_table
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import serving
from tests.node.driving import NODE, JoinedNode, change, mount, put, told
from tests.tables import cases

POD = "/api/v1/namespaces/d/pods/p"


@pytest.fixture(scope="module")
def authority():
    made = issuing.authority(datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=10))
    return issuing.certificate_text(made[0]).decode()


class TestRules:
    @pytest.mark.parametrize("url", [
        "https://cluster.example:8443", "https://192.0.2.7", "https://[2001:db8::1]:8443",
        "http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080",
    ])  # fmt: skip
    def test_an_api_server_is_reached_over_tls_or_on_this_machine(self, url):
        assert addresses.checked(url) == url
        assert addresses.checked(f"{url}/") == url

    @pytest.mark.parametrize(("url", "words"), [
        ("http://cluster.example:8443", "not encrypted"),
        ("http://192.0.2.7", "not encrypted"),
        ("http://127.0.0.1.example.org", "not encrypted"),
        ("cluster.example:8443", "https://host:8443"),
        ("https://", "https://host:8443"),
        ("https://host:0", "https://host:8443"),
        ("https://host:99999", "https://host:8443"),
        ("https://host/path", "https://host:8443"),
        ("https://user:secret@host", "https://host:8443"),
        ("https://host?x=1", "https://host:8443"),
        ("ftp://host", "https://host:8443"),
        ("", "https://host:8443"),
    ])  # fmt: skip
    def test_other_addresses_are_refused_with_the_remedy(self, url, words):
        with pytest.raises(ValueError, match=words):
            addresses.checked(url)

    @given(st.text(max_size=40))
    def test_any_text_is_an_address_or_refused(self, text):
        try:
            found = addresses.checked(text)
        except ValueError:
            return
        assert found.startswith(("http://", "https://"))
        assert addresses.checked(found) == found

    def test_a_fingerprint_is_over_what_a_certificate_says(self, authority):
        import hashlib

        der = ssl.PEM_cert_to_DER_cert(authority)
        assert fingerprint.of(authority) == f"sha256:{hashlib.sha256(der).hexdigest()}"
        assert fingerprint.of(authority.replace("\n", "\r\n")) == fingerprint.of(authority)
        assert fingerprint.of(f"some words\n{authority}\n") == fingerprint.of(authority)
        assert fingerprint.FORM.fullmatch(fingerprint.of(authority))

    def test_more_certificates_have_another_fingerprint(self, authority):
        assert fingerprint.of(authority + authority) != fingerprint.of(authority)

    @given(st.text(max_size=60))
    def test_what_holds_no_certificate_has_no_fingerprint(self, text):
        assert fingerprint.of(text) == ""

    @cases("write, method, path, body", {
        "the status of a pod, pinned": (
            Patch(PODS, "d", "p", {"status": {"phase": "Running", "reason": None}}, "status", uid="u", version="7"),
            "PATCH", f"{POD}/status",
            {"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"phase": "Running", "reason": None}},
        ),
        "the status of a node": (
            Patch(NODES, "", "n", {"status": {"capacity": {}}}, "status"), "PATCH", "/api/v1/nodes/n/status",
            {"metadata": {}, "status": {"capacity": {}}},
        ),
        "a lease": (
            Patch(LEASES, "kube-node-lease", "n", {"spec": {"renewTime": "t"}}), "PATCH",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
            {"spec": {"renewTime": "t"}, "metadata": {}},
        ),
        "an event": (
            Create(EVENTS, {"metadata": {"namespace": "d", "generateName": "e"}}),
            "POST", "/api/v1/namespaces/d/events",
            {"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "d", "generateName": "e"}},
        ),
        "a pod that goes": (
            Delete(PODS, "d", "p", uid="u", grace=0), "DELETE", POD,
            {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": "Background",
                    "preconditions": {"uid": "u"},
                    "gracePeriodSeconds": 0,
                },
        ),
    })  # fmt: skip
    def test_a_write_is_one_request_that_says_the_same(self, write, method, path, body):
        asked = requests.of(write)
        assert (asked.method, asked.path, asked.body) == (method, path, body)


PLACES = ("d", "kube-system", "kube-node-lease")


@pytest.fixture
def joined(proxy):
    data = Path(tempfile.mkdtemp(prefix="volcano-"))
    machine = JoinedNode(data, f"http://127.0.0.1:{proxy.port}")
    yield machine
    machine.close()
    shutil.rmtree(data)


def own_token():
    return Token.objects.get(node=NODE, joins=False)


def renewed():
    return store.get(LEASES, "kube-node-lease", NODE).read(Lease).spec.renew_time


@contextlib.contextmanager
def answering(code, *bodies):
    """Answer requests with a code and the bodies in turn, in a server's place; give its address and the requests."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = bodies[min(len(asked), len(bodies)) - 1]
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


class Stage(breaking_out.Stage):
    """The stage of `breaking_out` on a joined machine: what is not to be reached is in its state directory."""

    def __init__(self, root, attempts, joined):
        super().__init__(root, attempts, joined.data)
        self.joined, self.work = joined, "/work"
        self.ports[0] = int(joined.wish.url.rpartition(":")[2])
        (joined.data / "run").mkdir()
        os.link(self.state / "secret-key", joined.data / "run" / "node-key")  # which the agent keeps
        put(CONFIGMAPS, "tools", data={file.name: file.read_text() for file in self.tools.iterdir()})

    def _directory(self):
        return self.joined.directory("$(UID)")

    def _start(self, *argv, wall, whose, directory=None, env=None):
        values = [{"name": name, "value": value} for name, value in (env or {}).items()]
        values.append({"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}})
        main = {"name": "main", "command": [*argv], "volumeMounts": [mount("tools", str(self.tools))], "env": values}
        tools = {"name": "tools", "configMap": {"name": "tools"}}
        directory = self.joined.directory(self.joined.submit(whose.name, containers=[main], volumes=[tools]))
        self.joined.until((directory / "started.json").exists, lambda: self.joined.status(whose.name))
        return directory


class TestJoined:
    @pytest.fixture
    def server(self, transactional_db, redis_url, settings):
        settings.REDIS_URL = redis_url
        nudge.client.cache_clear()
        store.write(*(Create(NAMESPACES, {"metadata": {"name": name}}) for name in PLACES))
        with serving(authentication.authenticate) as url:
            yield url
        nudge.client.cache_clear()

    @pytest.fixture
    def proxy(self, server):
        """What stands between the machine and the server, and can cut connections."""
        with CuttingProxy(int(server.rpartition(":")[2])) as standing:
            yield standing

    @pytest.fixture
    def begun(self, joined):
        return joined.begin()

    def test_a_machine_that_joins_asks_for_nothing_that_is_refused(self, joined, caplog, monkeypatch):
        monkeypatch.setattr(joining, "SKEW_MS", -1)
        joined.begin()
        assert "clock" in caplog.text, "a wrong one is told"
        node = store.get(NODES, "", NODE).read(Node)
        assert {each.type: each.status for each in node.status.conditions}["Ready"] == "True"
        assert node.metadata.labels["kubernetes.io/hostname"] == NODE
        before = renewed()
        joined.agent.machine.due = 0
        joined.agent.machine.beat()
        assert renewed() > before
        uid = joined.shell("echo said; exit 3")
        assert joined.until_end()["exitCode"] == 3
        assert joined.status()["hostIP"] == "127.0.0.1"
        assert joined.printed(uid) == "said\n"
        assert not AuditEntry.objects.filter(outcome="denied").exists()
        assert (joined.data / membership.FILE).stat().st_mode & 0o777 == 0o600

    def test_a_claims_files_are_found_by_its_uid_and_go_with_it(self, begun):
        uid = begun.claim()
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        begun.ran("touch $VOLUME_V/f", main={"volumeMounts": [mount("v", "/v")]}, volumes=volumes)
        assert (begun.files(uid) / "f").exists()
        os.utime(begun.files(uid).parent / "claim.json", (0, 0))
        begun.until(lambda: not begun.agent.pods)
        lookup = begun.agent.cluster.lookup
        claims.clean(begun.agent.layout, (), lookup)
        assert begun.files(uid).exists()
        store.write(Delete(CLAIMS, "d", "c"))
        claims.clean(begun.agent.layout, (), lookup)
        assert not begun.files(uid).exists()

    def test_a_pod_waits_for_what_it_mentions_and_nothing_of_a_secret_is_kept_elsewhere(self, begun):
        env = [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]
        put(SECRETS, "s", data={"k": "aHVzaGh1c2g="})
        uid = begun.shell("echo $A ${#B}", main={"env": env})
        begun.until_waits('configmap "c" not found')
        put(CONFIGMAPS, "c", data={"k": "configured"})
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "configured 8\n"
        kept = [file for file in begun.data.rglob("*") if file.is_file() and b"hushhush" in file.read_bytes()]
        assert kept == []

    def test_mounted_files_follow_their_object_also_after_a_crash(self, begun):
        put(CONFIGMAPS, "c", data={"k": "old"})
        mounts = {"volumeMounts": [mount("v", "/tmp/v")]}
        uid = begun.held('cat "$VOLUME_V/k"', main=mounts, volumes=[{"name": "v", "configMap": {"name": "c"}}])
        begun.until_phase("Running")
        file = begun.data / f"node/pods/{uid}/_volumes/v/..data/k"
        for text in ("new", "newer"):
            change(CONFIGMAPS, "c", data={"k": text})
            begun.agent.cluster.lookup.look()  # what its thread does every ten seconds
            begun.until(lambda text=text: file.read_text() == text)
            begun.crash()
            begun.again()
        begun.let_go()
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "newer"

    def test_deleted_pods_end_and_go(self, begun):
        begun.shell("trap 'exit 0' TERM; while :; do sleep 0.05; done", "asked")
        begun.shell("while :; do sleep 0.05; done", "forced")
        for name in ("asked", "forced"):
            begun.until_phase("Running", name)
        begun.delete("asked")
        begun.delete("forced", grace=0)
        begun.until(lambda: begun.pod("asked") is None and not begun.shims())

    def test_a_killed_agent_is_followed_by_one_that_adopts_its_pods(self, begun):
        begun.held("exit 5")
        begun.until_phase("Running")
        before = begun.shims()
        begun.crash()
        begun.again()
        assert begun.shims() == before
        begun.let_go()
        assert begun.until_end()["exitCode"] == 5
        assert begun.status()["containerStatuses"][0]["restartCount"] == 0

    def test_a_container_that_fails_again_and_again_is_told_of_once_with_a_count(self, begun, monkeypatch):
        monkeypatch.setattr("node.agent.lifecycle.BACK_OFF_S", 0.5)
        uid = begun.shell("exit 1", restartPolicy="Always")
        begun.until(lambda: [each.read(Event).times >= 2 for each in store.find(EVENTS, owner=uid)] == [True])
        assert [reason for reason, _ in told(uid)] == ["BackOff"]

    def test_a_killed_connection_loses_nothing(self, begun, proxy):
        """Connections are cut amid requests, answers and the watch; the store knows in the end what came of it."""
        proxy.cutting = True
        names = [f"p{number}" for number in range(12)]
        for number, name in enumerate(names):
            begun.shell(f"exit {number}", name)
        ends = ("Failed", "Succeeded")
        begun.until(lambda: proxy.cuts >= 5 or all(begun.status(name).get("phase") in ends for name in names))
        proxy.cutting = False
        for number, name in enumerate(names):
            assert begun.until_end(name)["exitCode"] == number
            assert begun.status(name)["containerStatuses"][0]["restartCount"] == 0
        assert len(list(begun.data.glob("node/pods/*/main/*/claim"))) == len(names)

    def test_where_history_does_not_reach_back_the_pods_are_read_anew(self, begun, proxy, settings, monkeypatch):
        """As after a long sleep of the machine: the watch was cut, and what happened meanwhile is forgotten."""
        for name in ("stays", "goes"):
            begun.shell("while :; do sleep 0.05; done", name)
        for name in ("stays", "goes"):
            begun.until_phase("Running", name)
        watch, heard_of = begun.agent.listener, []
        monkeypatch.setattr(watch, "tell", lambda heard, tell=watch.tell: (heard_of.append(heard), tell(heard)))
        with monkeypatch.context() as asleep:
            asleep.setattr(watch, "_take", lambda line: None)
            begun.delete("goes", grace=0)
            settings.HISTORY_HOURS = 0
            retention.run(clock.monotonic() + HANG_S, now=clock.milliseconds() + 3_600_000)
            watch._version = "1"
            proxy.cutting = True
            put(CONFIGMAPS, "news", data={})
            begun.annotate("stays")  # something is told on the connection, and cuts it
            begun.until(lambda: Gap.GAP in heard_of)
        proxy.cutting = False
        begun.until(lambda: len(begun.shims()) == 1)
        begun.delete("stays", grace=0)
        begun.until(lambda: not begun.shims())

    def test_a_revoked_token_ends_its_node_and_what_runs_there(self, begun):
        begun.shell("while :; do sleep 0.05; done")
        begun.until_phase("Running")
        tokens.revoke(access.CONSOLE, own_token().pk)
        begun.until(lambda: begun.agent.is_dismissed)
        begun.agent.stop_all()
        begun.until(lambda: begun.agent.wind_down() or begun.agent.is_done)
        assert not begun.shims()

    def test_a_node_that_was_revoked_while_its_agent_was_away_keeps_its_pods_for_a_new_token(self, begun):
        begun.held("exit 4")
        begun.until_phase("Running")
        kept = membership.read(begun.data)
        begun.crash()
        tokens.revoke(access.CONSOLE, own_token().pk)
        with pytest.raises(Dismissed):
            begun.join()
        assert membership.read(begun.data) == kept
        store.write(Patch(NODES, "", NODE, {"status": {"conditions": []}}, "status"))
        wish = begun.wish._replace(token=invitations.invite(access.CONSOLE, NODE, 3600).secret)
        joining.join(begun.data, joining.again(kept, wish), NODE)
        begun.again()
        begun.let_go()
        assert begun.until_end()["exitCode"] == 4

    def test_a_renewal_that_cannot_be_kept_is_not_the_last(self, joined, monkeypatch, caplog):
        kept, own = joined.join(), own_token()
        in_the_way = joined.data / f"{membership.FILE}.new"
        in_the_way.mkdir()
        monkeypatch.setattr(joining, "RENEW_S", 0.01)
        renewal = joining.Renewal(joined.data, kept)
        renewal.start()
        until(lambda: "token was not renewed" in caplog.text)
        in_the_way.rmdir()
        Token.objects.filter(pk=own.pk).update(expires=own.expires - 1_000_000)
        until(lambda: Token.objects.get(pk=own.pk).expires >= own.expires)
        renewal.stop()
        renewal._thread.join()
        assert membership.read(joined.data) == kept

    def test_a_cluster_that_moved_is_found_without_a_new_token_and_another_one_is_noticed(self, joined, server):
        before = joined.join()
        moved = joined.join(url=server, token="")
        assert moved == msgspec.structs.replace(before, url=server)
        assert joined.join(url="", token="") == moved
        membership.write(joined.data, msgspec.structs.replace(moved, cluster="another"))
        with pytest.raises(JoinError, match="another cluster"):
            joined.join()

    def test_nobody_joins_a_server_that_is_away_or_with_the_directory_of_a_cluster(self, joined):
        with pytest.raises(Unreachable):
            joined.join(url="http://127.0.0.1:9")
        assert membership.read(joined.data).name == ""
        (joined.data / "db.sqlite3").touch()
        with pytest.raises(JoinError, match="VOLCANO_UI_DATA"):
            joined.join()

    def test_a_server_that_answers_nothing_is_not_waited_for_again_and_again(self, monkeypatch):
        monkeypatch.setattr(client, "LONG_S", 0.01)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            asking = client.Client(membership.Server(f"http://127.0.0.1:{silent.getsockname()[1]}", "t", ""))
            for seconds in (0.05, 1000):
                monkeypatch.setattr(client, "ANSWER_S", seconds)
                with pytest.raises(Unreachable, match="takes too long"):
                    asking.ask("GET", "/version")

    def test_only_a_cluster_dismisses_a_node(self, monkeypatch):
        """What may stand before a server asks people for a password."""
        monkeypatch.setattr(client, "AGAIN_S", 0.0)
        status = b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401}'
        for body, error in ((b"<h1>401 Authorization Required</h1>", Unreachable), (status, Dismissed)):
            with answering(401, body) as (url, _), pytest.raises(error):
                client.Client(membership.Server(url, "t", "")).ask("GET", "/api/v1/pods")

    def test_a_watch_that_says_what_nobody_foresaw_is_begun_again(self):
        """As that of a server of another kind, whose pods have no uid."""
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "resourceVersion": "7"}}
        line = json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n"
        with answering(200, line) as (url, asked), selectors.DefaultSelector() as selector:
            watch = PodWatch(client.Client(membership.Server(url, "t", "")), NODE, selector)
            watch.position = 1
            watch.start()
            until(lambda: len(asked) > 1)
            watch.close()

    def test_nothing_gets_out_of_a_pod_that_does_not_on_the_clusters_own_machine(self, joined, attempts):
        mounts = joined.allowed().mounts
        with security_table.folder() as folder, contextlib.closing(Stage(folder / "stage", attempts, joined)) as stage:
            joined.shows_out = False
            joined.begin(mounts)
            (joined.data / "socket").unlink()
            os.link(joined.data / "run" / "agent.sock", joined.data / "socket")
            wall = joined.agent.machine.wall
            found = stage.reached(wall, breaking_out.make_setuid(folder))
        page = security_table.documented(security_table.USERS[bool(os.geteuid())])[breaking_out.name(wall)]
        assert {words for words, got in found.items() if got and not page[words]} == set()
