"""Playing: a world from a seed, which gives a story, and a story once more."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from cluster.store import Change
from proof.invariants import Broken, Judge
from proof.invariants.judge import BY_REQUESTS, LOSSLESS_ONLY
from proof.simulation import shrink
from proof.simulation.director import USUAL, Director, Weights
from proof.simulation.story import Move, Setup, Story
from proof.simulation.world import World

PROOF = str(Path(__file__).parents[1])


@dataclass
class Found:
    """What is wrong, in words; `kind` is the same for stories that find the same."""

    kind: str
    text: str
    trace: str = ""


@dataclass
class Played:
    """What came of playing a world."""

    setup: Setup
    moves: list[Move] = field(default_factory=list)
    found: Found | None = None
    hours: float = 0.0
    revisions: int = 0
    requests: int = 0
    digest: str = ""

    @property
    def story(self) -> Story:
        """What was played, as data."""
        return Story(self.setup, tuple(self.moves), self.found.kind if self.found else "")


class _Digest(Judge):
    """A judge that makes one number of the log: two runs with the same have written the same, byte for byte."""

    def __init__(self, *, only: Collection[str] | None) -> None:
        super().__init__(only=only)
        self.hash = blake2b(digest_size=16)

    def take(self, change: Change) -> None:
        c = change
        self.hash.update(repr((c.revision, c.resource, c.namespace, c.name, c.uid, c.verb, c.at, c.body)).encode())
        super().take(change)


def from_seed(
    seed: int,
    hours: float,
    weights: Weights = USUAL,
    on_move: Callable[[World, Move], None] | None = None,
    most: int | None = None,
) -> Played:
    """Play a world that a seed decides, or its first moves."""
    director = Director(seed, hours, weights)
    return _play(director.setup, lambda world: islice(director.moves(world), most), on_move)


def again(
    story: Story,
    on_move: Callable[[World, Move], None] | None = None,
    look_at: Callable[[Exception], None] | None = None,
) -> Played:
    """Play a story; `look_at` is given what is found while the world still stands."""
    return _play(story.setup, lambda world: story.moves, on_move, look_at)


def shorten(played: Played, plays: int, until: Callable[[], bool] = lambda: True) -> Story:
    """Return the shortest story that finds the same, in so many plays at most and as long as `until` says so."""

    def fails(moves: Sequence[Move]) -> bool:
        outcome = again(Story(played.setup, tuple(moves))).found if until() else None
        return outcome is not None and outcome.kind == kind

    kind = played.found.kind if played.found else ""
    return Story(played.setup, tuple(shrink.shrink(played.moves, fails, plays)), kind)


def _play(
    setup: Setup,
    moves: Callable[[World], Iterable[Move]],
    on_move: Callable[[World, Move], None] | None,
    look_at: Callable[[Exception], None] | None = None,
) -> Played:
    played = Played(setup)
    digest = _Digest(only=_invariants(setup))
    with World(setup, digest) as world:
        try:
            for move in moves(world):
                played.moves.append(move)
                try:
                    world.perform(move)
                finally:
                    if on_move:
                        on_move(world, move)
        except Exception as error:
            played.found = _found(error)
            if look_at:
                look_at(error)
        played.hours = world.clock.monotonic() / 3600
        played.revisions, played.requests = world.revision, len(world.answers)
    played.digest = digest.hash.hexdigest()
    return played


def _invariants(setup: Setup) -> frozenset[str] | None:
    """Return which invariants hold in a world; None for all."""
    if not setup.is_remote:
        return None
    return BY_REQUESTS - LOSSLESS_ONLY if setup.forgets else BY_REQUESTS


def _found(error: Exception) -> Found:
    if isinstance(error, Broken):
        return Found(error.invariant, str(error))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(PROOF)]
    where = f" in {frames[-1].name}" if frames else ""
    return Found(f"{type(error).__name__}{where}", str(error), traceback.format_exc())
