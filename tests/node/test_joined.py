"""A machine that is a node over the API: the rules, and what its agent does beside a real API server."""

import contextlib
import hashlib
import json
import os
import selectors
import socket
import ssl
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.http import authentication
from cluster import access, clock, fingerprint, issuing
from cluster.access import joining as invitations
from cluster.access import tokens
from cluster.models import AuditEntry, Token
from cluster.remote.http.request import Unreachable
from cluster.remote.mirroring import reflection
from cluster.runtime import nudge, retention
from cluster.store import Create, Delete, Patch, store
from kube.kinds.core import Event, Lease, Node
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NAMESPACES, NODES, PODS, SECRETS
from node import membership
from node.containers import walls
from node.joined import addresses, client, joining, requests
from node.joined.joining import JoinError
from node.joined.pod_watch import Gap, PodWatch
from node.pods.cluster import Dismissed
from node.volumes import claims
from proof.harness import proxy as proxying
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import serving
from tests.node.driving import NODE, JoinedNode, answering, change, env, mount, put, short_folder
from tests.tables import cases

POD = "/api/v1/namespaces/d/pods/p"
EVENT = {"metadata": {"namespace": "d", "generateName": "e"}}


class TestRules:
    @pytest.mark.parametrize("url", [
        "https://cluster.example:8443", "https://192.0.2.7", "https://[2001:db8::1]:8443",
        "http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080",
    ])  # fmt: skip
    def test_an_api_server_is_reached_over_tls_or_on_this_machine(self, url):
        assert addresses.checked(url) == addresses.checked(f"{url}/") == url

    @pytest.mark.parametrize(("words", "url"), [
        *(("not encrypted", f"http://{host}") for host in ("cluster.example:80", "192.0.2.7", "127.0.0.1.example.org")),
        *(("https://host:8443", f"https://{rest}") for rest in ("", "h:0", "h:99999", "h/path", "u:p@h", "h?x=1")),
        *(("https://host:8443", url) for url in ("cluster.example:8443", "ftp://host", "")),
    ])  # fmt: skip
    def test_other_addresses_are_refused_with_the_remedy(self, words, url):
        with pytest.raises(ValueError, match=words):
            addresses.checked(url)

    @given(st.text(max_size=40))
    def test_any_text_is_an_address_or_refused(self, text):
        with contextlib.suppress(ValueError):
            found = addresses.checked(text)
            assert found.startswith(("http://", "https://"))
            assert addresses.checked(found) == found

    def test_a_fingerprint_is_over_what_certificates_say(self):
        made = issuing.authority(datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=10))
        text = issuing.certificate_text(made[0]).decode()
        wanted = f"sha256:{hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()}"
        for each in (text, text.replace("\n", "\r\n"), f"some words\n{text}\n"):
            assert fingerprint.of(each) == wanted
        assert fingerprint.FORM.fullmatch(wanted)
        assert fingerprint.of(text + text) != wanted

    @given(st.text(max_size=60))
    def test_what_holds_no_certificate_has_no_fingerprint(self, text):
        assert fingerprint.of(text) == ""

    @cases("write, line, body", {
        "the status of a pod, pinned": (
            Patch(PODS, "d", "p", {"status": {"phase": "Running", "reason": None}}, "status", uid="u", version="7"),
            f"PATCH {POD}/status",
            {"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"phase": "Running", "reason": None}},
        ),
        "a lease": (
            Patch(LEASES, "l", "n", {"spec": {"renewTime": "t"}}),
            "PATCH /apis/coordination.k8s.io/v1/namespaces/l/leases/n", {"spec": {"renewTime": "t"}, "metadata": {}},
        ),
        "an event": (Create(EVENTS, EVENT), "POST /api/v1/namespaces/d/events", {"apiVersion": "v1", "kind": "Event", **EVENT}),
        "a pod that goes": (
            Delete(PODS, "d", "p", uid="u", grace=0), f"DELETE {POD}",
            {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
             "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0},
        ),
    })  # fmt: skip
    def test_a_write_is_one_request_that_says_the_same(self, write, line, body):
        request = requests.of(write)
        assert (f"{request.method} {request.path}", request.body) == (line, body)


PLACES = ("d", "kube-system", "kube-node-lease")


@pytest.fixture
def joined(proxy):
    with short_folder() as data, contextlib.closing(JoinedNode(data, f"http://127.0.0.1:{proxy.port}")) as machine:
        yield machine


def own_token():
    return Token.objects.get(node=NODE, joins=False)


def renewed():
    return store.get(LEASES, "kube-node-lease", NODE).read(Lease).spec.renew_time


def client_of(server):
    return client.Client(membership.Server(f"http://127.0.0.1:{server.port}", "t", ""))


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
        with CuttingProxy(int(server.rpartition(":")[2])) as instance:
            yield instance

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
        put(SECRETS, "s", data={"k": "aHVzaGh1c2g="})
        sources = {"configMapKeyRef": {"name": "c", "key": "k"}}, {"secretKeyRef": {"name": "s", "key": "k"}}
        uid = begun.shell("echo $A ${#B}", main={"env": env(A=sources[0], B=sources[1])})
        begun.until_waits('configmap "c" not found')
        put(CONFIGMAPS, "c", data={"k": "configured"})
        begun.until_phase("Succeeded")
        assert begun.printed(uid) == "configured 8\n"
        assert not [file for file in begun.data.rglob("*") if file.is_file() and b"hushhush" in file.read_bytes()]

    def test_a_killed_agent_is_followed_by_one_that_adopts_its_pods_whose_files_follow_their_object(self, begun):
        put(CONFIGMAPS, "c", data={"k": "old"})
        mounts, volumes = {"volumeMounts": [mount("v", "/tmp/v")]}, [{"name": "v", "configMap": {"name": "c"}}]
        uid = begun.held('cat "$VOLUME_V/k"; exit 5', main=mounts, volumes=volumes, until="Running")
        before = begun.shims()
        file = begun.data / f"node/pods/{uid}/_volumes/v/..data/k"
        for text in ("new", "newer"):
            change(CONFIGMAPS, "c", data={"k": text})
            begun.agent.cluster.lookup.check()  # what its thread does every ten seconds
            begun.until(lambda text=text: file.read_text() == text)
            begun.again()
        assert begun.shims() == before
        begun.let_go()
        assert begun.until_end()["exitCode"] == 5
        assert begun.status()["containerStatuses"][0]["restartCount"] == 0
        assert begun.printed(uid) == "newer"

    def test_a_container_that_fails_again_and_again_is_told_of_once_with_a_count(self, begun, monkeypatch):
        monkeypatch.setattr("node.rules.lifecycle.BACK_OFF_S", 0.5)
        uid = begun.shell("exit 1", restartPolicy="Always")
        begun.until(lambda: [each.read(Event).times >= 2 for each in store.find(EVENTS, owner=uid)] == [True])
        assert [reason for reason, _ in begun.events_of(uid)] == ["BackOff"]

    def test_a_killed_connection_loses_nothing(self, begun, proxy):
        """Connections are cut amid requests, answers and the watch; the store knows in the end what came of it."""
        proxy.cutting = True
        names = [f"p{number}" for number in range(12)]
        for number, name in enumerate(names):
            begun.shell(f"exit {number}", name)
        begun.until(lambda: proxy.cuts >= 5 or all("terminated" in str(begun.status(name)) for name in names))
        proxy.cutting = False
        for number, name in enumerate(names):
            assert begun.until_end(name)["exitCode"] == number
            assert begun.status(name)["containerStatuses"][0]["restartCount"] == 0
        assert len(list(begun.data.glob("node/pods/*/main/*/claim"))) == len(names)

    def test_where_history_does_not_reach_back_the_pods_are_read_anew(self, begun, proxy, settings, monkeypatch):
        """As after a long sleep of the machine: the watch was cut, and what happened meanwhile is forgotten."""
        for name in ("stays", "goes"):
            begun.shell("while :; do sleep 0.05; done", name, until="Running")
        watch, received = begun.agent.listener, []
        monkeypatch.setattr(reflection, "LONGEST_WAIT_S", 0.1)
        monkeypatch.setattr(proxying, "QUIET_S", 0.0)  # as little may pass between what is told
        monkeypatch.setattr(watch, "put", lambda item, put=watch.put: (received.append(item), put(item)))
        with monkeypatch.context() as asleep:
            asleep.setattr(watch, "_on_line", lambda line: None)
            begun.delete("goes", grace=0)
            settings.HISTORY_HOURS = 0
            retention.run(clock.monotonic() + HANG_S, now=clock.milliseconds() + 3_600_000)
            watch._version = "1"
            proxy.cutting = True
            put(CONFIGMAPS, "news", data={})
            begun.annotate("stays")  # something is told on the connection, and cuts it
            begun.until(lambda: Gap.GAP in received)
        proxy.cutting = False
        begun.until(lambda: len(begun.shims()) == 1)
        begun.delete("stays", grace=0)
        begun.until(lambda: not begun.shims())

    def test_a_node_that_was_revoked_while_its_agent_was_away_keeps_its_pods_for_a_new_token(self, begun):
        begun.held("exit 4", until="Running")
        stored = membership.read(begun.data)
        begun.crash()
        tokens.revoke(access.CONSOLE, own_token().pk)
        with pytest.raises(Dismissed):
            begun.join()
        assert membership.read(begun.data) == stored
        store.write(Patch(NODES, "", NODE, {"status": {"conditions": []}}, "status"))
        wish = begun.wish._replace(token=invitations.invite(access.CONSOLE, NODE, 3600).secret)
        joining.join(begun.data, joining.with_token(stored, wish), NODE)
        begun.again()
        begun.let_go()
        assert begun.until_end()["exitCode"] == 4

    def test_a_renewal_that_cannot_be_kept_is_not_the_last(self, joined, monkeypatch, caplog):
        stored, own = joined.join(), own_token()
        in_the_way = joined.data / f"{membership.FILE}.new"
        in_the_way.mkdir()
        monkeypatch.setattr(joining, "RENEW_S", 0.01)
        renewal = joining.Renewal(joined.data, stored)
        renewal.start()
        until(lambda: "token was not renewed" in caplog.text)
        in_the_way.rmdir()
        Token.objects.filter(pk=own.pk).update(expires=own.expires - 1_000_000)
        until(lambda: Token.objects.get(pk=own.pk).expires >= own.expires)
        renewal.stop()
        renewal._thread.join()
        assert membership.read(joined.data) == stored

    def test_a_cluster_that_moved_is_found_without_a_new_token_and_others_are_refused(self, joined, server):
        with pytest.raises(Unreachable):
            joined.join(url="http://127.0.0.1:9")
        assert membership.read(joined.data).name == ""
        before = joined.join()
        moved = joined.join(url=server, token="")
        assert moved == msgspec.structs.replace(before, url=server)
        assert joined.join(url="", token="") == moved
        membership.write(joined.data, msgspec.structs.replace(moved, cluster="another"))
        with pytest.raises(JoinError, match="another cluster"):
            joined.join()
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
                    asking.call("GET", "/version")

    def test_only_a_cluster_dismisses_a_node(self, monkeypatch):
        """What may stand before a server asks people for a password."""
        monkeypatch.setattr(client, "AGAIN_S", 0.0)
        status = b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401}'
        for body, error in ((b"<h1>401 Authorization Required</h1>", Unreachable), (status, Dismissed)):
            with answering(body, code=401) as server, pytest.raises(error):
                client_of(server).call("GET", "/api/v1/pods")

    def test_a_watch_that_says_what_nobody_foresaw_is_begun_again(self):
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "resourceVersion": "7"}}
        line = json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n"
        with answering(line) as server, selectors.DefaultSelector() as selector:
            watch = PodWatch(client_of(server), NODE, selector)
            watch.position = 1
            watch.start()
            until(lambda: len(server.asked) > 1)
            watch.close()

    def test_what_the_agent_keeps_is_out_of_reach_of_its_pods(self, joined):
        if not walls.holds(joined.allowed()):
            pytest.skip("this machine has no wall")
        joined.shows_out = False
        joined.begin(joined.allowed().mounts)
        paths = [joined.data / membership.FILE, joined.data / "run" / "node-key", joined.data / "node"]
        assert all(each.exists() for each in paths)
        look = "for each in {}; do ls $each/* > /dev/null 2>&1 || cat $each > /dev/null 2>&1 && echo $each; done; true"
        assert joined.ran(look.format(" ".join(map(str, paths)))) == []
