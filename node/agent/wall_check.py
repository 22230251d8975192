"""Trying the wall of this machine: a container is run behind what the machine lets be put up, and tries to get out.

Each attempt is a small function that says whether it got through. They run in the container, by their source, so
they import what they need and know nothing else. `proof/escapes/breakouts.py` tries much more; these are for whoever
asks on a machine of his own.
"""

from __future__ import annotations

import inspect
import json
import os
import select
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from node.agent import reach
from node.containers.networks import Networks
from node.containers.spawn import Spawner
from node.paths import Layout
from node.shim import users
from node.shim.network import Network
from node.shim.order import Group, Order, Wall
from node.shim.shim import read_json

WAIT_S = 60.0
LIMIT = 64 << 20  # bytes of memory
CONTENT = "what no container may read"
BY_NETWORK = "connect to a port of the machine"  # tried only in a network of its own


class Attempt(NamedTuple):
    """What a container tried, and whether it got through."""

    words: str
    got_through: bool


def _reads_state(at: dict[str, Any]) -> bool:
    with open(at["state"] + "/secret") as file:  # noqa: PTH123
        return bool(file.read())


def _names_state(at: dict[str, Any]) -> bool:
    return "secret" in os.listdir(at["state"])  # noqa: PTH208


def _reads_shadow(at: dict[str, Any]) -> bool:
    with open("/etc/shadow") as file:  # noqa: PTH123
        return bool(file.read())


def _changes_mode(at: dict[str, Any]) -> bool:
    os.chmod(at["machine"], 0o666)  # noqa: PTH101, S103
    return True


def _writes_programs(at: dict[str, Any]) -> bool:
    with open("/usr/.volcano-ui-check", "w"):  # noqa: PTH123
        os.unlink("/usr/.volcano-ui-check")  # noqa: PTH108
        return True


def _connects(at: dict[str, Any]) -> bool:
    socket.socket(socket.AF_UNIX).connect(at["socket"])
    return True


def _connects_without_path(at: dict[str, Any]) -> bool:
    socket.socket(socket.AF_UNIX).connect("\0" + at["abstract"])
    return True


def _connects_by_network(at: dict[str, Any]) -> bool:
    socket.create_connection(("127.0.0.1", at["port"]), 5).close()
    return True


def _signals(at: dict[str, Any]) -> bool:
    os.kill(at["outside"], 0)
    return True


def _sees_commands(at: dict[str, Any]) -> bool:
    with open(f"/proc/{at['outside']}/cmdline") as file:  # noqa: PTH123
        return bool(file.read() == at["words"])


def _mounts(at: dict[str, Any]) -> bool:
    import ctypes

    return bool(ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)


def _makes_namespaces(at: dict[str, Any]) -> bool:
    import ctypes

    return bool(ctypes.CDLL(None).unshare(0x10000000) == 0)


ATTEMPTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "read a file of the cluster": _reads_state,
    "list the state directory": _names_state,
    "read the hashes of passwords": _reads_shadow,
    "change the mode of a file of the same user": _changes_mode,
    "write among the machine's programs": _writes_programs,
    "connect to a socket in a directory of the machine": _connects,
    "connect to a socket without a path": _connects_without_path,
    BY_NETWORK: _connects_by_network,
    "signal a process outside": _signals,
    "see the command line of a process outside": _sees_commands,
    "mount something": _mounts,
    "make a user namespace": _makes_namespaces,
}
_PROGRAM = """
import json, os, socket, sys
from typing import Any
at = json.loads(sys.argv[1])
{functions}
found = {{}}
for words, attempt in {table}:
    try:
        found[words] = bool(attempt(at))
    except Exception:
        found[words] = False
print(json.dumps(found))
"""


def program() -> str:
    """Return what runs in the container."""
    sources = (inspect.getsource(each) for each in ATTEMPTS.values())
    table = ", ".join(f"({words!r}, {each.__name__})" for words, each in ATTEMPTS.items())
    return _PROGRAM.format(functions="\n".join(sources), table=f"[{table}]")


def run_attempts(spawner: Spawner, wall: Wall) -> list[Attempt]:
    """Run a container behind a wall and return what it tried; OSError says why it did not run."""
    with tempfile.TemporaryDirectory(prefix="volcano-ui-check-", dir="/var/tmp") as folder:
        root = Path(folder)
        state, machine, directory = root / "state", root / "machine", root / "attempt"
        for each in (state, directory):
            each.mkdir()
        for file in (state / "secret", machine):
            file.write_text(CONTENT)
        with (
            closing(_listener(f"{folder}/socket")),
            closing(_listener(f"\0{folder}")),
            closing(socket.create_server(("127.0.0.1", 0))) as server,
            closing(Networks(Layout(root), spawner, "", wall.networks)) as networks,
        ):
            at = {
                "state": str(state), "machine": str(machine), "socket": f"{folder}/socket", "abstract": folder,
                "outside": os.getpid(), "words": Path("/proc/self/cmdline").read_text(),
                "port": server.getsockname()[1],
            }  # fmt: skip
            order = Order(
                str(directory), [sys.executable, "-I", "-c", program(), json.dumps(at)], {"PATH": os.defpath}, "/",
                mounts=wall.mounts, pids=wall.pids, landlock=wall.landlock, seccomp=wall.seccomp,
                state=str(state), ids=users.subordinate(0), read=(os.path.realpath(sys.prefix), *reach.of_this_machine(state)),
            )  # fmt: skip
            _run(spawner, order, networks.of("check") if wall.networks else None)
        return [each for each in _read(directory) if wall.networks or each.words != BY_NETWORK]


def exceeds(spawner: Spawner, group: Group) -> bool:
    """Run a container in a group that takes twice the memory that it may have; tell whether it got it."""
    with tempfile.TemporaryDirectory(prefix="volcano-ui-check-", dir="/var/tmp") as folder:
        argv = ["sh", "-c", f"head -c {2 * LIMIT} /dev/zero | tail"]
        _run(spawner, Order(folder, argv, {"PATH": os.defpath}, "/", memory_bytes=LIMIT, group=group))
        return read_json(f"{folder}/status.json").get("reason") != "OOMKilled"


def _run(spawner: Spawner, order: Order, network: Network | None = None) -> None:
    notice = spawner.start(order, network)
    os.set_blocking(notice, True)
    while select.select([notice], [], [], WAIT_S)[0] and os.read(notice, 4096):
        pass
    os.close(notice)


def _listener(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    return listener


def _read(directory: Path) -> list[Attempt]:
    output = "".join(file.read_text() for file in sorted(directory.glob("log.*")))
    for line in output.splitlines():
        text = line.split(" ", 3)[3]
        if text.startswith("{"):
            return [Attempt(words, got) for words, got in json.loads(text).items()]
    status = read_json(f"{directory}/status.json")
    raise OSError(f"the container did not run: {status.get('message') or output}")
