"""Parts of the simulation by themselves: processes keep apart, requests meet troubles, and shrinking finds the moves that matter."""

import random

import pytest

from proof.simulation import shrink, story, transcript
from proof.simulation.parts import troubles
from proof.simulation.parts.broker import Broker
from proof.simulation.parts.machine import Processes
from proof.simulation.parts.processes import NodeAgent
from proof.simulation.parts.troubles import Troubles
from proof.simulation.parts.virtual import VirtualClock
from proof.simulation.story import Trouble
from tests.tables import cases


@pytest.fixture
def agents(tmp_path):
    machine, broker = Processes(random.Random(1)), Broker(VirtualClock())
    found = [NodeAgent(name, machine, tmp_path, broker) for name in ("agent", "agent+2")]
    yield found
    for each in found:
        each.die()


def test_second_agent_waits_for_the_end_of_the_first(agents):
    first, second = agents
    assert (first.is_ready, second.is_ready, second.due) == (True, False, None)
    second.step()  # it waits: whatever the first does meanwhile, also nothing
    assert second.works is None
    first.die()
    assert second.is_ready


def test_agent_that_dies_while_it_waits_leaves_the_other_alone(agents):
    first, second = agents
    assert first.is_ready
    second.die()
    assert first.is_ready


@cases("reads_on, met", {
    "requests meet as many troubles as there are": ((False, False, False), ["busy", "busy", None]),
    "only who reads on meets that his version is forgotten": ((False, True, True), ["busy", "forgotten", "busy"]),
})  # fmt: skip
def test_troubles(reads_on, met):
    coming = Troubles()
    coming.add(Trouble(troubles.FORGOTTEN, 1))
    coming.add(Trouble("busy", 2))
    found = [coming.next(reads_on=each) for each in reads_on]
    assert [each and each.what for each in found] == met
    coming.clear()
    assert coming.next(reads_on=True) is None, "all faults end"


@pytest.mark.parametrize("what", troubles.KINDS)
def test_each_trouble_is_told_in_words(what):
    assert transcript.WORDS[Trouble](Trouble(what, 3, 1_000_000))


NOISE = [story.Run("beat"), story.Pass(1000), story.Kill("fleet"), story.Rest(5)]
ASK = story.Run("jobs", between=(story.Kill("agent"), story.Start("beat")), dies="writes", at=2)
TWO = [story.Start("a"), story.Start("b")]


def noisy(*needed):
    chance = random.Random(1)
    moves = [chance.choice(NOISE) for _ in range(200)]
    for number, move in enumerate(needed):
        moves.insert(40 * (number + 1), move)
    return moves


@cases("moves, fails, short", {
    "two moves in their order": (noisy(*TWO), lambda moves: [m for m in moves if isinstance(m, story.Start)] == TWO, TWO),
    "what is inside of a move": (
        noisy(ASK), lambda moves: any(story.Kill("agent") in getattr(move, "between", ()) for move in moves),
        [story.Run("jobs", between=(story.Kill("agent"),), at=2)],
    ),
    "nothing matters": (noisy(), lambda moves: True, []),
})  # fmt: skip
def test_what_is_left_is_what_matters(moves, fails, short):
    found = shrink.shrink(moves, fails)
    assert [m for m in found if not isinstance(m, story.Rest)] == short


def test_the_number_of_plays_is_bounded():
    played = []
    shrink.shrink(noisy(), lambda moves: played.append(1) or len(moves) > 150, plays=25)
    assert len(played) <= 25
