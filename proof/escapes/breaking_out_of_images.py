"""The stage of `breaking_out.py` for containers of images, which are ordered as the agent orders them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kube.kinds.core import Pod
from node.containers import engines
from node.containers.context import NodeContext
from node.containers.device_holders import DeviceHolders
from node.containers.found_devices import FoundDevices
from node.containers.image_orders import PreparedContainer, order
from node.containers.images import LocalImage
from node.containers.user_ranges import UserRanges
from node.paths import Layout
from node.pods.lookup import StoreLookup
from node.rules.lifecycle import Start
from node.shim.order import Wall
from node.status import PodAddress
from node.volumes.volumes import Prepared
from proof.escapes import breaking_out
from proof.escapes.attempts import Attempts
from proof.harness import engine


class Stage(breaking_out.Stage):
    """The stage of containers that an engine runs."""

    def __init__(self, root: Path, attempts: Attempts, wall: Wall, found: engines.EngineLookup) -> None:
        super().__init__(root, attempts)
        self.layout = Layout(self.state)
        self.layout.root.mkdir()
        self.layout.resolver.touch()
        devices = DeviceHolders(self.layout, FoundDevices(finders=(), folders=()))
        ranges = UserRanges(self.layout.root / "users")
        self.context = NodeContext(self.layout, StoreLookup(), wall, (), {}, devices, ranges, found)

    def _start(
        self, *argv: str, wall: Wall, whose: Path, directory: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Path:
        spec = self.order(wall, whose=whose)
        tools = Prepared(self.tools, read_only=True)
        volumes = {str(self.tools): tools} | {one.target: Prepared(Path(one.source)) for one in spec["binds"]}
        main = {
            "name": "main", "image": engine.PYTHON, "command": [engine.INTERPRETER, *argv[1:]],
            "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
            "volumeMounts": [{"name": path, "mountPath": path} for path in volumes],
        }  # fmt: skip
        names = {"name": whose.name, "namespace": whose.name, "uid": whose.name}
        pod = msgspec.convert({"metadata": names, "spec": {"containers": [main]}}, Pod)
        ready = PreparedContainer(
            directory or self._directory(), volumes, (), {}, LocalImage(engine.PYTHON, engine.PYTHON), spec["network"]
        )  # fmt: skip
        start = Start(pod.spec.containers[0], self.count, 0)
        return self.attempts.begin(order(pod, start, PodAddress("127.0.0.1", "127.0.0.1", 0), self.context, ready))


def table(folder: Path, runs: engine.Podman) -> dict[str, bool]:
    """Return by attack whether it gets through with an engine, for the user who runs this."""
    attempts = Attempts(folder)
    try:
        wall = attempts.spawner.probe(folder / "probe")
        wall = wall._replace(networks="closed" if wall.networks else "")
        runs.make(engine.PYTHON, files=engine.python())
        with contextlib.closing(Stage(folder, attempts, wall, runs.found(wall))) as stage:
            return stage.reached(wall, engine.SETUID)
    finally:
        attempts.close()


def main() -> None:
    """Write what podman lets through for the user who runs this, or why it does not work."""
    with engine.working("podman") as runs:
        result = table(Path(sys.argv[1]), runs) if runs else engines.find("podman", Wall()).why
    json.dump(result, sys.stdout)
