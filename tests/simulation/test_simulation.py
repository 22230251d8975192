"""Worlds from fixed seeds hold what is promised, and the same seed gives the same log, byte for byte."""

from __future__ import annotations

import re

import pytest

from tests.campaign import scaled
from tests.simulation import command, stories, story

S = 1_000_000


def _play(*options, typed=""):
    done = command.play(*options, typed=typed)
    assert not done.stderr, done.stderr
    return done


@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(11, 11 + scaled(1, 10)))
def test_world_holds_what_is_promised(seed, tmp_path):
    done = _play("--seed", seed, "--hours", 0.05, "--keep", tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(300)
def test_the_same_seed_gives_the_same_log(tmp_path):
    options = ("--seed", 36, "--hours", 0.02, "--moves", 1500, "--keep", tmp_path)  # tight, and with pages
    logs = [re.findall(r"log (\w{32})", _play(*options).stdout) for _ in range(2)]
    assert logs[0]
    assert logs[0] == logs[1]


@pytest.mark.timeout(300)
def test_debugger_opens_where_a_story_goes_wrong():
    told = ("--story", stories.path("two-leaders"), "--plant", "two-leaders", "--debug")
    done = _play(*told, typed="p node\nq\n")
    assert done.returncode == 1
    assert "node not over its allocatable" in done.stdout
    assert "(Pdb) 'sim-0001'" in done.stdout


@pytest.mark.timeout(300)
def test_a_story_is_kept_as_it_was_played(tmp_path):
    moves = (story.Rest(2 * S), story.Kill("jobs"), story.Pass(S), story.Start("jobs"), story.Settle())
    path = tmp_path / "story.json"
    path.write_bytes(story.encode(story.Story(story.Setup(nodes=3), moves)))
    assert story.decode(path.read_bytes()).moves == moves
    told = _play("--story", path, "--tell").stdout
    assert "jobs is killed" in told
    assert "nothing is wrong" in told
