"""Changing an object of which the mirror has an older version than the cluster."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cluster import access
from cluster.remote import changing, creation, preview, recorder, server
from cluster.remote.reflection import News, Step
from cluster.store import store
from cluster.writes import Mirror
from kube.errors import AlreadyExists, Conflict
from kube.resources import CONFIGMAPS, JOBS
from tests.cluster.remote.answering import Quiet
from tests.cluster.remote.log_server import connected

pytestmark = pytest.mark.django_db


class Handler(Quiet, BaseHTTPRequestHandler):
    """One object, which is replaced only at its newest version, and whose name is taken."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.say(200, self.server.object)

    def do_PUT(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        newest = self.server.object["metadata"]["resourceVersion"]
        if wanted["metadata"]["resourceVersion"] != newest:
            self.say(409, {"kind": "Status", "reason": "Conflict", "message": "changed", "code": 409})
            return
        made = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": str(int(newest) + 1)}}
        if "dryRun" not in self.path:
            self.server.object = made
        self.say(200, made)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.say(409, {"kind": "Status", "reason": "AlreadyExists", "message": "taken", "code": 409})


def config(version, text, uid="uid-a"):
    metadata = {"name": "a", "namespace": "d", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


@pytest.fixture
def api(tmp_path, settings, monkeypatch):
    """A cluster in which the object has been changed since it was mirrored."""
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    running.object = config("9", "of another")
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    settings.WAY, settings.IMPERSONATE = "beside", False
    monkeypatch.setattr(server, "_permits", None)
    with connected(running, tmp_path, settings):
        recorder.claim("https://one")
        recorder.record([News(JOBS, Step.LISTED, version="1")])
        store.write(Mirror(CONFIGMAPS, config("8", "mirrored")))
        yield running


def mirrored():
    return store.get(CONFIGMAPS, "d", "a").object["data"]["text"]


def test_refusal_for_an_old_version_brings_the_newest_one_for_the_next_try(api):
    with pytest.raises(Conflict):
        changing.update(access.SYSTEM, CONFIGMAPS, config("8", "mine"))
    assert mirrored() == "of another"
    newest = store.get(CONFIGMAPS, "d", "a").version
    changing.update(access.SYSTEM, CONFIGMAPS, config(newest, "mine"))
    assert (mirrored(), api.object["data"]["text"]) == ("mine", "mine")


def test_another_object_of_the_name_is_left_to_the_watch(api):
    api.object = config("9", "of another", uid="uid-b")
    with pytest.raises(Conflict):
        changing.update(access.SYSTEM, CONFIGMAPS, config("8", "mine"))
    assert mirrored() == "mirrored"


def test_creation_that_is_asked_for_twice_finds_what_the_first_has_made(api):
    store.write(Mirror(CONFIGMAPS, config("8", "mirrored"), deleted=True))
    with pytest.raises(AlreadyExists):
        creation.create(access.SYSTEM, CONFIGMAPS, config("", "mine"))
    assert mirrored() == "of another"


def test_holder_of_a_name_that_is_known_is_left_to_the_watch(api):
    with pytest.raises(AlreadyExists):
        creation.create(access.SYSTEM, CONFIGMAPS, config("", "mine"))
    assert mirrored() == "mirrored"


def test_review_tells_what_is_wrong_with_the_object_and_not_that_it_changes_meanwhile(api):
    found = preview.review(access.SYSTEM, CONFIGMAPS, config("8", "mine"), update=True)
    assert (found.causes, found.warnings) == ((), ())
    assert api.object["data"]["text"] == "of another"
