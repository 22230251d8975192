"""A second machine that joins a system: an agent with a state directory of its own, and clients that ask what runs there."""

from __future__ import annotations

import json
import shlex
import signal
import ssl
import subprocess
import sys
from urllib.parse import urlencode

import httpx
import yaml
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from node import left
from node.link import presence
from node.paths import Layout
from node.shim import tree
from tests.system.harness import PROJECT
from tests.waiting import HANG_S, until

PODS = "/api/v1/namespaces/default/pods"


class Machine:
    """The other machine. `start` joins, or comes back."""

    def __init__(self, system, data, name="second"):
        self.system, self.data, self.name = system, data, name
        self.process = None
        self.log = data.with_suffix(".log")

    def start(self, server=""):
        """Start the agent, and wait for its link."""
        command = [sys.executable, "manage.py", "agent"]
        if not (self.data / "membership.json").exists():
            command += self._told(server)
        environment = {
            **{k: v for k, v in self.system.environment.items() if not k.startswith("VOLCANO_UI_")},
            "VOLCANO_UI_DATA": str(self.data),
            "VOLCANO_UI_RUNNING": "leave",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
        return self.linked()

    def linked(self):
        """Wait for the link."""
        until(lambda: presence.is_held(self.system.data, self.name), what=self.log.read_text)
        return self

    def _told(self, server):
        """Return what an administrator says is to be typed there, from the server's address on."""
        command = [sys.executable, "manage.py", "jointoken", "--node", self.name]
        command += ["--server", server or self.system.api]
        told = subprocess.run(
            command, cwd=PROJECT, env=self.system.environment, check=True, capture_output=True, text=True
        ).stdout
        words = shlex.split(told)
        return words[words.index("--server") :]

    def kill(self):
        """Kill the agent; pods go on."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Leave nothing behind."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for pid in left.shims(Layout(self.data)):
            for each in (pid, *tree.below(pid)):
                tree.send(each, signal.SIGKILL)


class Client:
    """Somebody with a kubeconfig: an administrator, as kubectl asks."""

    def __init__(self, system, file):
        config = yaml.safe_load(system.kubeconfig(file).read_text())
        self.token = config["users"][0]["user"]["token"]
        self.base = system.api
        self.trust = ssl.create_default_context(cafile=str(system.ca))
        self.http = httpx.Client(
            base_url=system.api,
            headers={"Authorization": f"Bearer {self.token}"},
            verify=self.trust,
            timeout=HANG_S,
        )

    def run(self, name, script, node, **container):
        """Start a pod on a node and wait until it runs."""
        command = ["sh", "-c", script]
        body = {
            "metadata": {"name": name},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "any", "command": command, **container}],
            },
        }
        answer = self.http.post(PODS, json=body)
        assert answer.status_code == 201, answer.text
        until(lambda: self.phase(name) == "Running", what=lambda: self.http.get(f"{PODS}/{name}").text)
        return name

    def phase(self, name):
        """Return the phase of a pod."""
        return self.http.get(f"{PODS}/{name}").json().get("status", {}).get("phase")

    def log(self, name, **parameters):
        """Return the answer to a request for a log."""
        return self.http.get(f"{PODS}/{name}/log", params=parameters)

    def follow(self, name):
        """Open a request by which a log is followed; use it in a with block."""
        return self.http.stream("GET", f"{PODS}/{name}/log", params={"follow": "true"})

    def exec(self, name, *command, kind="exec", **flags):
        """Open a connection to a command in a container."""
        query = urlencode(
            [*(("command", word) for word in command), *((flag, "true") for flag in ("stdout", *flags))]
        )
        address = f"{self.base}{PODS}/{name}/{kind}?{query}".replace("https", "wss", 1)
        headers = {"Authorization": f"Bearer {self.token}"}
        return Talk(
            connect(
                address,
                ssl=self.trust,
                additional_headers=headers,
                subprotocols=["v5.channel.k8s.io"],
                compression=None,
                open_timeout=HANG_S,
                legacy=True,
                proxy=None,
            )
        )


class Talk:
    """An upgraded connection."""

    def __init__(self, socket):
        self.socket = socket
        self.out = {1: b"", 2: b"", 3: b""}

    def send(self, channel, data):
        """Send something on a channel."""
        self.socket.send(bytes([channel]) + data)

    def until(self, text):
        """Read until there is such a text; return all that was read."""
        while text not in self.out[1]:
            self._read()
        return self.out[1]

    def finish(self):
        """Read to the end; return the last word."""
        try:
            while True:
                self._read()
        except ConnectionClosed:
            return json.loads(self.out[3])

    def _read(self):
        message = self.socket.recv(timeout=HANG_S)
        self.out[message[0]] += message[1:]
