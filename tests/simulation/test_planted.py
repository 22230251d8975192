"""The simulation bites: what is wrong on purpose is found, and the same story is right without it."""

from pathlib import Path

import pytest

from proof.simulation import command, stories, story
from proof.simulation.planted import PLANTS, planted


@pytest.mark.parametrize("name", stories.names())
def test_kept_story_can_be_read(name):
    scenario = story.decode(stories.path(name).read_bytes())
    assert scenario.plant
    assert scenario.broken
    assert scenario.about
    assert stories.path(name).read_bytes() == story.encode(scenario) + b"\n"


def test_each_planted_defect_has_a_story_and_is_told_of():
    """Its name stands in a table of docs/design/simulation.md: at the beginning of a row, or at its end."""
    doc = (Path(__file__).parents[2] / "docs/design/simulation.md").read_text()
    assert sorted(PLANTS) == stories.names()
    assert [name for name in PLANTS if f"\n| {name}: " not in doc and f"| {name} |\n" not in doc] == []


@pytest.mark.parametrize("name", PLANTS)
def test_planted_defect_replaces_what_the_product_has(name):
    with planted(name):
        pass


@pytest.mark.timeout(300)
def test_planted_defect_is_found_from_a_seed():
    """In the first world from there; how long that takes says more about the machine."""
    done = command.play("--plant", "gang-short", "--seed", 2, "--hours", 0.2, "--seconds", 1e6, "--plays", 0)
    assert done.returncode == 0, done.stdout
    assert done.stdout.partition(":")[0] in ("gang is bound whole", "gang runs whole"), done.stdout
