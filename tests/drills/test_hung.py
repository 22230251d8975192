"""A whole system whose processes stand still, each of them."""

from __future__ import annotations

import contextlib
import os
import signal

import httpx

from proof.harness.waiting import until
from proof.systems.system import NAMES, running


def test_each_program_that_stands_still_is_replaced(tmp_path):
    with running(tmp_path / "data", nodes=1) as system:
        before = system.children()
        assert set(before) == set(NAMES)
        for pid in before.values():
            os.kill(pid, signal.SIGSTOP)

        def replaced():
            now = system.children()
            return set(now) == set(before) and not set(now.values()) & set(before.values())

        until(replaced, what=lambda: f"{before} → {system.children()}")
        until(lambda: healthy(system.base), what="a web server that is well")
        told = "".join(system.output)
        assert told.count("gave no sign of life for 20 s; killing it") == len(NAMES)


def healthy(base):
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{base}/healthz", trust_env=False).status_code == 200
    return False
