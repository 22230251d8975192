"""Which shims live, by their claims: standard library only, for a process that has nothing else."""

from __future__ import annotations

from pathlib import Path

from node.shim import linux


def shim_of(directory: Path) -> int | None:
    """Return the living shim that has the attempt, 0 when it is dead, None when there never was one."""
    try:
        text = (directory / "claim").read_text()
        if not text:  # an agent's that was killed while it took the order back
            return None
        pid, ticks = map(int, text.split())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return 0
    return pid if ticks and linux.start_ticks(pid) == ticks else 0


def shims(pods: Path) -> dict[int, str]:
    """Return the process ids of all living shims below a node's directory of pods, with the uids of their pods."""
    # Beside the containers, by names that begin with an underscore, there are directories that pods write into.
    claims = pods.glob("*/[!_]*/*/claim")
    return {pid: claim.parents[2].name for claim in claims if (pid := shim_of(claim.parent))}
