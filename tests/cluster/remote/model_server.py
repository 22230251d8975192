"""A model of an API server that holds pods: what a list, a watch and its failures are, in the words of the protocol.

It stands where `cluster.remote.connection.Connection` does. Its state is a
history; a list is one state of it, a watch what came after one.
"""

from __future__ import annotations

import json
from contextlib import contextmanager

from cluster.remote.request import Unreachable
from kube.errors import Expired, NotFound

PAGE = 2


class ModelServer:
    """Pods by name, and how they came to be. What comes next of an answer may be cut short by `cut_after` lines or pages."""

    def __init__(self):
        self.version = 100
        self.uids = 0
        self.objects = {}
        self.history = []  # (version, verb, object, what it was before)
        self.forgotten = self.version  # watches from before this version are refused
        self.serves = True
        self.reachable = True
        self.cut_after = None

    def put(self, name, value):
        """Create or change a pod, and return what the API answers."""
        old = self.objects.get(name)
        if old is None:
            self.uids += 1
        self.version += 1
        uid = old["metadata"]["uid"] if old else f"uid-{self.uids}"
        metadata = {"name": name, "namespace": "d", "uid": uid, "resourceVersion": str(self.version)}
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"value": value}}
        self.objects[name] = obj
        self.history.append((self.version, "MODIFIED" if old else "ADDED", obj, old))
        return obj

    def delete(self, name):
        """Delete a pod."""
        old = self.objects.pop(name)
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self.history.append((self.version, "DELETED", last, old))

    def compact(self):
        """Forget what led to the present state."""
        self.forgotten = self.version

    def restore(self, objects, version):
        """Go back to an older state, as from a backup, after which other things happen under the same versions."""
        self.objects = dict(objects)
        self.version = self.forgotten = version
        self.history = []

    def restore_ahead(self, objects):
        """Do the same, but go on with versions that nobody has seen, as etcd's manual advises."""
        self.objects = dict(objects)
        self.version = self.forgotten = self.version + 1000
        self.history = []

    # What a reflector asks.

    def request(self, method, path, *, query):
        """Answer a list, page by page; each page is of the state in which the list began."""
        self._check()
        if "continue" in query:
            version, start = map(int, query["continue"].split("/"))
            if version < self.forgotten:
                raise Expired("The provided continue parameter is too old.")
            self._cut()
        else:
            version, start = self.version, 0
        objects = self._state(version)
        page = [each for _, each in sorted(objects.items())][start : start + PAGE]
        metadata = {"resourceVersion": str(version)}
        if start + PAGE < len(objects):
            metadata["continue"] = f"{version}/{start + PAGE}"
        return json.dumps({"metadata": metadata, "items": page}).encode()

    def _state(self, version):
        objects = dict(self.objects)
        for _, verb, obj, before in reversed([entry for entry in self.history if entry[0] > version]):
            name = obj["metadata"]["name"]
            if verb == "ADDED":
                del objects[name]
            else:
                objects[name] = before
        return objects

    @contextmanager
    def stream(self, path, *, query, silence_s):
        """Answer a watch with all that is known after its version, a bookmark, and its end."""
        self._check()
        yield self._lines(int(query["resourceVersion"]))

    def _lines(self, after):
        if after < self.forgotten:
            yield json.dumps({"type": "ERROR", "object": Expired("too old resource version").status()})
            return
        for version, verb, obj, _ in self.history:
            if version > after:
                self._cut()
                yield json.dumps({"type": verb, "object": obj}).encode()
        self._cut()
        yield json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})

    def _check(self):
        if not self.reachable:
            raise Unreachable("https://model", "connection refused")
        if not self.serves:
            raise NotFound()

    def _cut(self):
        if self.cut_after is not None:
            self.cut_after -= 1
            if self.cut_after < 0:
                self.cut_after = None
                raise Unreachable("https://model", "it closed the connection", sent=True)
