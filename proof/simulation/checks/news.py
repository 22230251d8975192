"""How soon those who work for nodes know what the log says, while nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterable

from cluster import clock
from cluster.store import Change
from node.listen import SAFETY_S, Listener
from proof.invariants import Broken
from proof.simulation.parts.processes import Nodes, Process

NAME = "nodes hear in time"
LATE_S = SAFETY_S + 1.0  # the store is asked so often although nothing was heard


class ReadLag:
    """The newest change of each kind, and since when somebody has not read one that he follows.

    Source: node/listen.py: a nudge has the store asked at once, and a lost one costs a few seconds. A
    node that reads late begins, stops and ends its pods late, and one that never reads never does.
    """

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}  # by kind: a revision
        self._behind: dict[str, float] = {}  # by process: a monotonic second

    def take(self, change: Change) -> None:
        """Note a change."""
        self._newest[change.resource] = change.revision

    def doubt(self) -> None:
        """Forget who is behind: something went wrong, or somebody was not let work."""
        self._behind.clear()

    def check(self, processes: Iterable[Process]) -> None:
        """Raise Broken when somebody is behind for too long; everybody has done what he has to do at this moment."""
        for process in processes:
            if isinstance(process, Nodes) and process.works is not None:
                self._look_at(process.name, process.works.listener)

    def _look_at(self, name: str, listener: Listener) -> None:
        newest = max((self._newest.get(kind.id, 0) for kind in listener._kinds), default=0)
        if listener.position >= newest:
            self._behind.pop(name, None)
            return
        late = clock.monotonic() - self._behind.setdefault(name, clock.monotonic())
        if late > LATE_S:
            text = f"has read up to revision {listener.position}, and has had news for {late:.1f} s"
            raise Broken(NAME, newest, name, text)
