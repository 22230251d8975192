"""What the wall round a container costs at its start, layer by layer. `python -m tests.load.walls [ROUNDS]`.

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
from node.agent.spawn import Spawner
from node.shim import users
from node.shim.network import Network, Plan
from node.shim.order import Order
from tests.node.attempts import layers
from tests.node.breaking_out import walls

ROUNDS = 200


def run(rounds=ROUNDS):
    """Return the median, and the fastest, time of a start behind each wall in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="volcano-") as folder:
        spawner = Spawner()
        try:
            tried = walls(spawner.probe(Path(folder) / "probe"))
            network = Network.received(spawner.start_network(Plan(folder, "")))
            taken = {words: [] for words in tried}
            for count in range(rounds):
                for place, (words, wall) in enumerate(tried.items()):
                    directory = Path(folder, "pods", f"{count}-{place}")
                    directory.mkdir(parents=True)
                    taken[words].append(_start(spawner, Path(folder), directory, wall, network))
        finally:
            network.close()
            spawner.close()
    return {
        words: {"median_ms": round(statistics.median(times), 2), "least_ms": round(min(times), 2)}
        for words, times in taken.items()
    }


def _start(spawner, folder, directory, wall, network):
    order = Order(
        str(directory), ["true"], {"PATH": os.defpath}, "/", read=reach.of_this_machine(folder), state=str(folder),
        ids=users.subordinate(0), **layers(wall),
    )  # fmt: skip
    begun = time.perf_counter()
    notice = spawner.start(order, network if wall.networks else None)
    os.set_blocking(notice, True)
    said = os.read(notice, 4096)
    taken = (time.perf_counter() - begun) * 1000
    assert said.startswith(b"started"), said
    while os.read(notice, 4096):
        pass
    os.close(notice)
    return taken


if __name__ == "__main__":
    json.dump(run(int(sys.argv[1]) if sys.argv[1:] else ROUNDS), sys.stdout, indent=1)
