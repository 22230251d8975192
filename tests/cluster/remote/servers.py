"""Model servers over HTTP: what they have in common, how this process is connected to one, and one that keeps objects."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

from cluster.remote import server, target
from kube import patch


class Server(ThreadingHTTPServer):
    """Serves on a port of this machine from when it is made."""

    daemon_threads = True

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """Writes no log, and answers each request on a connection of its own: nothing is answered once the server is closed."""

    def log_message(self, *_):
        pass

    def handle(self):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who has enough hangs up
            super().handle()

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def say(self, code, body):
        """Answer with bytes as they are, or with an object in JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, message, reason=""):
        self.say(code, {"kind": "Status", "reason": reason, "message": message, "code": code})


def kubeconfig(folder, port, **user):
    """Write a kubeconfig of a server on this machine; return its path."""
    file = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "dev",
    }
    file.write_text(yaml.safe_dump(config))
    return str(file)


@contextlib.contextmanager
def connected(running, folder, settings):
    """Connect this process to a server until the end of the test, and stop that then."""
    settings.TARGET, settings.DATA = target.find(kubeconfig(folder, running.server_port), ""), folder
    server.connection.cache_clear()
    try:
        yield running
    finally:
        server.connection.cache_clear()
        running.shutdown()
        running.server_close()


class ObjectServer(Server):
    """An API server that keeps `objects` by their paths, and refuses a write with an old version.

    `denied` has codes by the methods and ends of paths that are refused; `heard` is what was asked.
    """

    def __init__(self):
        super().__init__(ObjectHandler)
        self.objects, self.denied, self.heard, self.version = {}, {}, [], 0

    def put(self, path, body):
        self.version += 1
        self.objects[path] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.objects[path]

    def named(self, name):
        """Return the objects of a name, by the plurals of their kinds."""
        return {path.split("/")[-2]: obj for path, obj in self.objects.items() if obj["metadata"]["name"] == name}


class ObjectHandler(Handler):
    def do_GET(self):
        self.answer(lambda path, _: self.server.objects.get(path), 404, "NotFound")

    def do_POST(self):
        self.answer(self.create, 409, "AlreadyExists")

    def do_PUT(self):
        self.answer(self.replace, 409, "Conflict")

    def do_PATCH(self):
        self.answer(self.merge, 409, "Conflict")

    def create(self, path, body):
        if path.endswith("/selfsubjectreviews"):
            return {"status": {"userInfo": {"username": "pages"}}}
        whole = f"{path}/{body['metadata']['name']}"
        return None if whole in self.server.objects else self.server.put(whole, body)

    def replace(self, path, body):
        newest = self.server.objects[path]["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion") != newest:
            return None
        return body if "dryRun" in self.path else self.server.put(path, body)

    def merge(self, path, body):
        """Apply a merge patch, unless it names another object's uid."""
        stored = self.server.objects[path]
        if body["metadata"].get("uid") != stored["metadata"]["uid"]:
            return None
        return self.server.put(path, patch.merge(stored, body))

    def answer(self, function, code, reason):
        """Answer with what a function makes of path and body, or with what it means that this is nothing."""
        path, body = self.path.partition("?")[0], self.body()
        self.server.heard.append((self.command, path))
        for (method, end), denied in self.server.denied.items():
            if self.command == method and path.endswith(end):
                return self.refuse(denied, "not you")
        found = function(path, json.loads(body) if body else None)
        return self.refuse(code, reason, reason) if found is None else self.say(200, found)
