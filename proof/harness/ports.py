"""Ports for programs that are told a number and open it later, or open it again."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

FIRST = 10_000


def free_port() -> int:
    """Return a port that nobody takes meanwhile, whatever runs beside: it is this process's until that ends.

    The kernel gives none of these to connections; other test processes see the
    claim, a name that goes away with who holds it.
    """
    choices = range(FIRST, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
    return next(port for port in random.SystemRandom().sample(choices, len(choices)) if _claim(port))


def _claim(port: int) -> bool:
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0volcano-ui-tests-port-{port}")
        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    claim.detach()  # the descriptor stays open until the process ends, which gives the name back
    return True
