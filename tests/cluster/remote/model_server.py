"""A model of an API server: what a list, a watch and a write are, and every way in which they fail; and a mirror that hears of it.

It stands where `cluster.remote.connection.Connection` does. Its state is a history; a list is one state of it, a watch what
came after one. All its objects are in the namespace d.
"""

import json
from collections import Counter
from contextlib import contextmanager

from cluster import models
from cluster.remote import recorder
from cluster.remote.http.request import Unreachable
from cluster.remote.mirroring.reflection import KindStatus
from cluster.remote.mirroring.reflector import Reflector
from kube import patch, resources
from kube.errors import AlreadyExists, Conflict, Expired, Forbidden, NotFound
from proof.harness.answers import REFUSALS, Answer, met

PLURALS = frozenset(kind.plural for kind in resources.ALL)
MIRRORED = (models.Object, models.Change, models.Log, models.MirroredKind, models.MirroredCluster)
OWN = (models.Outgoing, models.Cursor, models.Timer, models.Refusal)


def forget(*tables):
    for table in tables:
        table.objects.all().delete()


class Mirror:
    """Reflectors that go on from what is stored, as in a new process."""

    def __init__(self, server, kinds):
        standings = recorder.statuses(kinds)
        self.updates = []
        self.reflectors = {
            kind.plural: Reflector(server, kind, standings.get(kind.id, KindStatus()), self.updates.append, wait=lambda _: None)
            for kind in kinds
        }  # fmt: skip

    def listen(self, *plurals):
        for plural in plurals or self.reflectors:
            self.reflectors[plural].turn()

    def record(self, part=None):
        recorder.record(self.updates[:part])
        del self.updates[:part]

    def hear(self, *plurals):
        self.listen(*plurals)
        self.record()


class ModelServer:
    """Objects by kind and name, and how they came to be.

    Of reading, what comes next of an answer may be cut short by `cut_after` lines or pages. Of writing, `next_answers` says
    what happens to the requests that come, one after the other; all is well when there are none left.
    """

    page = 1000

    def __init__(self):
        self.version = self.forgotten = 100  # watches from before the second are refused
        self.uids = 0
        self.objects = {}  # (plural, name) → object
        self.history = []  # (version, plural, verb, object, what it was before)
        self.reachable = self.readable = True
        self.cut_after = None
        self.next_answers = []
        self.deleted = []  # uids for which a deletion was accepted, in order
        self.refused = Counter()  # plural → how many requests were refused, or failed

    def put(self, plural, obj):
        key = plural, obj["metadata"]["name"]
        old = self.objects.get(key)
        self.version += 1
        self.uids += old is None
        uid = old["metadata"]["uid"] if old else f"uid-{self.uids}"
        obj = {**obj, "metadata": {**obj["metadata"], "uid": uid, "resourceVersion": str(self.version)}}
        self.objects[key] = obj
        self.history.append((self.version, plural, "MODIFIED" if old else "ADDED", obj, old))
        return obj

    def remove(self, plural, name):
        old = self.objects.pop((plural, name))
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self.history.append((self.version, plural, "DELETED", last, old))
        return last

    def all(self, plural):
        return {name: obj for (kind, name), obj in sorted(self.objects.items()) if kind == plural}

    def end_pods(self):
        """Let what is being deleted go, as nodes do."""
        for name, one in self.all("pods").items():
            if "deletionTimestamp" in one["metadata"]:
                self.remove("pods", name)

    def restore(self, objects, version):
        """Go back to an older state, as from a backup, after which other things happen under this version and the next."""
        self.objects, self.history = dict(objects), []
        self.version = self.forgotten = version

    # Reading.

    def request(self, method, path, *, query=None, body=None, media_type="", answer_s=0.0):
        parts = path.split("/")
        if method == "GET" and parts[-1] in PLURALS:
            return _json(self._list(parts[-1], query or {}))
        answer = self.next_answers.pop(0) if self.next_answers else Answer.DONE
        plural = next(part for part in reversed(parts) if part in PLURALS)
        self.refused[plural] += answer in REFUSALS
        rest = parts[parts.index(plural) + 1 :]
        return _json(met(answer, lambda: self._write(method, plural, rest, json.loads(_json(body)), media_type)))

    def _list(self, plural, query):
        """Answer page by page; each page is of the state in which the list began."""
        self._check()
        version, start = self.version, 0
        if "continue" in query:
            version, start = map(int, query["continue"].split("/"))
            if version < self.forgotten:
                raise Expired("The provided continue parameter is too old.")
            self._cut()
        objects = self.all(plural)
        for _, kind, _, obj, before in reversed([entry for entry in self.history if entry[0] > version]):
            if kind == plural:
                objects.pop(obj["metadata"]["name"], None)
                objects |= {before["metadata"]["name"]: before} if before else {}
        end = start + self.page
        page = [obj for _, obj in sorted(objects.items())][start:end]
        more = {"continue": f"{version}/{end}"} if end < len(objects) else {}
        return {"metadata": {"resourceVersion": str(version), **more}, "items": page}

    @contextmanager
    def stream(self, path, *, query, silence_s):
        """Answer a watch with all that is known after its version, a bookmark, and its end."""
        self._check()
        yield self._lines(path.split("/")[-1], int(query["resourceVersion"]))

    def _lines(self, plural, after):
        if after < self.forgotten:
            yield _json({"type": "ERROR", "object": Expired("too old resource version").status()})
            return
        for version, kind, verb, obj, _ in self.history:
            if kind == plural and version > after:
                self._cut()
                yield _json({"type": verb, "object": obj})
        self._cut()
        yield _json({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})

    def _check(self):
        if not self.reachable:
            raise Unreachable("https://model", "connection refused")
        if not self.readable:
            raise Forbidden("not for you")

    def _cut(self):
        if self.cut_after is not None:
            self.cut_after -= 1
            if self.cut_after < 0:
                self.cut_after = None
                raise Unreachable("https://model", "it closed the connection", sent=True)

    # Writing.

    def _write(self, method, plural, rest, body, media_type):
        name = rest[0] if rest else body["metadata"]["name"]
        obj = self.objects.get((plural, name))
        if method == "POST" and not rest:
            if obj:
                raise AlreadyExists.of(plural, name)
            return self.put(plural, body)
        if obj is None:
            raise NotFound.of(plural, name)
        match method, rest[1:]:
            case "GET", []:
                return obj
            case "DELETE", []:
                return self._delete(plural, obj, body)
            case "POST", ["binding"]:
                return self._bind(obj, body)
            case "PATCH", _:
                return self._patch(plural, obj, body, media_type)
        raise AssertionError((method, rest))

    def _delete(self, plural, obj, options):
        metadata = obj["metadata"]
        if options.get("preconditions", {}).get("uid", metadata["uid"]) != metadata["uid"]:
            raise Conflict.of(plural, metadata["name"], "Precondition failed: UID")
        if plural == "pods" and (obj.get("spec") or {}).get("nodeName"):
            if "deletionTimestamp" in metadata:
                return obj
            self.deleted.append(metadata["uid"])
            return self.put(plural, {**obj, "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        if metadata["uid"] not in self.deleted:
            self.deleted.append(metadata["uid"])
        gone = self.remove(plural, metadata["name"])
        return gone if plural == "pods" else {"kind": "Status", "status": "Success"}  # as Kubernetes does

    def _bind(self, pod, body):
        metadata = pod["metadata"]
        if body["metadata"]["uid"] != metadata["uid"]:
            raise Conflict.of("pods/binding", metadata["name"], "another uid")
        if pod["spec"].get("nodeName") or "deletionTimestamp" in metadata:
            raise Conflict.of("pods/binding", metadata["name"], "already assigned")
        self.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": body["target"]["name"]}})
        return {"kind": "Status", "status": "Success"}

    def _patch(self, plural, obj, body, media_type):
        if media_type.startswith("application/json-patch"):
            new = patch.json_patch(obj, body)
        elif body["metadata"].get("uid", obj["metadata"]["uid"]) != obj["metadata"]["uid"]:
            raise Conflict.of(plural, obj["metadata"]["name"], "another uid")
        else:
            new = patch.merge(obj, body)
        return obj if new == obj else self.put(plural, new)


def held(pods, names):
    there = [(name, pods[name]) for name in names if name in pods]
    return [name for name, one in there if "nodeName" in one["spec"] and "deletionTimestamp" not in one["metadata"]]


def _json(value):
    return json.dumps(value).encode()
