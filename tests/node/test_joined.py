"""A machine that is a node over the API: what its agent does there, with real processes and an API server beside it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apiserver.http import authentication
from cluster import access, clock
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
from node.joined import client, joining, membership
from node.joined.joining import JoinError
from node.joined.pod_watch import Gap, PodWatch
from proof.escapes import breaking_out, security_table
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import serving
from tests.node.driving import NODE
from tests.node.joined import JoinedNode

PLACES = ("d", "kube-system", "kube-node-lease")


@pytest.fixture
def server(transactional_db, redis_url, settings):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    store.write(*(Create(NAMESPACES, {"metadata": {"name": name}}) for name in PLACES))
    with serving(authentication.authenticate) as url:
        yield url
    nudge.client.cache_clear()


@pytest.fixture
def proxy(server):
    """What stands between the machine and the server, and can cut connections."""
    with CuttingProxy(int(server.rpartition(":")[2])) as standing:
        yield standing


@pytest.fixture
def joined(proxy):
    data = Path(tempfile.mkdtemp(prefix="volcano-"))
    machine = JoinedNode(data, f"http://127.0.0.1:{proxy.port}")
    yield machine
    machine.close()
    shutil.rmtree(data)


def put(kind, name, **parts):
    store.write(Create(kind, {"metadata": {"namespace": "d", "name": name}, **parts}))


def node():
    return store.get(NODES, "", NODE).read(Node)


def log_of(joined, uid):
    return b"".join(file.read_bytes() for file in sorted(joined.directory(uid).glob("log.*"))).decode()


def test_a_machine_announces_itself_and_keeps_its_lease(joined):
    joined.begin()
    assert {each.type: each.status for each in node().status.conditions}["Ready"] == "True"
    assert node().metadata.labels["kubernetes.io/hostname"] == NODE
    before = store.get(LEASES, "kube-node-lease", NODE).read(Lease).spec.renew_time
    joined.agent.machine.due = 0
    joined.agent.machine.beat()
    assert store.get(LEASES, "kube-node-lease", NODE).read(Lease).spec.renew_time > before


def test_a_machine_that_joins_asks_for_nothing_that_is_refused(joined):
    joined.begin()
    assert not AuditEntry.objects.filter(outcome="denied").exists()


def test_a_pod_runs_and_ends_as_on_the_clusters_own_machine(joined):
    joined.begin()
    uid = joined.shell("echo said; exit 3")
    status = joined.until_phase("Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert status["hostIP"] == "127.0.0.1"
    assert "said" in log_of(joined, uid)


def test_a_claims_files_are_found_by_its_uid_and_go_with_it(joined):
    joined.begin()
    uid = joined.claim()
    mounts = [{"name": "v", "mountPath": "/v"}]
    main = {"name": "main", "command": ["sh", "-c", "touch $VOLUME_V/f"], "volumeMounts": mounts}
    joined.submit(containers=[main], volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    joined.until_phase("Succeeded")
    assert (joined.files(uid) / "f").exists()
    os.utime(joined.files(uid).parent / "claim.json", (0, 0))
    joined.until(lambda: not joined.agent.pods)
    lookup = joined.agent.cluster.lookup
    claims.clean(joined.agent.layout, (), lookup)
    assert joined.files(uid).exists()
    store.write(Delete(CLAIMS, "d", "c"))
    claims.clean(joined.agent.layout, (), lookup)
    assert not joined.files(uid).exists()


def test_a_pod_gets_what_it_mentions_and_nothing_of_a_secret_is_kept_elsewhere(joined):
    put(CONFIGMAPS, "c", data={"k": "configured"})
    put(SECRETS, "s", data={"k": "aHVzaGh1c2g="})
    joined.begin()
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    uid = joined.submit(containers=[{"name": "main", "command": ["sh", "-c", "echo $A ${#B}"], "env": env}])
    joined.until_phase("Succeeded")
    assert "configured 8" in log_of(joined, uid)
    kept = [file for file in joined.data.rglob("*") if file.is_file() and b"hushhush" in file.read_bytes()]
    assert kept == []


def test_a_pod_waits_for_what_is_missing_and_starts_when_it_comes(joined):
    joined.begin()
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]
    joined.submit(containers=[{"name": "main", "command": ["true"], "env": env}])
    joined.until(lambda: 'configmap "c" not found' in str(joined.status()))
    put(CONFIGMAPS, "c", data={"k": "v"})
    joined.until_phase("Succeeded")


@pytest.mark.parametrize("after", ["nothing", "a crash"])
def test_mounted_files_follow_their_object(joined, after):
    put(CONFIGMAPS, "c", data={"k": "old"})
    joined.begin()
    volumes = [{"name": "v", "configMap": {"name": "c"}}]
    mounts = [{"name": "v", "mountPath": "/tmp/v"}]
    script = f'until [ -e {joined.out}/go ]; do sleep 0.01; done; cat "$VOLUME_V/k"'
    uid = joined.submit(
        containers=[{"name": "main", "command": ["sh", "-c", script], "volumeMounts": mounts}], volumes=volumes
    )
    joined.until_phase("Running")
    if after == "a crash":
        joined.crash()
        joined.again()
    store.write(Patch(CONFIGMAPS, "d", "c", {"data": {"k": "new"}}))
    joined.agent.cluster.lookup.look()  # what its thread does every ten seconds
    file = next(joined.data.glob(f"node/pods/{uid}/_volumes/v/..data/k"), None)
    joined.until(lambda: next(joined.data.glob(f"node/pods/{uid}/_volumes/v/..data/k")).read_text() == "new")
    assert file is not None
    joined.let_go()
    joined.until_phase("Succeeded")
    assert "new" in log_of(joined, uid)


def test_a_deleted_pod_ends_and_goes(joined):
    joined.begin()
    joined.shell("trap 'exit 0' TERM; while :; do sleep 0.05; done")
    joined.until_phase("Running")
    joined.delete()
    joined.until(lambda: joined.pod() is None)
    joined.until(lambda: not joined.shims())


def test_a_pod_that_is_removed_by_force_ends(joined):
    joined.begin()
    joined.shell("while :; do sleep 0.05; done")
    joined.until_phase("Running")
    store.write(Delete(PODS, "d", "p", grace=0))
    joined.until(lambda: not joined.shims())


def test_a_killed_agent_is_followed_by_one_that_adopts_its_pods(joined):
    joined.begin()
    uid = joined.held("exit 5")
    joined.until_phase("Running")
    before = joined.shims()
    joined.crash()
    joined.again()
    assert joined.shims() == before
    joined.let_go()
    status = joined.until_phase("Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 5
    assert status["containerStatuses"][0]["restartCount"] == 0
    assert joined.directory(uid).exists()


def test_a_container_that_fails_again_and_again_is_told_of_once_with_a_count(joined):
    joined.begin()
    joined.shell("exit 1", restartPolicy="Always")
    joined.until(lambda: joined.status().get("containerStatuses", [{}])[0].get("restartCount", 0) >= 2)
    joined.until(
        lambda: store.find(EVENTS, namespace="d") and store.find(EVENTS, namespace="d")[0].read(Event).times >= 2
    )
    assert [each.read(Event).reason for each in store.find(EVENTS, namespace="d")] == ["BackOff"]


def test_a_killed_connection_loses_nothing(joined, proxy):
    """Connections are cut amid requests, answers and the watch; in the end the store knows what the processes did."""
    joined.begin()
    proxy.cutting = True
    names = [f"p{number}" for number in range(12)]
    for number, name in enumerate(names):
        joined.shell(f"exit {number}", name)
    joined.until(
        lambda: proxy.cuts >= 5 or all(joined.status(name).get("phase") in ("Failed", "Succeeded") for name in names)
    )
    proxy.cutting = False
    for number, name in enumerate(names):
        joined.until(lambda name=name: joined.status(name).get("phase") in ("Failed", "Succeeded"))
        ended = joined.state(name)["terminated"]
        assert ended["exitCode"] == number
        assert joined.status(name)["containerStatuses"][0]["restartCount"] == 0
    assert len(list(joined.data.glob("node/pods/*/main/*/claim"))) == len(names)


def test_where_history_does_not_reach_back_the_pods_are_read_anew(joined, proxy, settings, monkeypatch):
    """As after a long sleep of the machine: the watch was cut, and what happened meanwhile is forgotten."""
    joined.begin()
    for name in ("stays", "goes"):
        joined.shell("while :; do sleep 0.05; done", name)
    for name in ("stays", "goes"):
        joined.until_phase("Running", name)
    watch = joined.agent.listener
    asked = []
    monkeypatch.setattr(watch, "tell", lambda heard, tell=watch.tell: (asked.append(heard), tell(heard)))
    with monkeypatch.context() as asleep:
        asleep.setattr(watch, "_take", lambda line: None)
        joined.delete("goes", grace=0)
        forget_history(settings)
        watch._version = "1"
        proxy.cutting = True
        put(CONFIGMAPS, "news", data={})
        joined.annotate("stays")  # something is told on the connection, and cuts it
        joined.until(lambda: Gap.GAP in asked)
    proxy.cutting = False
    joined.until(lambda: len(joined.shims()) == 1)
    joined.delete("stays", grace=0)
    joined.until(lambda: not joined.shims())


def forget_history(settings):
    """Have the log forget all that is superseded."""
    settings.HISTORY_HOURS = 0
    retention.run(clock.monotonic() + HANG_S, now=clock.milliseconds() + 3_600_000)


def test_a_revoked_token_ends_its_node_and_what_runs_there(joined):
    joined.begin()
    joined.shell("while :; do sleep 0.05; done")
    joined.until_phase("Running")
    own = Token.objects.get(node=NODE, joins=False)
    tokens.revoke(access.CONSOLE, own.pk)
    joined.until(joined.revoked)
    joined.agent.stop_all()
    joined.until(lambda: joined.agent.wind_down() or joined.agent.is_done)
    assert not joined.shims()


def test_a_node_that_was_revoked_while_its_agent_was_away_ends_what_it_had(joined):
    joined.begin()
    joined.shell("while :; do sleep 0.05; done")
    joined.until_phase("Running")
    kept = membership.read(joined.data)
    joined.crash()
    tokens.revoke(access.CONSOLE, Token.objects.get(node=NODE, joins=False).pk)
    with pytest.raises(Dismissed):
        joined.join()
    assert membership.read(joined.data) == kept


def test_a_new_token_brings_a_revoked_machine_back_with_its_pods(joined):
    joined.begin()
    joined.held("exit 4")
    joined.until_phase("Running")
    joined.crash()
    tokens.revoke(access.CONSOLE, Token.objects.get(node=NODE, joins=False).pk)
    store.write(Patch(NODES, "", NODE, {"status": {"conditions": []}}, "status"))
    secret = invitations.invite(access.CONSOLE, NODE, 3600).secret
    wish = joined.wish._replace(token=secret)
    kept = membership.read(joined.data)
    joining.join(joined.data, joining.again(kept, wish), NODE)
    joined.again()
    joined.let_go()
    assert joined.until_phase("Failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4


def test_a_node_that_runs_for_long_has_its_token_renewed(joined, monkeypatch):
    kept = joined.join()
    own = Token.objects.get(node=NODE, joins=False)
    Token.objects.filter(pk=own.pk).update(expires=own.expires - 1_000_000)
    monkeypatch.setattr(joining, "RENEW_S", 0.01)
    renewal = joining.Renewal(joined.data, kept)
    renewal.start()
    until(lambda: Token.objects.get(pk=own.pk).expires >= own.expires)
    renewal.stop()
    renewal._thread.join()
    assert membership.read(joined.data) == kept


def test_a_renewal_that_cannot_be_kept_is_not_the_last(joined, monkeypatch, caplog):
    kept = joined.join()
    own = Token.objects.get(node=NODE, joins=False)
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


def test_another_cluster_behind_the_address_is_noticed(joined):
    joined.join()
    found = membership.read(joined.data)
    membership.write(joined.data, membership.Membership(**{**_fields(found), "cluster": "another"}))
    with pytest.raises(JoinError, match="another cluster"):
        joined.join()


def test_a_cluster_that_moved_is_found_at_its_new_address_without_a_new_token(joined, server):
    before = joined.join()
    moved = joined.join(url=server, token="")
    assert moved == membership.Membership(**{**_fields(before), "url": server})
    assert joined.join(url="", token="") == moved


def test_the_directory_of_a_cluster_is_not_taken(joined):
    (joined.data / "db.sqlite3").touch()
    with pytest.raises(JoinError, match="VOLCANO_UI_DATA"):
        joined.join()


def test_a_server_that_is_away_is_said_so(joined, server):
    with pytest.raises(Unreachable):
        joined.join(url="http://127.0.0.1:9")
    assert membership.read(joined.data).name == ""


def test_a_server_that_answers_nothing_is_not_waited_for_again_and_again(monkeypatch):
    monkeypatch.setattr(client, "ANSWER_S", 0.05)
    monkeypatch.setattr(client, "LONG_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asking = client.Client(membership.Server(f"http://127.0.0.1:{silent.getsockname()[1]}", "t", ""))
        with pytest.raises(Unreachable, match="takes too long"):
            asking.ask("GET", "/version")
        monkeypatch.setattr(client, "ANSWER_S", 1000)
        with pytest.raises(Unreachable, match="takes too long"):
            asking.ask("GET", "/version")


def test_only_a_cluster_dismisses_a_node(monkeypatch):
    class Gate(BaseHTTPRequestHandler):
        """What may stand before a server and ask people for a password."""

        said = b"<h1>401 Authorization Required</h1>"

        def do_GET(self):
            self.send_response(401)
            self.send_header("Content-Length", str(len(self.said)))
            self.end_headers()
            self.wfile.write(self.said)

        def log_message(self, *_):
            pass

    monkeypatch.setattr(client, "AGAIN_S", 0.0)
    with _standing_in(Gate) as url:
        asking = client.Client(membership.Server(url, "t", ""))
        with pytest.raises(Unreachable, match="somebody else answers"):
            asking.ask("GET", "/api/v1/pods")
        Gate.said = b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401}'
        with pytest.raises(Dismissed):
            asking.ask("GET", "/api/v1/pods")


def test_a_watch_that_says_what_nobody_foresaw_is_begun_again():
    asked = []

    class Odd(BaseHTTPRequestHandler):
        """A server of another kind, whose pods have no uid."""

        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "resourceVersion": "7"}}
            self.wfile.write(json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n")

        def log_message(self, *_):
            pass

    with _standing_in(Odd) as url, selectors.DefaultSelector() as selector:
        watch = PodWatch(client.Client(membership.Server(url, "t", "")), NODE, selector)
        watch.position = 1
        watch.start()
        until(lambda: len(asked) > 1)
        watch.close()


@contextlib.contextmanager
def _standing_in(handler):
    """Serve what a handler says in a server's place; give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
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
        main = {
            "name": "main", "command": [*argv], "volumeMounts": [{"name": "tools", "mountPath": str(self.tools)}],
            "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
        }  # fmt: skip
        main["env"].append({"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}})
        tools = {"name": "tools", "configMap": {"name": "tools"}}
        directory = self.joined.directory(self.joined.submit(whose.name, containers=[main], volumes=[tools]))
        self.joined.until((directory / "started.json").exists, lambda: self.joined.status(whose.name))
        return directory


def test_nothing_gets_out_of_a_pod_that_does_not_on_the_clusters_own_machine(joined, attempts):
    mounts = joined.allowed().mounts
    with security_table.folder() as folder, contextlib.closing(Stage(folder / "stage", attempts, joined)) as stage:
        joined.shows_out = False
        joined.begin(mounts)
        (joined.data / "socket").unlink()
        os.link(joined.data / "run" / "agent.sock", joined.data / "socket")
        wall = joined.agent.machine.wall
        found = stage.reached(wall, breaking_out.make_setuid(folder))
    told = security_table.documented(security_table.USERS[bool(os.geteuid())])[breaking_out.name(wall)]
    assert {words for words, got in found.items() if got and not told[words]} == set()


def test_what_is_kept_is_its_owners_alone(joined):
    joined.join()
    assert (joined.data / membership.FILE).stat().st_mode & 0o777 == 0o600


def test_a_wrong_clock_is_told(joined, caplog, monkeypatch):
    monkeypatch.setattr(joining, "SKEW_MS", -1)
    joined.join()
    assert "clock" in caplog.text


def _fields(found):
    return {name: getattr(found, name) for name in found.__struct_fields__}
