"""Shrinking finds the moves that matter."""

from __future__ import annotations

import random

import pytest

from proof.simulation import shrink, story

NOISE = [story.Run("beat"), story.Pass(1000), story.Kill("fleet"), story.Rest(5)]
ASK = story.Run("jobs", between=(story.Kill("agent"), story.Start("beat")), dies="writes", at=2)


def noisy(*needed):
    chance = random.Random(1)
    moves = [chance.choice(NOISE) for _ in range(200)]
    for number, move in enumerate(needed):
        moves.insert(40 * (number + 1), move)
    return moves


@pytest.mark.parametrize(
    ("moves", "fails", "short"),
    [
        pytest.param(
            noisy(story.Start("a"), story.Start("b")),
            lambda moves: [m for m in moves if isinstance(m, story.Start)] == [story.Start("a"), story.Start("b")],
            [story.Start("a"), story.Start("b")],
            id="two moves in their order",
        ),
        pytest.param(
            noisy(ASK),
            lambda moves: any(story.Kill("agent") in getattr(move, "between", ()) for move in moves),
            [story.Run("jobs", between=(story.Kill("agent"),), at=2)],
            id="what is inside of a move",
        ),
        pytest.param(noisy(), lambda moves: True, [], id="nothing matters"),
    ],
)
def test_what_is_left_is_what_matters(moves, fails, short):
    found = shrink.shrink(moves, fails)
    assert [m for m in found if not isinstance(m, story.Rest)] == short


def test_the_number_of_plays_is_bounded():
    played = []

    def fails(moves):
        played.append(1)
        return len(moves) > 150

    shrink.shrink(noisy(), fails, plays=25)
    assert len(played) <= 25
