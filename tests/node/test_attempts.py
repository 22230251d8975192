"""What is read of an attempt on disk."""

from __future__ import annotations

from node import attempts
from node.shim.shim import write_json


def test_everybody_reads_the_same_of_an_attempt_whose_shim_was_killed_while_it_was_stopped(tmp_path):
    directory = tmp_path / "0"
    directory.mkdir()
    (directory / "claim").write_text("0 0\n")
    write_json(f"{directory}/started.json", {"startedAt": 1, "streak": 2})
    write_json(f"{directory}/stop.json", {"reason": "DeadlineExceeded", "grace": 30.0})
    first, second = attempts.read(directory, 5), attempts.read(directory, 9)
    assert first == second
    assert first.attempt.stopped == "DeadlineExceeded"
