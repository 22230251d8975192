"""What those meet who ask the API server from elsewhere: so many requests, one way of failing after the other."""

from __future__ import annotations

from proof.harness.answers import Answer
from proof.simulation.story import Trouble

SLOW = "slow"  # the answer takes as long as the trouble says, while all others go on
FORGOTTEN = "forgotten"  # what a watch goes on from, or a list: 410
CUT = "cut"  # the watches that are open
FORGETS = "forgets"  # the server's whole history
DEATHS = (Answer.KILLED_BEFORE, Answer.KILLED_AFTER)  # processes are killed by moves of their own
FAILING = tuple(each.value for each in Answer if each is not Answer.DONE and each not in DEATHS)
LOSSLESS = (*FAILING, SLOW, CUT)  # with which all is heard that happens
KINDS = (*LOSSLESS, FORGOTTEN, FORGETS)


class Troubles:
    """Those that are to come, in their order."""

    def __init__(self) -> None:
        self._left: list[tuple[Trouble, int]] = []

    def add(self, trouble: Trouble) -> None:
        """Put a trouble behind those that are to come."""
        self._left.append((trouble, trouble.requests))

    def clear(self) -> None:
        """Have no more of them."""
        self._left.clear()

    def next(self, *, reads_on: bool) -> Trouble | None:
        """Return what the next request meets. Only one that reads on from a version can meet that it is forgotten."""
        for index, (trouble, left) in enumerate(self._left):
            if trouble.what == FORGOTTEN and not reads_on:
                continue
            self._left[index : index + 1] = [(trouble, left - 1)] if left > 1 else []
            return trouble
        return None
