"""A second machine that has a link to its system, and clients that ask what runs there."""

from __future__ import annotations

import json
import ssl
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import httpx
import yaml
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from kube.meta import Object
from node.link import presence
from proof.harness.waiting import HANG_S, until
from proof.systems.joined import Machine
from proof.systems.system import System

PODS = "/api/v1/namespaces/default/pods"


class Linked(Machine):
    """A second machine whose link counts, too."""

    def linked(self) -> Self:
        """Wait for the link."""
        until(lambda: presence.is_held(self.system.data, self.name), what=self.output)
        return self


class Client:
    """Somebody with a kubeconfig: an administrator, as kubectl asks."""

    def __init__(self, system: System, file: Path) -> None:
        config = yaml.safe_load(system.kubeconfig(file).read_text())
        self.token = config["users"][0]["user"]["token"]
        self.base = system.api
        self.trust = ssl.create_default_context(cafile=str(system.ca))
        self.http = httpx.Client(
            base_url=system.api, headers={"Authorization": f"Bearer {self.token}"}, verify=self.trust, timeout=HANG_S
        )
        self.talks: list[Talk] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for talk in self.talks:
            talk.socket.close()
        self.http.close()

    def run(self, name: str, script: str, node: str, **container: Any) -> str:
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

    def phase(self, name: str) -> str | None:
        """Return the phase of a pod."""
        found: str | None = self.http.get(f"{PODS}/{name}").json().get("status", {}).get("phase")
        return found

    def log(self, name: str, **parameters: str | int | bool) -> httpx.Response:
        """Return the answer to a request for a log."""
        return self.http.get(f"{PODS}/{name}/log", params=parameters)

    def follow(self, name: str) -> AbstractContextManager[httpx.Response]:
        """Open a request by which a log is followed; use it in a with block."""
        return self.http.stream("GET", f"{PODS}/{name}/log", params={"follow": "true"})

    def exec(self, name: str, *command: str, kind: str = "exec", **flags: bool) -> Talk:
        """Open a connection to a command in a container."""
        query = urlencode([*(("command", word) for word in command), *((flag, "true") for flag in ("stdout", *flags))])
        address = f"{self.base}{PODS}/{name}/{kind}?{query}".replace("https", "wss", 1)
        while True:
            try:
                self.talks.append(Talk(self._connect(address)))
                return self.talks[-1]
            except InvalidStatus as refused:
                # This client reads and writes a TLS connection in two threads, and now and then its request is never
                # sent: then the server has waited for it, and nothing was begun.
                if refused.response.status_code != 408:
                    raise

    def _connect(self, address: str) -> ClientConnection:
        return connect(
            address,
            ssl=self.trust,
            additional_headers={"Authorization": f"Bearer {self.token}"},
            subprotocols=[Subprotocol("v5.channel.k8s.io")],
            compression=None,
            open_timeout=HANG_S,
            legacy=True,
            proxy=None,
        )


class Talk:
    """An upgraded connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.out = {1: b"", 2: b"", 3: b""}

    def send(self, channel: int, data: bytes) -> None:
        """Send something on a channel."""
        self.socket.send(bytes([channel]) + data)

    def until(self, text: bytes) -> bytes:
        """Read until there is such a text; return all that was read."""
        while text not in self.out[1]:
            self._read()
        return self.out[1]

    def finish(self) -> Object:
        """Read to the end; return the last word."""
        try:
            while True:
                self._read()
        except ConnectionClosed:
            last: Object = json.loads(self.out[3])
            return last

    def _read(self) -> None:
        message = self.socket.recv(timeout=HANG_S)
        assert isinstance(message, bytes), message
        self.out[message[0]] += message[1:]
