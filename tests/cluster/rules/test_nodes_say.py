from __future__ import annotations

import pytest

from cluster.rules.node_engines import NodeEngine, written
from cluster.rules.node_walls import NodeWall


@pytest.mark.parametrize(
    ("engine", "why", "sentence"),
    [
        ("podman 4.3.1", "", "Images run with podman 4.3.1."),
        ("", "podman is not installed", "Images do not run, commands do: podman is not installed."),
        ("", "VOLCANO_UI_ENGINE=none", "Images do not run, commands do: VOLCANO_UI_ENGINE=none."),
        ("", "", "Images do not run, commands do."),
    ],
)
def test_engines_are_told_in_sentences_that_say_nothing_twice(engine, why, sentence):
    assert NodeEngine("a", written(engine, why)).sentence == sentence


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ("holds: mounts", "The wall round pods holds: mounts."),
        ("none: pods reach all", "There is no wall round pods: pods reach all."),
    ],
)
def test_walls_are_told_in_sentences(says, sentence):
    assert NodeWall("a", says).sentence == sentence
