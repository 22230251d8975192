"""An API server that keeps objects by their paths, over HTTP: a write with an old version is refused."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.cluster.remote.answering import Quiet

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class ObjectServer(ThreadingHTTPServer):
    """Its `objects` are by path; `denied` has codes by the methods and ends of paths that are refused; `heard` is what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.denied, self.heard, self.version = {}, {}, [], 0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def put(self, path, body):
        self.version += 1
        self.objects[path] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.objects[path]

    def named(self, name):
        """Return the objects of a name, by the plurals of their kinds."""
        return {path.split("/")[-2]: obj for path, obj in self.objects.items() if obj["metadata"]["name"] == name}


class Handler(Quiet, BaseHTTPRequestHandler):
    """Answers each request on a connection of its own."""

    def do_GET(self):
        self.answer(lambda path, _: self.server.objects.get(path))

    def do_POST(self):
        def create(path, body):
            if path == WHO_AM_I:
                return {"status": {"userInfo": {"username": "pages"}}}
            whole = f"{path}/{body['metadata']['name']}"
            return None if whole in self.server.objects else self.server.put(whole, body)

        self.answer(create, 409)

    def do_PUT(self):
        def replace(path, body):
            old = self.server.objects[path]
            same = old["metadata"]["resourceVersion"] == body["metadata"].get("resourceVersion")
            return self.server.put(path, body) if same else None

        self.answer(replace, 409)

    def answer(self, function, refusal=404):
        path = self.path.partition("?")[0]
        self.server.heard.append((self.command, path))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        for (method, end), code in self.server.denied.items():
            if self.command == method and path.endswith(end):
                return self.say(code, {"kind": "Status", "message": "not you", "code": code})
        found = function(path, body)
        if found is None:
            reason = {404: "NotFound", 409: "AlreadyExists" if self.command == "POST" else "Conflict"}[refusal]
            found = {"kind": "Status", "reason": reason, "message": reason, "code": refusal}
            return self.say(refusal, found)
        return self.say(200, found)
