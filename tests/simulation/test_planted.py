"""The simulation bites: what is wrong on purpose is found, and the same story is right without it."""

from __future__ import annotations

import pytest

from kube.resources import CONFIGMAPS
from tests.simulation import story
from tests.simulation.command import play
from tests.simulation.request import create, delete, patch

S = 1_000_000


def _map(name, **metadata):
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "data": {"key": "1"}}


def _make(body):
    return story.Ask(create("admin", CONFIGMAPS, body, "admin makes a ConfigMap"))


def _generated():
    body = {"metadata": {"generateName": "run-", "namespace": "default"}, "data": {"key": "1"}}
    return [_make(body) for _ in range(8)]


def _disowned():
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "uid of configmaps/default/a"}
    orphan = {"metadata": {"ownerReferences": None}}
    return [
        _make(_map("a")),
        _make(_map("b", ownerReferences=[owner])),
        story.Rest(S),
        story.Ask(patch("admin", CONFIGMAPS, _map("b"), orphan, "b belongs to nobody")),
        story.Rest(S),
        story.Ask(delete("admin", CONFIGMAPS, _map("a"), "a goes")),
        story.Rest(5 * S),
    ]


def _quiet():
    return [_make(_map("a")), story.Rest(200 * S), story.Settle()]


STORIES = {
    "a1": (_generated, "one life of each object"),
    "a2": (_disowned, "nothing goes with somebody else"),
    "a4": (_quiet, "history is forgotten"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", STORIES)
def test_planted_defect_is_found(name, tmp_path):
    """Each story takes a few seconds: a world from its beginning, once with the defect and once without."""
    moves, found = STORIES[name]
    path = tmp_path / "story.json"
    path.write_bytes(story.encode(story.Story(story.Setup(is_tight=True), (story.Rest(2 * S), *moves()))))
    right, wrong = play("--story", path), play("--story", path, "--plant", name)
    assert (right.returncode, right.stdout.lstrip().partition(";")[0]) == (0, "nothing is wrong"), (
        right.stdout
    )
    assert (wrong.returncode, wrong.stdout.lstrip().partition(":")[0]) == (1, found), wrong.stdout


@pytest.mark.timeout(300)
def test_planted_defect_is_found_from_a_seed():
    """In the first world; how long that takes says more about the machine."""
    done = play("--plant", "gang-short", "--seed", 1, "--hours", 0.2, "--seconds", 1e6, "--plays", 0)
    assert done.returncode == 0, done.stdout
    assert done.stdout.partition(":")[0] in ("gang is bound whole", "gang runs whole"), done.stdout
