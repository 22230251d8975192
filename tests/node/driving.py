"""Driving an agent in the test's own thread, against the real store and real processes."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.conf import settings

from cluster.store import Create, Delete, Patch, store
from kube.errors import NotFound
from kube.resources import CLAIMS, PODS
from node import attempts
from node.agent.daemon import Daemon
from node.agent.spawn import Spawner
from node.shim import tree
from proof.harness import engine
from proof.harness.waiting import until

NODE = "here"
# Who is the first process of an image's container is not ended by signals that it does not handle.
UNTIL_ASKED = "trap 'exit 143' TERM; while :; do sleep 0.02; done"


@functools.cache
def _allowed():
    """Return the wall that this machine allows, asked once: a process and some more are started to find out."""
    staging = tempfile.mkdtemp(prefix="volcano-")
    spawner = Spawner()
    try:
        return spawner.probe(Path(staging))
    finally:
        spawner.close()
        shutil.rmtree(staging)


class Node:
    """One machine's agent, which can be killed and followed by another."""

    def __init__(self, data) -> None:
        self.data = data
        # Containers do not see the state directory: what tests have them write goes elsewhere.
        self.out = Path(tempfile.mkdtemp(prefix="volcano-out-"))
        self.out.chmod(0o777)  # not every file system shows it to a pod's users as theirs
        self.daemon = None
        self.began = False
        self.shows_out = None  # whether pods have the directory mounted; None: where they need it
        self.engine = None  # that runs the containers; None: they are processes

    def with_engine(self, runs):
        """Have containers run from images."""
        self.engine = runs
        settings.ENGINE = runs.kind
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

    def allowed(self):
        """Return the wall that this machine allows."""
        return _allowed()

    def crash(self):
        """What kill -9 leaves of an agent: nothing but the disk and its shims."""
        self.daemon.close()
        self.daemon = None

    def again(self):
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

    def submit(self, name="p", *, containers=None, command=None, annotations=None, labels=None, owner="", **spec):
        containers = containers or [{"name": "main", "image": "any", "command": command or ["true"]}]
        metadata = {"name": name, "namespace": "d", "annotations": annotations or {}, "labels": labels or {}}
        if owner:
            reference = {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": owner, "controller": True}
            metadata["ownerReferences"] = [reference]
        whole = {"restartPolicy": "Never", "nodeName": NODE, "containers": containers, **spec}
        if self.engine:
            self._give_images(whole)
        if self.shows_out:
            self._show_out(whole)
        body = {"metadata": metadata, "spec": whole, "status": {"phase": "Pending"}}
        return store.write(Create(PODS, body))[0].uid

    def _give_images(self, spec):
        """Have containers run from an image."""
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            if container.get("image", "any") == "any":
                container["image"] = engine.SHELL

    def _show_out(self, spec):
        """Have containers see the directory that processes without a root of their own see as everybody."""
        if str(self.out) not in settings.HOST_PATHS:
            settings.HOST_PATHS = [*settings.HOST_PATHS, str(self.out)]
        mount = {"name": "out", "mountPath": str(self.out)}
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "out", "hostPath": {"path": str(self.out)}}]

    def claim(self, name="c"):
        """Make a claim; return its uid."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        metadata = {"name": name, "namespace": "d"}
        return store.write(Create(CLAIMS, {"metadata": metadata, "spec": spec}))[0].uid

    def files(self, claim):
        """Return the directory of a claim's files."""
        return self.data / "node" / "claims" / claim / "files"

    def shell(self, script, name="p", **spec):
        return self.submit(name, command=["sh", "-c", script], **spec)

    def held(self, script, name="p", **spec):
        """Submit a pod that does nothing until the test lets it go on."""
        return self.shell(f"until [ -e {self.out}/go ]; do sleep 0.01; done; {script}", name, **spec)

    def let_go(self):
        """Let pods that are held go on."""
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

    def until_phase(self, phase, name="p"):
        self.until(lambda: self.status(name).get("phase") == phase, lambda: f"{phase} of {name}, {self.status(name)},")
        return self.status(name)

    def delete(self, name="p", **fields):
        store.write(Delete(PODS, "d", name, **fields))

    def annotate(self, name="p"):
        store.write(Patch(PODS, "d", name, {"metadata": {"annotations": {"at": str(time.time())}}}))

    def directory(self, uid, container="main", number=0):
        return self.data / "node" / "pods" / uid / container / str(number)

    def shims(self):
        return [
            int(claim.read_text().split()[0])
            for claim in self.data.glob("node/pods/*/*/*/claim")
            if attempts.read(claim.parent, 0).shim
        ]

    def close(self):
        shutil.rmtree(self.out)
        if self.daemon:
            self.daemon.close()
        for pid in self.shims():
            for each in [*reversed(tree.below(pid)), pid]:
                tree.send(each, 9)
        if self.engine:
            self.engine.clear()
