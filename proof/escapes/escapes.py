"""Attacks on the process that mounts, without anything that has looked before: for tests, and for a user without rights.

The standard library and the shim are all that is imported, so that this can
run where nothing else can be read.
"""

from __future__ import annotations

from pathlib import Path

from node.shim.order import Bind
from proof.escapes.attempts import Attempts

SECRET = "hush"


def stage(attempts: Attempts) -> tuple[Path, Path]:
    """Make a state directory with a secret and two volumes, and a place that belongs to nobody's pod."""
    state, outside = attempts.root / "state", attempts.root / "outside"
    for path in (state / "v", state / "w", state / "home", outside, attempts.root / "allowed"):
        path.mkdir(parents=True)
    (state / "secret-key").write_text(SECRET)
    (outside / "secret-key").write_text("private")
    for volume in (state / "v", state / "w"):
        (volume / "state").symlink_to(state)
        (volume / "outside").symlink_to(outside)
        (volume / "up").symlink_to("..")
    for name, target in (("state", state), ("outside", outside), ("up", attempts.root)):
        (attempts.root / "allowed" / name).symlink_to(target)
    return state, outside


def binds(attempts: Attempts) -> dict[str, list[Bind]]:
    """Return the binds of each attack by its name; all would show the secret at /loot or make something outside."""
    state, allowed = attempts.root / "state", attempts.root / "allowed"
    volume, other = str(state / "v"), str(state / "w")
    mine = (str(allowed),)
    return {
        "subPath to the state directory": [Bind(volume, "/loot", below="state")],
        "subPath up": [Bind(volume, "/loot", below="up")],
        "subPath made outside": [Bind(volume, "/loot", below="outside/made")],
        "mount point made outside": [Bind(volume, "/loot"), Bind(other, "/loot/outside/made")],
        "mount point made in the state directory": [Bind(volume, "/loot"), Bind(other, "/loot/state/made")],
        "hostPath to the state directory": [Bind(str(allowed / "state"), "/loot", within=("/",))],
        "hostPath around it": [Bind(str(allowed / "up"), "/loot", within=("/",))],
        "hostPath out of what is allowed": [Bind(str(allowed / "outside"), "/loot", within=mine)],
        "hostPath made outside": [Bind(str(allowed / "outside" / "made"), "/loot", within=mine, make="directory")],
        "hostPath up": [Bind(f"{allowed}/../outside", "/loot", within=mine)],
    }


def escaped(attempts: Attempts, mode: str) -> dict[str, tuple[str, list[str]] | None]:
    """Try every attack; return what each brought, which is nothing where it was refused."""
    state, outside = stage(attempts)
    found: dict[str, tuple[str, list[str]] | None] = {}
    for name, given in binds(attempts).items():
        order = {"mounts": mode, "binds": tuple(given), "state": str(state)}
        directory = state / "attempts" / str(len(found))
        directory.mkdir(parents=True)
        attempts.shell("cat /loot/secret-key /loot/*/secret-key", directory=directory, **order)
        status = attempts.end(directory)
        made = [str(path) for path in (outside / "made", state / "made") if path.exists()]
        loot = attempts.output(directory).decode()
        found[name] = (loot, made) if loot or made or status["reason"] != "StartError" else None
    return found
