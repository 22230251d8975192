"""Making a story short: leaving out moves, and parts of moves, as long as the same is found.

Zeller's ddmin over the moves, then over what happens inside of each: a story
that was shrunk has no move that could be left out alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from proof.simulation import story
from proof.simulation.story import Move


@dataclass
class Budget:
    """How often a story may still be played."""

    plays: int

    def spend(self) -> bool:
        """Take one; False when there is none."""
        self.plays -= 1
        return self.plays >= 0


def shrink(moves: Sequence[Move], fails: Callable[[Sequence[Move]], bool], plays: int = 2000) -> list[Move]:
    """Return the shortest list of moves found for which `fails` still holds; it must hold for these."""
    budget = Budget(plays)
    short = list(moves)
    while True:
        before = list(short)
        short = _calmer(short, fails, budget)
        short = _fewer(short, fails, budget)
        short = _simpler(short, fails, budget)
        if short == before or budget.plays <= 0:
            return short


def _fewer(moves: list[Move], fails: Callable[[Sequence[Move]], bool], budget: Budget) -> list[Move]:
    """Leave out stretches, from long ones to single moves."""
    size = max(1, len(moves) // 2)
    while size:
        start = 0
        while start < len(moves):
            candidate = moves[:start] + moves[start + size :]
            if len(candidate) < len(moves) and budget.spend() and fails(candidate):
                moves = candidate
            else:
                start += size
        size //= 2
    return moves


def _calmer(moves: list[Move], fails: Callable[[Sequence[Move]], bool], budget: Budget) -> list[Move]:
    """Put one rest in the place of whole stretches of steps and pauses."""
    size = len(moves)
    while size > 1:
        start = 0
        while start < len(moves):
            stretch = moves[start : start + size]
            rest = _rest_of(stretch)
            if len(rest) < len(stretch):
                candidate = moves[:start] + rest + moves[start + size :]
                if budget.spend() and fails(candidate):
                    moves = candidate
                    start += len(rest)
                    continue
            start += size
        size //= 2
    return moves


def _rest_of(stretch: Sequence[Move]) -> list[Move]:
    """Return a stretch with each run of steps and pauses as one rest of the same length."""
    found: list[Move] = []
    for move in stretch:
        if isinstance(move, story.Run | story.Pass | story.Rest):
            us = 0 if isinstance(move, story.Run) else move.us
            if found and isinstance(found[-1], story.Rest):
                found[-1] = story.Rest(found[-1].us + us)
            else:
                found.append(story.Rest(max(1, us)))
        else:
            found.append(move)
    return found


def _simpler(moves: list[Move], fails: Callable[[Sequence[Move]], bool], budget: Budget) -> list[Move]:
    """Take what is not needed out of single moves."""
    for index in range(len(moves)):
        while True:
            for other in _plainer(moves[index]):
                candidate = [*moves[:index], other, *moves[index + 1 :]]
                if budget.spend() and fails(candidate):
                    moves = candidate
                    break
            else:
                break
    return moves


def _plainer(move: Move) -> Iterator[Move]:
    """Yield a move with something less."""
    if isinstance(move, story.Run | story.Ask) and (move.dies or move.fails):
        yield replace(move, dies="", fails="", at=move.at if move.between else 0)
    if isinstance(move, story.Run):
        for index, other in enumerate(move.between):
            yield replace(move, between=move.between[:index] + move.between[index + 1 :])
            for plain in _plainer(other):
                yield replace(move, between=(*move.between[:index], plain, *move.between[index + 1 :]))
