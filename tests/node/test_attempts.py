"""What is read of an attempt on disk."""

from __future__ import annotations

from node import attempts as disk
from node.attempt import AttemptState
from node.shim.shim import write_json


def test_everybody_reads_the_same_of_an_attempt_whose_shim_was_killed_while_it_was_stopped(tmp_path):
    directory = tmp_path / "0"
    directory.mkdir()
    (directory / "claim").write_text("0 0\n")
    write_json(f"{directory}/started.json", {"startedAt": 1, "streak": 2})
    write_json(f"{directory}/stop.json", {"reason": "DeadlineExceeded", "grace": 30.0})
    first, second = disk.read(directory, 5), disk.read(directory, 9)
    assert first == second
    assert first.attempt.stopped == "DeadlineExceeded"


def test_shim_that_comes_after_its_order_was_taken_back_is_refused(attempts):
    directory = attempts.directory()
    disk.withdraw(directory.parent)
    attempts.shell("echo ran >> ran", directory=directory)
    assert attempts.said.startswith("refused")
    assert not (attempts.root / "work" / "ran").exists()


def test_order_can_be_given_again_after_it_was_taken_back(attempts):
    directory = attempts.directory()
    disk.withdraw(directory.parent)
    directory.mkdir()
    attempts.shell("exit 4", directory=directory)
    assert attempts.end(directory)["exitCode"] == 4


def test_order_is_taken_back_although_the_agent_that_began_to_was_killed(attempts):
    directory = attempts.directory()
    (directory / "claim").touch()
    assert disk.read(directory, 0) is None
    disk.withdraw(directory.parent)
    assert not directory.exists()


def test_attempt_that_runs_is_not_taken_back(attempts):
    directory = attempts.shell("sleep 60")
    disk.withdraw(directory.parent)
    assert disk.read(directory, 0).attempt.state is AttemptState.RUNNING
    attempts.stop(directory, grace=0)
    attempts.end(directory)
    disk.withdraw(directory.parent)
    assert disk.read(directory, 0).attempt.state is AttemptState.ENDED
