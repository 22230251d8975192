"""The same seed gives the same log, byte for byte, and stories are kept; `make simulate` plays worlds for what is promised."""

import re

import pytest

from proof.simulation import command, stories, story

S = 1_000_000


def _play(*options, typed=""):
    done = command.play(*options, typed=typed)
    assert not done.stderr, done.stderr
    return done


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options",
    [("--seed", 36, "--moves", 1500), ("--seed", 13, "--moves", 500, "--remote")],
    ids=["tight, and with pages", "tight, and elsewhere"],
)
def test_the_same_seed_gives_the_same_log(tmp_path, options):
    options = (*options, "--hours", 0.02, "--keep", tmp_path)
    logs = [re.findall(r"log (\w{32})", _play(*options).stdout) for _ in range(2)]
    assert logs[0]
    assert logs[0] == logs[1]


@pytest.mark.timeout(300)
def test_debugger_opens_where_a_story_goes_wrong():
    arguments = ("--story", stories.path("two-leaders"), "--plant", "two-leaders", "--debug")
    done = _play(*arguments, typed="p node\nq\n")
    assert done.returncode == 1
    assert "node not over its allocatable" in done.stdout
    assert "(Pdb) 'sim-0001'" in done.stdout


@pytest.mark.timeout(300)
def test_what_a_world_raises_by_itself_has_no_place_in_the_product():
    """So the story goes by what is wrong, whatever the world's methods are called."""
    name = "agent-never-rests"
    done = _play("--story", stories.path(name), "--plant", name)
    assert done.returncode == 1
    assert re.search(r"^Endless: ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("setup", [story.Setup(nodes=3), story.Setup(nodes=3, is_remote=True)])
def test_a_story_is_kept_as_it_was_played(tmp_path, setup):
    moves = (story.Rest(2 * S), story.Kill("jobs"), story.Pass(S), story.Start("jobs"), story.Settle())
    path = tmp_path / "story.json"
    path.write_bytes(story.encode(story.Story(setup, moves)))
    assert story.decode(path.read_bytes()).moves == moves
    output = _play("--story", path, "--tell").stdout
    assert "jobs is killed" in output
    assert "nothing is wrong" in output
