"""`python -m proof.simulation.reception`: what the API answers to each kind of wish, in a world without faults."""

# ruff: noqa: E402, T201  Python and Django are set up before anything is imported; a program talks

from __future__ import annotations

from proof.simulation import process

process.prepare("proof.simulation.reception")

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random

from proof.invariants import Judge
from proof.simulation.parts.server import Answer
from proof.simulation.people.client import KINDS, Client, setup
from proof.simulation.people.request import Request
from proof.simulation.story import Ask, Setup
from proof.simulation.world import World

WISHES = 400
TURN = 10  # wishes between two turns of the cluster
TURN_S = 3.0
PASSES = 20  # at most, through all kinds, for those that did not come by chance


class Reception:
    """What the server said, by kind of wish."""

    def __init__(self) -> None:
        self.by_kind: dict[str, Counter[bool]] = defaultdict(Counter)
        self.refusals: list[str] = []

    def note(self, kind: str, request: Request, answer: Answer) -> None:
        """Note an answer."""
        is_accepted = answer.status < 300
        self.by_kind[kind][is_accepted] += 1
        if not is_accepted:
            words = f"{KINDS[kind].meant}, {kind}, {request.wish}: {answer.status}"
            self.refusals.append(f"{words} {answer.object['message']}")

    def missing(self) -> list[str]:
        """The kinds that were never answered as they are meant to be."""
        return [name for name, kind in KINDS.items() if not self.by_kind[name][kind.meant != "refused"]]

    def share(self, meant: str) -> float:
        """The share of the wishes meant to be accepted, or refused, that were."""
        found = [counts for name, counts in self.by_kind.items() if KINDS[name].meant == meant]
        return sum(counts[meant == "accepted"] for counts in found) / sum(c.total() for c in found)

    def lines(self) -> Iterator[str]:
        """The table, each refusal, and the shares."""
        for name, counts in sorted(self.by_kind.items()):
            yield f"{name:38} {KINDS[name].meant:9} accepted {counts[True]:3} of {counts.total():3}"
        yield from sorted(self.refusals)
        for meant in ("accepted", "refused"):
            yield f"share {meant}: {self.share(meant):.3f}"
        yield f"never answered as meant: {', '.join(self.missing()) or 'none'}"


class Life:
    """A client and the cluster that it lives with."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.client = Client(Random(seed))
        self.reception = Reception()
        self.sent = 0

    def live(self, wishes: int) -> None:
        """Want so many things, as they come."""
        for request in setup():
            self._send("", request)
        for _ in range(wishes):
            self._send(*self.client.draw(self.world.picture))

    def insist(self) -> None:
        """Want one thing of each kind, again and again, until each was answered as it is meant to be."""
        for _ in range(PASSES):
            for kind in KINDS:
                self._attempt(kind)
                # What it needs may be there for a moment only.
                for missing in self.reception.missing():
                    self._attempt(missing)
            if not self.reception.missing():
                return

    def _attempt(self, kind: str) -> None:
        request = self.client.make(kind, self.world.picture)
        if request is not None:
            self._send(kind, request)

    def _send(self, kind: str, request: Request) -> None:
        answer = self.world.ask(Ask(request))
        self.world.look()
        if kind:
            self.reception.note(kind, request, answer)
        elif answer.status != 201:
            raise AssertionError(f"{request.wish}: {answer.status} {answer.body.decode()}")
        self.sent += 1
        if self.sent % TURN == 0:
            self.world.rest_until(self.world.clock.monotonic() + TURN_S)


def main() -> int:
    """Print the table; 1 when a kind was never answered as it is meant to be."""
    parser = argparse.ArgumentParser(prog="python -m proof.simulation.reception", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wishes", type=int, default=WISHES, help="how many come by chance, before the rest")
    options = parser.parse_args()
    with World(Setup(seed=options.seed), Judge()) as world:
        life = Life(world, options.seed)
        life.live(options.wishes)
        life.insist()
    print("\n".join(life.reception.lines()))
    return 1 if life.reception.missing() else 0


if __name__ == "__main__":
    sys.exit(main())
