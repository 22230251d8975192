"""What the wall round a container costs at its start, layer by layer. `python -m proof.benches.walls [ROUNDS]`.

Measured is the time from the order to the shim's word that the command runs, all walls in turn in each round, so
that other work on the machine troubles all of them alike.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from node.agent import reach
from node.containers import control_groups
from node.containers.control_groups import Groups
from node.containers.spawn import Spawner
from node.paths import Layout
from node.shim import users
from node.shim.network import Network, Plan
from node.shim.order import Group, Order, Wall
from proof.escapes.attempts import layers
from proof.escapes.breaking_out import walls

ROUNDS = 200


def run(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Return the median, and the fastest, time of a start behind each wall in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="volcano-") as folder:
        layout = Layout(Path(folder))
        groups = control_groups.find(layout, leaves=False)
        cgroups = control_groups.ControlGroups(layout, groups)
        spawner = Spawner()
        try:
            tried = {words: (wall, False) for words, wall in walls(spawner.probe(layout.root / "probe")).items()}
            if groups.home:
                tried |= {f"{words} + control group": (wall, True) for words, (wall, _) in list(tried.items())[:2]}
            network = Network.received(spawner.start_network(Plan(folder, "")))
            taken: dict[str, list[float]] = {words: [] for words in tried}
            for count in range(rounds):
                for index, (words, (wall, is_grouped)) in enumerate(tried.items()):
                    directory = layout.attempt(f"{count}-{index}", "main", 0)
                    directory.mkdir(parents=True)
                    given = groups if is_grouped else Groups(), network if wall.networks else None
                    taken[words].append(_start(spawner, Path(folder), directory, wall, *given))
                    cgroups.forget(f"{count}-{index}")
        finally:
            network.close()
            spawner.close()
            cgroups.close()
    return {
        words: {"median_ms": round(statistics.median(times), 2), "least_ms": round(min(times), 2)}
        for words, times in taken.items()
    }


def _start(
    spawner: Spawner, folder: Path, directory: Path, wall: Wall, groups: Groups, network: Network | None
) -> float:
    begun = time.perf_counter()
    group = None
    if groups.home:
        home = control_groups.of_pod(groups, directory.parents[1].name, 1000)
        group = Group(f"{home}/main-0", 39, 100_000, "cpuset" in groups.controllers)
    order = Order(
        str(directory), ["true"], {"PATH": os.defpath}, "/", read=reach.of_this_machine(folder), state=str(folder),
        ids=users.subordinate(0), memory_bytes=100 << 20, cpus=1, group=group, **layers(wall),
    )  # fmt: skip
    notice = spawner.start(order, network)
    os.set_blocking(notice, True)
    message = os.read(notice, 4096)
    taken = (time.perf_counter() - begun) * 1000
    assert message.startswith(b"started"), message
    while os.read(notice, 4096):
        pass
    os.close(notice)
    return taken


if __name__ == "__main__":
    json.dump(run(int(sys.argv[1]) if sys.argv[1:] else ROUNDS), sys.stdout, indent=1)
