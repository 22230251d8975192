"""How far the writes of one group are: a pure state machine.

It says which writes are to be sent, takes the verdict on each, and says when nothing is left to be sent. The
runs of a group follow one another (`order`). A refusal ends the group, when what is under way is answered; what was
done stays, but for the bindings of a gang that would be a half one (`gangs`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cluster.remote.dispatch import gangs, order, verdicts
from cluster.remote.dispatch.verdicts import Again, Done, Refused, Verdict
from cluster.writes import Group
from kube.errors import ApiError
from kube.meta import Object

MAX_FAILURES = 5  # of a server that answers others, before a write is given up


@dataclass
class Progress:
    """One group on its way. With is_repeat all of its writes may have been carried out before."""

    group: Group
    is_repeat: bool = False
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    error: ApiError | None = None
    rollback: Progress | None = None  # the group that takes back what was bound

    def __post_init__(self) -> None:
        self._runs = order.runs(self.group.writes)
        self._doomed = order.doomed(self.group.writes)
        self._repeats = set(range(len(self.group.writes))) if self.is_repeat else set()
        self._under_way: set[int] = set()
        self._failures: dict[int, int] = {}

    def to_send(self) -> list[int]:
        """Return the writes that can be sent now: what is open of the first run that is not done."""
        if self.error is not None:
            return []
        for run in self._runs:
            left = [number for number in run if number not in self.verdicts]
            if left:
                return [number for number in left if number not in self._under_way]
        return []

    def is_repeated(self, number: int) -> bool:
        """Whether a write may have been carried out before."""
        return number in self._repeats

    def is_doomed(self, number: int) -> bool:
        """Whether the group deletes the object of a write afterwards."""
        return number in self._doomed

    def note_sent(self, number: int) -> None:
        """Note that a write is under way."""
        self._under_way.add(number)

    def note_verdict(self, number: int, verdict: Verdict) -> Again | None:
        """Note the verdict on a write that is under way; return it when the write is to be sent again."""
        self._under_way.discard(number)
        if isinstance(verdict, Again):
            if verdict.may_be_done:
                self._repeats.add(number)
            # A write at which a server fails that answers others must not hold up all of them.
            if verdict.may_be_done and not verdict.is_away:
                self._failures[number] = self._failures.get(number, 0) + 1
            if self._failures.get(number, 0) < MAX_FAILURES:
                return verdict
            verdict = Refused(verdicts.unknown_outcome(verdict.error))
        self.verdicts[number] = verdict
        if isinstance(verdict, Refused) and self.error is None:
            self.error = verdict.error
        return None

    @property
    def is_answered(self) -> bool:
        """Whether nothing is under way nor to be sent."""
        return not self._under_way and not self.to_send()

    def roll_back(self, ended: Collection[str]) -> Progress | None:
        """Return what deletes the bound pods of half a gang, once the group is answered; None where that is nothing."""
        if self.error is not None and self.rollback is None:
            # What may have been carried out, as neither an answer nor a later read has decided. A pod that an earlier
            # process has marked to be taken back may not have been deleted yet, so it counts as one of them.
            unknown = {number for number in self._repeats if not _tells(self.verdicts.get(number))}
            writes = gangs.rollback_writes(self.group, self.verdicts, unknown, ended)
            self.rollback = Progress(Group(writes), is_repeat=True)
        return self.rollback

    def objects(self) -> Iterator[tuple[int, Object]]:
        """Yield the objects of the server's answers with the indexes of their writes in the group, in their order."""
        for number, verdict in sorted(self.verdicts.items()):
            if isinstance(verdict, Done) and verdict.object is not None:
                yield number, verdict.object
            elif isinstance(verdict, Refused) and verdict.current is not None:
                yield number, verdict.current


def _tells(verdict: Verdict | None) -> bool:
    if isinstance(verdict, Refused):
        return verdict.current is not None and not verdicts.is_marked_for_rollback(verdict.current)
    return isinstance(verdict, Done)
