"""Driving an agent in the test's own thread, against the real store and real processes."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model

from cluster import access
from cluster.access import joining as invitations
from cluster.models import RoleBinding
from cluster.store import Create, Delete, Patch, store
from kube.errors import NotFound
from kube.resources import CLAIMS, EVENTS, PODS
from node import attempts, logs
from node.agent import reach
from node.agent.daemon import Daemon
from node.agent.machine import valid_name
from node.containers.spawn import Spawner
from node.joined import agent, joining
from node.joined.joining import JoinOptions
from node.shim import control_socket, tree
from node.shim.order import Bind
from proof.escapes.attempts import layers
from proof.harness import engine
from proof.harness.waiting import HANG_S, until
from tests import builders

NODE = "here"
# Who is the first process of an image's container is not ended by signals that it does not handle.
UNTIL_TERM = "trap 'exit 143' TERM; while :; do sleep 0.02; done"
LOOT = "/loot"
EMPTY = {"name": "v", "emptyDir": {}}
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}


def mount(name="v", path=LOOT, **fields):
    return {"name": name, "mountPath": path, **fields}


@contextlib.contextmanager
def short_folder(**options):
    """A directory with a short name, as what has a socket in it may not be long."""
    with tempfile.TemporaryDirectory(prefix="volcano-", **options) as path:
        yield Path(path)


def container(script, *mounts, name="main", **fields):
    return {"name": name, "command": ["sh", "-ec", script], "volumeMounts": list(mounts), **fields}


def env(**values):
    sources = {name: {"value": each} if isinstance(each, str) else {"valueFrom": each} for name, each in values.items()}
    return [{"name": name, **source} for name, source in sources.items()]


def field(path):
    return {"fieldRef": {"fieldPath": path}}


def put(kind, name, **parts):
    store.write(Create(kind, {"metadata": {"name": name, "namespace": "d"}, **parts}))


def change(kind, name, **parts):
    store.write(Patch(kind, "d", name, parts))


def person(name, role, namespace="*"):
    user = get_user_model().objects.create_user(name)
    RoleBinding.objects.create(user=user, role=role, namespace=namespace)


def conditions(status):
    return {one["type"]: one["status"] for one in status.get("conditions", ())}


@contextlib.contextmanager
def answering(*bodies, code=200):
    """A server of HTTP that answers with its code and the bodies in turn, and remembers what was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append((self.path, dict(self.headers)))
            body = bodies[min(len(server.asked), len(bodies)) - 1] if bodies else b""
            time.sleep(server.wait_s)
            self.send_response(server.code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.code, server.wait_s, server.port = [], code, 0.0, server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def asking(directory, *descriptors, socket_name=control_socket.NAME, **request):
    """Ask a shim, or an agent by the name of its socket, for something; the line on which it answers."""
    line, theirs = socket.socketpair()
    with line:
        control_socket.send(str(directory), request, [theirs.fileno(), *descriptors], socket_name)
        theirs.close()
        line.settimeout(HANG_S)
        yield line


def executing(directory, *argv, descriptors=(), **fields):
    """Ask a shim to run a command in its container; with descriptors for its output."""
    streams = ["stdout"] if descriptors else []
    return asking(directory, *descriptors, do="exec", argv=[*argv], streams=streams, tty=False, **fields)


class Node:
    """One machine's agent, which can be killed and followed by another."""

    def __init__(self, data) -> None:
        self.data = data
        # Containers do not see the state directory: what tests have them write goes elsewhere.
        self.out = Path(tempfile.mkdtemp(prefix="volcano-out-"))
        self.out.chmod(0o777)  # not every file system shows it to a pod's users as theirs
        self.daemon = None
        self.shows_out = None  # whether pods have the directory mounted; None: where they need it
        self.engine = None  # that runs the containers; None: they are processes

    def with_engine(self, runs):
        self.engine, settings.ENGINE = runs, runs.kind
        return self

    def begin(self, mounts="none", **layers):
        """Begin an agent with the wall that this machine allows, but for its mounts and the layers given."""
        self.mounts, self.layers = mounts, layers
        if self.engine:
            # Docker's containers see no directories of the machine, nor do those of an ordinary user.
            self.shows_out = self.engine.kind != "docker" and not os.getuid()
        elif self.shows_out is None:
            self.shows_out = mounts != "none"
        allowed = self.allowed()
        wall = allowed if self.engine else allowed._replace(mounts=mounts, root=mounts == "root", **layers)
        engine = self.engine and self.engine.found(wall)
        self.daemon = Daemon(self.data, name=NODE, wall=wall, engine=engine)
        self.agent.begin()
        return self

    @property
    def agent(self):
        return self.daemon.agent

    @staticmethod
    @functools.cache
    def allowed():
        """Return the wall that this machine allows, asked once: a process and some more are started to find out."""
        with short_folder() as staging, contextlib.closing(Spawner()) as spawner:
            return spawner.probe(staging)

    def crash(self):
        """What kill -9 leaves of an agent: nothing but the disk and its shims."""
        self.daemon.close()
        self.daemon = None

    def again(self):
        """Have another agent follow; the one that runs is killed."""
        if self.daemon:
            self.crash()
        return self.begin(self.mounts, **self.layers)

    def until(self, condition, what="the condition"):
        """Let the agent do its part until a condition holds; return what it gave."""
        return until(lambda: condition() or self._turn(), every_s=0, what=what)

    def _turn(self):
        self.daemon._wait(min(0.02, self.agent.patience()))
        self.agent.listener.hurry()  # not before: an agent in a hurry waits for nothing
        self.agent.work()

    def during(self, work, *arguments):
        """Return what a client gets that works in another thread while the agent does its part."""
        with ThreadPoolExecutor(1) as pool:
            task = pool.submit(work, *arguments)
            self.until(task.done)
            return task.result()

    def submit(
        self, name="p", *, containers=None, command=None, annotations=None, labels=None, owner="", until="", **spec
    ):
        """Submit a pod, and wait until it is in a phase; return its uid."""
        containers = containers or [{"name": "main", "image": "any", "command": command or ["true"]}]
        spec = copy.deepcopy({"restartPolicy": "Never", "nodeName": NODE, "containers": containers, **spec})
        all_containers = (*spec["containers"], *spec.get("initContainers", ()))
        for each in all_containers if self.engine else ():
            if each.get("image", "any") == "any":
                each["image"] = engine.SHELL
        if self.shows_out:
            self._show_out(spec, all_containers)
        owners = [builders.owner(builders.job("j", uid=owner))] if owner else None
        metadata = {"annotations": annotations or {}, "labels": labels or {}, "ownerReferences": owners}
        pod = builders.of(PODS, name, namespace="d", status={"phase": "Pending"}, **metadata, **spec)
        uid = store.write(Create(PODS, pod))[0].uid
        if until:
            self.until_phase(until, name)
        return uid

    def _show_out(self, spec, containers):
        """Have containers see the directory that processes without a root of their own see as everybody."""
        if str(self.out) not in settings.HOST_PATHS:
            settings.HOST_PATHS = [*settings.HOST_PATHS, str(self.out)]
        for each in containers:
            each["volumeMounts"] = [*each.get("volumeMounts", ()), mount("out", str(self.out))]
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "out", "hostPath": {"path": str(self.out)}}]

    def claim(self, name="c"):
        put(CLAIMS, name, spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
        return store.get(CLAIMS, "d", name).uid

    def files(self, claim):
        return self.data / "node" / "claims" / claim / "files"

    def shell(self, script, name="p", main=None, mounts=(), **spec):
        """Submit a pod of one container that runs a script; `main` has more fields of the container."""
        main = {"name": "main", "command": ["sh", "-c", script], "volumeMounts": [*mounts], **(main or {})}
        return self.submit(name, containers=[main], **spec)

    def held(self, script, name="p", **spec):
        """Submit a pod that does nothing until the test lets it go on."""
        return self.shell(f"until [ -e {self.out}/go ]; do sleep 0.01; done; {script}", name, **spec)

    def let_go(self):
        (self.out / "go").touch()

    def pod(self, name="p"):
        try:
            return store.get(PODS, "d", name).object
        except NotFound:
            return None

    def status(self, name="p"):
        return (self.pod(name) or {}).get("status", {})

    def state(self, name="p", container=0):
        return self.status(name)["containerStatuses"][container]["state"]

    def until_phase(self, phase, *names):
        names = names or ("p",)
        found = lambda: [self.status(name) for name in names]  # noqa: E731
        self.until(
            lambda: {each.get("phase") for each in found()} == {phase}, lambda: f"{phase} of {names}, {found()},"
        )
        return self.status(names[-1])

    def until_end(self, name="p"):
        self.until(lambda: self.status(name).get("phase") in ("Succeeded", "Failed"), lambda: self.status(name))
        return self.state(name)["terminated"]

    def until_waits(self, *words, name="p"):
        """Wait until a pod that does not start says something; return its status."""
        self.until(lambda: all(each in str(self.status(name)) for each in words), lambda: (words, self.status(name)))
        assert self.status(name)["phase"] in ("Pending", "Failed")
        return self.status(name)

    def printed(self, uid, container="main"):
        files = sorted(self.directory(uid, container).glob("log.*"))
        return logs.rendered(b"".join(each.read_bytes() for each in files))[0].decode()

    def ran(self, script, name="p", **fields):
        """Run a script in a pod to its end; return what it wrote, as lines."""
        uid = self.shell(script, name, **fields)
        self.until_end(name)
        return self.printed(uid).splitlines()

    def delete(self, name="p", **fields):
        store.write(Delete(PODS, "d", name, **fields))

    def remove(self, name="p", **fields):
        self.delete(name, **fields)
        self.until(lambda: self.pod(name) is None)

    def clean(self):
        self.agent.clean_at = 0
        self.agent.work()

    def events_of(self, uid, reason=""):
        """Return the reasons and messages of a pod's events."""
        found = [(each.object["reason"], each.object["message"]) for each in store.find(EVENTS, owner=uid)]
        return [each for each in found if reason in ("", each[0])]

    def annotate(self, name="p"):
        change(PODS, name, metadata={"annotations": {"at": str(time.time())}})

    def directory(self, uid, container="main", number=0):
        return self.data / "node" / "pods" / uid / container / str(number)

    def shims(self):
        claims = self.data.glob("node/pods/*/*/*/claim")
        return [int(each.read_text().split()[0]) for each in claims if attempts.read(each.parent, 0).shim]

    def close(self):
        shutil.rmtree(self.out)
        if self.daemon:
            self.daemon.close()
        for pid in self.shims():
            for each in [*reversed(tree.below(pid)), pid]:
                tree.send(each, 9)
        if self.engine:
            self.engine.clear()


class JoinedNode(Node):
    """A machine that joins at an address, its agent driven as that of `Node`."""

    def __init__(self, data, url) -> None:
        super().__init__(data)
        self.wish = JoinOptions(url, invitations.invite(access.CONSOLE, NODE, 3600).secret)

    def join(self, **changes):
        """Join, or come back; return what is kept of it."""
        wish = self.wish._replace(**changes)
        return joining.join(self.data, joining.begin(self.data, wish), valid_name(wish.name or NODE))

    def begin(self, mounts="none", **layers):
        self.mounts, self.layers = mounts, layers
        wall = self.allowed()._replace(mounts=mounts, root=mounts == "root", **layers)
        self.daemon = agent.daemon(self.data, self.join(), wall=wall)
        self.agent.begin()
        self.agent.listener.start()
        return self


def in_ways(*ways):
    """Have tests run for several ways in which containers get what they mount, as their fixture `begun`."""
    return pytest.mark.parametrize("begun", ways, indirect=True)


def beginning(node, mode):
    found = node.allowed().mounts
    mode = found if mode == "as allowed" else mode
    if mode != "none" and (found == "none" or (mode == "root" and found != "root")):
        pytest.skip(f"this machine does not let this user make mounts the {mode} way")
    node.begin(mode)
    (node.data / "secret-key").write_text("hush")
    return node


def behind_all(attempts, wall, **fields):
    """Have attempts run behind all layers of a wall; they see their own root and this Python."""
    read = (*reach.of_this_machine(attempts.root), sys.prefix)
    seen = {"read": read, "binds": (Bind(str(attempts.root), str(attempts.root)),)}
    attempts.layers = layers(wall) | seen | fields


def ran(attempts, script, *argv, **fields):
    """Run a script of the shell, or a command, to its end; return how it ended and what it wrote."""
    directory = attempts.start(script, *argv, **fields) if argv else attempts.shell(script, **fields)
    return attempts.end(directory), attempts.output(directory)
