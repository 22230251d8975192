"""What nodes report that is not true comes to nothing where versions and uids tell, and is put right where it can be."""

import pytest

from kube.resources import PODS
from proof.simulation import command, story
from proof.simulation.checks.lies import LIES
from proof.simulation.people.request import create, delete
from proof.simulation.transcript import LIE_TEXTS

S = 1_000_000
SIMULATED = {"ui.volcano.sh/simulated": "true"}


def _pod(name, **spec):
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox", **spec.pop("container", {})}],
            **spec,
        },
    }
    return story.Ask(create("alice", PODS, body, f"alice makes the pod {name}"))


def _played(path, *moves):
    """Return what is told of each object in a story, by name."""
    scenario = story.Story(story.Setup(nodes=1), (story.Rest(2 * S), *moves, story.Settle()))
    path.write_bytes(story.encode(scenario))
    done = command.play("--story", path, "--tell")
    assert "nothing is wrong" in done.stdout, done.stdout + done.stderr
    return done.stdout


REAL = {"container": {"command": ["sleep", "3"]}}


@pytest.mark.timeout(300)
def test_lies_that_nobody_can_tell_from_the_truth_are_put_right(tmp_path):
    moves = (
        _pod("p", **REAL),
        story.Rest(6 * S),
        story.Lie("again"),
        story.Kill("fleet"),
        story.Rest(50 * S),
        story.Lie("ready"),
    )
    output = _played(tmp_path / "story.json", *moves, story.Rest(30 * S))
    assert "pods/default/p  phase: Succeeded → Running" in output
    assert "pods/default/p  phase: Running → Succeeded, ready: True → False" in output.partition("a pod runs again")[2]
    assert "nodes/sim-0001  ready: True → Unknown" in output.partition("is called Ready")[2]


@pytest.mark.timeout(300)
def test_old_reports_write_nothing(tmp_path):
    gone = {"metadata": {"name": "p", "namespace": "default"}}
    moves = (_pod("p", nodeSelector=SIMULATED), story.Rest(20 * S), story.Lie("stale"), story.Lie("twice"))
    moves += (
        story.Ask(delete("alice", PODS, gone, "alice deletes p")),
        story.Rest(S),
        _pod("p", nodeSelector=SIMULATED),
    )
    output = _played(tmp_path / "story.json", *moves, story.Lie("gone"))
    for what in ("stale", "twice", "gone"):
        line = output.partition(LIE_TEXTS[what])[2].splitlines()[1]
        assert " s (" in line, "the next line is that of the next move"


def test_each_lie_has_words():
    assert set(LIE_TEXTS) == set(LIES)
