"""Model servers over HTTP, how this process is connected to one, and the questions that they ask."""

import base64
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import yaml

from cluster import access
from cluster.remote.door import server
from cluster.remote.door.access_rules import Question, read
from cluster.remote.door.authorizer import ClusterAuthorizer
from cluster.remote.http import target
from cluster.remote.webhooks import hooks
from kube import patch
from kube.meta import now_text, parse_time


class Server(ThreadingHTTPServer):
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
        self.objects, self.denied, self.requests, self.version = {}, {}, [], 0

    def put(self, path, body):
        self.version += 1
        self.objects[path] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.objects[path]

    def named(self, name):
        """Return the objects of a name, by the plurals of their kinds."""
        return {path.split("/")[-2]: obj for path, obj in self.objects.items() if obj["metadata"]["name"] == name}


class ObjectHandler(Handler):
    def answer(self):
        """Answer with what a request makes of an object, or with what it means that this is nothing."""
        path, body = self.path.partition("?")[0], json.loads(self.body() or b"null")
        self.server.requests.append((self.command, path))
        for (method, end), denied in self.server.denied.items():
            if self.command == method and path.endswith(end):
                return self.refuse(denied, "not you")
        if (found := self.made(path, body)) is not None:
            return self.say(200, found)
        reason = {"GET": "NotFound", "DELETE": "NotFound", "POST": "AlreadyExists"}.get(self.command, "Conflict")
        return self.refuse(404 if reason == "NotFound" else 409, reason, reason)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = answer  # noqa: N815

    def made(self, path, body):
        old = self.server.objects.get(path)
        match self.command:
            case "GET":
                return old
            case "DELETE":
                return self.server.objects.pop(path, None)
            case "POST" if path.endswith("/selfsubjectreviews"):
                return {"status": {"userInfo": {"username": "pages"}}}
            case "POST":
                whole = f"{path}/{body['metadata']['name']}"
                return None if whole in self.server.objects else self.server.put(whole, body)
        about, field = body["metadata"], "uid" if self.command == "PATCH" else "resourceVersion"
        if about.get(field) != old["metadata"].get(field):
            return None
        new = patch.merge(old, body) if self.command == "PATCH" else body
        return body if "dryRun" in self.path else self.server.put(path, new)


# Logs.


class LogServer(Server):
    """Hands out logs of pods as API servers do: by the last lines, from a second on, with times.

    Its `logs` hold (epoch µs, line) by pod's name, container and whether the run before is meant.

    `refused` has the HTTP code and message with which the log of a pod is refused, `heard` what was asked.
    """

    def __init__(self):
        super().__init__(LogHandler)
        self.logs, self.refused, self.requests, self.zone = {}, {}, [], "Z"

    def log(self, pod, container="main", *, previous=False):
        return self.logs.setdefault((pod, container, previous), [])

    def write(self, pod, *lines, container="main", previous=False):
        """Add lines, each with its time in seconds of one minute."""
        begin = parse_time("2026-11-01T00:00:00Z") * 1000
        for second, text in lines:
            self.log(pod, container, previous=previous).append((begin + round(second * 1_000_000), text.encode()))

    def answer(self, pod, query):
        """Return the lines that are asked for, chosen as kubelets choose them: the last ones, and of these the late ones."""
        lines = self.log(pod, query["container"], previous="previous" in query)
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :]
        since = parse_time(query["sinceTime"]) * 1000 if "sinceTime" in query else 0
        return [self.text(*line) for line in lines if line[0] >= since]

    def text(self, moment, line):
        seconds, micros = divmod(moment, 1_000_000)
        if self.zone == "+02:00":
            seconds += 7200
        return f"{now_text(seconds * 1000)[:19]}.{micros:06d}000{self.zone} ".encode() + line


class LogHandler(Handler):
    def do_GET(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        pod = parts.path.split("/")[-2]
        self.server.requests.append((pod, query))
        if pod in self.server.refused:
            self.refuse(*self.server.refused[pod])
        else:
            self.say(200, b"".join(line + b"\n" for line in self.server.answer(pod, query)))


# Reviews of what somebody may do.

EVERYBODY = "system:authenticated"
PATH = "/apis/authorization.k8s.io/v1/"


def rule(verbs, *resources):
    """A rule about resources, each by its id, all of one group."""
    plurals, groups = set(), set()
    for each in resources:
        base, slash, part = each.partition("/")
        plural, _, group = base.partition(".")
        plurals.add(f"{plural}{slash}{part}")
        groups.add(group)
    return {"verbs": verbs.split(), "apiGroups": sorted(groups), "resources": sorted(plurals)}


class Grants:
    """Who holds which rules where; "" stands for everywhere. Of some nobody can tell all rules at once."""

    def __init__(self):
        self.held = {}  # (user or group, namespace) → rules
        self.is_incomplete = False
        self.review_count = 0

    def give(self, who, namespace, *rules):
        self.held[who, namespace] = [*self.held.get((who, namespace), ()), *rules]

    def take(self, who, namespace):
        del self.held[who, namespace]

    def rules(self, people, namespace):
        found = [self.held.get((who, scope), ()) for who in people for scope in {"", namespace}]
        return [one for rules in found for one in rules]

    def all_rules(self, people, namespace):
        """What a rules review answers: of an authorizer that cannot tell rules, none."""
        self.review_count += 1
        rules = [] if self.is_incomplete else self.rules(people, namespace)
        return {"status": {"resourceRules": rules, "nonResourceRules": [], "incomplete": self.is_incomplete}}

    def allows(self, people, question):
        self.review_count += 1
        return read({"status": {"resourceRules": self.rules(people, question.namespace)}}).allow(question)


class ReviewServer(Server):
    """Its `grants` decide. `refused` is (code, message) of what it answers instead, `heard` who was asked about."""

    def __init__(self):
        super().__init__(ReviewHandler)
        self.grants, self.refused, self.requests = Grants(), None, []


class ReviewHandler(Handler):
    def do_POST(self):
        body = json.loads(self.body())
        user, groups = self.headers["Impersonate-User"], self.headers.get_all("Impersonate-Group") or []
        self.server.requests.append((user, groups))
        if self.server.refused:
            self.refuse(*self.server.refused)
        else:
            self.say(201, {"status": self.answer([user, *groups, EVERYBODY], body["spec"])})

    def answer(self, people, spec):
        if self.path == f"{PATH}selfsubjectrulesreviews":
            assert spec["namespace"], "no namespace on request"
            return self.server.grants.all_rules(people, spec["namespace"])["status"]
        assert self.path == f"{PATH}selfsubjectaccessreviews"
        about = spec["resourceAttributes"]
        kind = f"{about['resource']}.{about['group']}" if about["group"] else about["resource"]
        part = f"/{about['subresource']}" if about["subresource"] else ""
        question = Question(about["verb"], f"{kind}{part}", about["namespace"], about["name"])
        return {"allowed": self.server.grants.allows(people, question)}


@contextlib.contextmanager
def deciding(tmp_path, settings, clock):
    settings.IMPERSONATE = True
    with connected(ReviewServer(), tmp_path, settings) as running:
        access.delegate(ClusterAuthorizer())
        running.clock = clock
        yield running
        access.delegate(None)


# Questions that are asked of webhooks.


def question(path, obj=None, old=None, operation=None):
    """Return the AdmissionReview that asks about creating, changing or deleting an object."""
    kind = hooks.BY_PATH[path].resource
    operation = operation or ("DELETE" if obj is None else "CREATE" if old is None else "UPDATE")
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request = {"uid": "705ab4f5", "resource": resource, "operation": operation, "object": obj, "oldObject": old}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def patch_of(answer):
    response = answer["response"]
    assert response["allowed"], response["status"]
    assert response.get("patchType") == ("JSONPatch" if "patch" in response else None)
    return json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
