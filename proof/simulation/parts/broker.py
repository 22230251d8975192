"""Redis and Celery's queues, as far as a world needs them: a carrier of nudges whose faults are handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.runtime import nudge
from cluster.runtime.registry import Registration
from proof.simulation.parts.virtual import VirtualClock

DOUBT_S = 30.0


@dataclass(slots=True)
class Message:
    """A task in a queue: a consumer's shard is to run, or `name` is the task and the shard is -1."""

    queue: str
    name: str
    shard: int
    due: float


@dataclass
class Broker:
    """A `nudge.Carrier`. While it is away, it raises what Redis raises and forgets nothing."""

    clock: VirtualClock
    messages: list[Message] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)
    listeners: list[Callable[[int], None]] = field(default_factory=list)
    is_away: bool = False
    # Until this second, work may be undone of which no message tells.
    doubtful_until: float = float("inf")

    def publish(self, revision: int) -> None:
        self._answer()
        for listener in list(self.listeners):
            listener(revision)

    def claim(self, cursor: str) -> bool:
        self._answer()
        now = self.clock.monotonic()
        if self.marks.get(cursor, -1.0) > now:
            return False
        self.marks[cursor] = now + nudge.QUEUED_MS / 1000
        return True

    def release(self, cursor: str) -> None:
        self._answer()
        self.marks.pop(cursor, None)

    def queue(self, registration: Registration, shard: int, delay_s: float) -> None:
        self.put(registration.queue_of(shard), registration.name, shard, delay_s)

    def put(self, queue: str, name: str, shard: int = -1, delay_s: float = 0.0) -> None:
        """Put a task into a queue."""
        self._answer()
        self.messages.append(Message(queue, name, shard, self.clock.monotonic() + delay_s))

    def doubt(self) -> None:
        """Note that something went wrong: for a while only ticks find all that is to be done."""
        self.doubtful_until = self.clock.monotonic() + DOUBT_S

    async def subscribe(self, listener: Callable[[int], None]) -> None:
        self._answer()
        self.listeners.append(listener)
        listener(nudge.NEWEST)
        try:
            await asyncio.get_running_loop().create_future()  # until the process ends
        finally:
            self.listeners.remove(listener)

    def _answer(self) -> None:
        if self.is_away:
            raise ConnectionRefusedError("the simulated Redis is away")
