"""A gate before the nodes: an admission webhook that lets a number of bindings through and holds the others.

Who binds a gang is so stopped between two bindings for as long as it takes to kill him there.
"""

import base64
import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cluster.remote.webhooks.hooks import GROUP_VERSION
from proof.harness.waiting import until

NAME = "gate"
_TIMEOUT_S = 30  # the longest that an API server takes
_KIND = "ValidatingWebhookConfiguration"


class Gate:
    """Stands in the way of bindings of pods whose names begin so; use it as a context manager. It is open at first.

    `held` is how many it holds. A pod that was let through is let through again: a binding may be sent twice.
    """

    def __init__(self, kubernetes, prefix):
        self._kubernetes, self._prefix = kubernetes, prefix
        self._changed = threading.Condition()
        self._left = None  # how many more pods pass, None while all do
        self._passed = set()  # names of those that have passed
        self._was_called = False
        self._turn = 0  # those that are held are refused with the next one
        self.held = 0
        self._server = _Server(kubernetes.identities.server, self._passes)

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self._kubernetes.apply(self._configuration())
        until(self._is_used, every_s=0.1, what="that the API server asks the gate")
        return self

    def __exit__(self, *_):
        self._kubernetes.kubectl("delete", _KIND, NAME)
        self.open()
        self._server.shutdown()
        self._server.server_close()

    def let_through(self, number):
        """Hold all but so many more pods from now on."""
        self._set(number)

    def open(self):
        """Let all through from now on, but for those that are held: they are refused."""
        self._set(None)

    def _set(self, left):
        with self._changed:
            self._left, self.held = left, 0
            self._turn += 1
            self._changed.notify_all()

    def _is_used(self):
        probe(self._kubernetes, "probe")
        return self._was_called

    def _passes(self, name):
        """Whether the binding of a pod may be stored; returns when that is known."""
        with self._changed:
            self._was_called = True
            if self._left is None or name in self._passed or not name.startswith(self._prefix):
                return True
            if self._left:
                self._left -= 1
                self._passed.add(name)
                return True
            self.held += 1
            turn = self._turn
            self._changed.wait_for(lambda: self._turn != turn)
            return False

    def _configuration(self):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}
        webhook = {
            "name": "gate.tests.local",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self._server.server_port}/",
                "caBundle": base64.b64encode(self._kubernetes.identities.ca.read_bytes()).decode(),
            },
            "rules": [rule],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": _TIMEOUT_S,
            "admissionReviewVersions": ["v1"],
        }
        return {"apiVersion": GROUP_VERSION, "kind": _KIND, "metadata": {"name": NAME}, "webhooks": [webhook]}


def probe(kubernetes, name):
    """Have a pod bound that there is not; return what is said against it."""
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "any"}}
    path = f"/api/v1/namespaces/default/pods/{name}/binding?dryRun=All"
    text = json.dumps({**binding, "metadata": {"name": name}})
    return kubernetes.kubectl.fails("create", "--raw", path, "-f", "-", stdin=text)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, certificate, passes):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.passes = passes
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate.certificate, certificate.key)

    def get_request(self):
        connection, address = super().get_request()
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        """Say nothing: an API server hangs up when who asked it is dead."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are used again

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        allowed = self.server.passes(request["name"])
        response = {"uid": request["uid"], "allowed": allowed}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

    def log_message(self, *_):
        """Say nothing."""
