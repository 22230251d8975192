"""Where a session takes place: a fresh kube-apiserver with Volcano's kinds and webhooks, and clients by way of the recorder.

Nothing works on what is stored, neither controllers nor nodes: all that changes anything passes the recorder, so that it
happens again where the recording is replayed. What controllers and kubelets would do a session asks for itself, as the
client `stage`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import yaml

from proof.harness.waiting import HANG_S, until
from proof.kubernetes.cluster import ADMINISTRATORS, PROGRAMS, Kubernetes
from proof.kubernetes.volcano import PROGRAMS as VOLCANO_PROGRAMS
from proof.kubernetes.volcano import Volcano
from proof.traffic.exchange import STAGE
from proof.traffic.recorder import Recorder, context

HELM = "helm"
log = logging.getLogger(__name__)
MERGE = "application/merge-patch+json"


class Stage:
    """One session's clients. Each call notes what was typed, so that a recording says what its requests are for."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self.folder, self.recorder = folder, recorder
        self.config = folder / "recorded.kubeconfig"
        self.config.write_text(yaml.safe_dump(_kubeconfig(recorder.url)))
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(self.config)}

    def kubectl(self, line: str, stdin: Any = None) -> str:
        """Run kubectl, as typed; stdin is an object or several, or a text."""
        return self.run("kubectl", PROGRAMS["kubectl"], line, stdin)

    def vcctl(self, line: str) -> str:
        """Run vcctl, as typed."""
        return self.run("vcctl", VOLCANO_PROGRAMS["vcctl"], line)

    def helm(self, line: str) -> str:
        """Run Helm, as typed."""
        return self.run("helm", HELM, line)

    def run(self, client: str, program: Path | str, line: str, stdin: Any = None, label: str = "") -> str:
        """Run a client's program; return what it prints. What it complains of is told, and no failure."""
        with self.doing(client, label or f"{client} {line}".replace(str(self.folder), ".")):
            done = subprocess.run(
                [program, *shlex.split(line)],
                env=self.environment,
                cwd=self.folder,
                input=_text(stdin),
                capture_output=True,
                text=True,
                timeout=HANG_S,
            )
        if done.returncode:
            log.info("%s %s: %s", client, line, done.stderr.strip() or done.stdout.strip())
        return done.stdout

    @contextlib.contextmanager
    def beside(self, line: str) -> Iterator[Iterator[str]]:
        """Run kubectl beside what the session does; yield the lines that it prints."""
        command = [str(PROGRAMS["kubectl"]), *shlex.split(line)]
        self.recorder.client, self.recorder.command = "kubectl", f"kubectl {line}"
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            yield iter(running.stdout.readline, "")
            running.terminate()

    @contextlib.contextmanager
    def doing(self, client: str, command: str) -> Iterator[None]:
        """Say who asks what is asked in the block, and for what."""
        recorder = self.recorder
        before = recorder.client, recorder.command
        recorder.client, recorder.command = client, command
        yield
        recorder.client, recorder.command = before

    def play(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Ask as a controller or a kubelet would; return the answer."""
        with self.doing(STAGE, ""):
            headers = {"Content-Type": content_type} if body is not None else {}
            answer = httpx.request(
                method, f"{self.recorder.url}{path}", content=_text(body), headers=headers, timeout=HANG_S
            )
        assert answer.status_code < http.client.BAD_REQUEST, answer.text
        return answer.json()

    def written(self, obj: dict[str, Any]) -> str:
        """Return an object as a text in YAML."""
        text: str = yaml.safe_dump(obj)
        return text

    def until_watched(self) -> None:
        """Wait until the watch is open that was asked for last."""
        until(self.recorder.is_watched, what="a watch that is open")

    def set_status(self, path: str, status: dict[str, Any]) -> None:
        """Write an object's status."""
        self.play("PATCH", f"{path}/status", {"status": status}, MERGE)

    def start_pod(self, path: str, node: str) -> None:
        """Bind a pod to a node, and have it run there."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        name = path.rpartition("/")[2]
        self.play(
            "POST",
            f"{path}/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target},
        )
        started = "2026-11-27T12:00:00Z"
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": started, "lastProbeTime": None}
        container = {"name": "main", "image": "busybox:1", "imageID": "", "ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": started}}, "lastState": {}}  # fmt: skip
        self.set_status(path, {"phase": "Running", "startTime": started, "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}], "hostIP": "10.1.0.1", "conditions": [condition], "containerStatuses": [container]})  # fmt: skip


@contextlib.contextmanager
def opened(folder: Path, *, webhooks: bool) -> Iterator[Stage]:
    """Start a kube-apiserver, where wanted with Volcano's webhooks, and a recorder before it."""
    with Kubernetes(folder, nodes=0, volcano=False, is_at_rest=True) as cluster:
        volcano = Volcano(cluster, definitions="theirs")
        volcano.install()
        try:
            if webhooks:
                volcano.start_webhooks()
            until(lambda: _has_queues(cluster), what="Volcano's webhooks, which the API server asks")
            certificate = cluster.identities.certificate("admin", ADMINISTRATORS)
            with Recorder(cluster.port, context(certificate, cluster.identities.ca)) as recorder:
                yield Stage(folder, recorder)
        finally:
            volcano.stop()


def _has_queues(cluster: Kubernetes) -> bool:
    """Make the queues that Volcano's scheduler makes when it starts; the webhooks let nothing through before they work."""
    queues = [
        _queue("root", {"weight": 1, "reclaimable": False}),
        _queue("default", {"weight": 1, "reclaimable": True, "parent": "root"}),
    ]
    try:
        cluster.apply(*queues)
    except AssertionError:
        return False
    for each in queues:
        cluster.set_status("queue", each["metadata"]["name"], {"state": "Open"})
    return True


def _queue(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "recorded", "cluster": {"server": server}}],
        "users": [{"name": "recorded", "user": {}}],
        "contexts": [{"name": "recorded", "context": {"cluster": "recorded", "user": "recorded"}}],
        "current-context": "recorded",
    }


def _text(stdin: Any) -> str | None:
    """Return an object, or several, as a text that is sent or read."""
    if stdin is None or isinstance(stdin, str):
        return stdin
    if isinstance(stdin, list) and stdin and "kind" in stdin[0]:
        return yaml.safe_dump_all(stdin)
    return json.dumps(stdin)
