"""A model of an API server that is written to: what a request does, and every way in which its answer can be missed.

It stands where `cluster.remote.connection.Connection` does. `next_answers` says what happens to the requests that
come, one after the other: an `Answer` each, and all is well when there are none left.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager

from kube import patch, resources
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.resources import PODS
from proof.modes.answers import REFUSALS, Answer, met


class WriteServer:
    """Objects by kind and name, all in the namespace d, and what was done to them."""

    def __init__(self):
        self.version = 100
        self.uids = 0
        self.objects = {}  # (plural, name) → object
        self.history = []  # (version, plural, verb, object)
        self.next_answers = []
        self.created = []  # uids in their order
        self.deleted = []  # what a deletion was accepted for, in order
        self.refused = Counter()  # plural → how many requests were refused, or failed

    def put(self, plural, obj):
        """Create or replace an object, as others do; return it."""
        key = plural, obj["metadata"]["name"]
        old = self.objects.get(key)
        self.version += 1
        if old is None:
            self.uids += 1
        uid = old["metadata"]["uid"] if old else f"uid-{self.uids}"
        metadata = {**obj["metadata"], "uid": uid, "resourceVersion": str(self.version)}
        self.objects[key] = obj = {**obj, "metadata": metadata}
        self.history.append((self.version, plural, "MODIFIED" if old else "ADDED", obj))
        return obj

    def remove(self, plural, name):
        """Let an object be gone."""
        old = self.objects.pop((plural, name))
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self.history.append((self.version, plural, "DELETED", last))
        return last

    def all(self, plural):
        """Return the objects of a kind by name."""
        return {name: obj for (kind, name), obj in sorted(self.objects.items()) if kind == plural}

    # What is asked.

    def request(self, method, path, *, query=None, body=None, media_type="", answer_s=0.0):
        parts = path.split("/")
        if method == "GET" and parts[-1] in PLURALS:
            items = list(self.all(parts[-1]).values())
            return _json({"metadata": {"resourceVersion": str(self.version)}, "items": items})
        answer = self.next_answers.pop(0) if self.next_answers else Answer.DONE
        if answer in REFUSALS:
            self.refused[next(part for part in reversed(parts) if part in PLURALS)] += 1
        return _json(met(answer, lambda: self._do(method, parts, json.loads(_json(body)), media_type)))

    def _do(self, method, parts, body, media_type):
        plural = next(part for part in reversed(parts) if part in PLURALS)
        rest = parts[parts.index(plural) + 1 :]
        if method == "POST" and not rest:
            return self._create(plural, body)
        obj = self.objects.get((plural, rest[0]))
        if obj is None:
            raise NotFound.of(plural, rest[0])
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

    def _create(self, plural, body):
        name = body["metadata"]["name"]
        if (plural, name) in self.objects:
            raise AlreadyExists.of(plural, name)
        made = self.put(plural, body)
        self.created.append(made["metadata"]["uid"])
        return made

    def _delete(self, plural, obj, options):
        metadata = obj["metadata"]
        if options.get("preconditions", {}).get("uid", metadata["uid"]) != metadata["uid"]:
            raise Conflict.of(plural, metadata["name"], "Precondition failed: UID")
        if plural == "pods" and (obj.get("spec") or {}).get("nodeName"):
            if "deletionTimestamp" in metadata:
                return obj
            self.deleted.append(metadata["uid"])
            ending = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
            return self.put(plural, {**obj, "metadata": ending})
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
        else:
            if body["metadata"].get("uid", obj["metadata"]["uid"]) != obj["metadata"]["uid"]:
                raise Conflict.of(plural, obj["metadata"]["name"], "another uid")
            new = patch.merge(obj, body)
        return obj if new == obj else self.put(plural, new)

    @contextmanager
    def stream(self, path, *, query, silence_s):
        plural = path.split("/")[-1]
        yield self._lines(plural, int(query["resourceVersion"]))

    def _lines(self, plural, after):
        for version, kind, verb, obj in self.history:
            if kind == plural and version > after:
                yield _json({"type": verb, "object": obj})
        yield _json({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})


PLURALS = frozenset(kind.plural for kind in resources.ALL)
assert PODS.plural in PLURALS


def _json(value):
    return json.dumps(value).encode()
