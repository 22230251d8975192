"""Living shims, as their claims tell whoever starts and stops the agent."""

from __future__ import annotations

import os

from node import shim_claims
from node.shim import linux


def claim(folder, text):
    folder.mkdir(parents=True)
    (folder / "claim").write_text(text)


def test_shims_that_live_are_found_by_their_claims(tmp_path):
    ticks = linux.start_ticks(os.getpid())
    claim(tmp_path / "uid" / "main" / "0", f"{os.getpid()} {ticks + 1}\n")
    claim(tmp_path / "uid" / "main" / "1", f"{os.getpid()} {ticks}\n")
    assert shim_claims.shims(tmp_path) == {os.getpid(): "uid"}


def test_what_pods_write_beside_is_no_claim(tmp_path):
    folder = tmp_path / "uid" / "_volumes" / "data"
    claim(folder, f"{os.getpid()} {linux.start_ticks(os.getpid())}\n")
    other = tmp_path / "uid" / "_tmp" / "mine"
    other.mkdir(parents=True)
    os.mkfifo(other / "claim")  # whoever opens it waits
    assert shim_claims.shims(tmp_path) == {}
