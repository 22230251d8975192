"""Running the programs of which an installation has one set, while it is this `up`'s turn, and no longer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cluster.remote.leader_election import standby
from cluster.runtime.outage import AWAY, Outage
from cluster.store.connections import connected
from volcano_ui.supervision.supervisor import Program, Supervisor

LEAVE_S = 2.0  # a database that does not answer by then need not be told
T = TypeVar("T")
log = logging.getLogger(__name__)


class Works:
    """The programs of one `up` that wait for its turn; used from one event loop.

    While the database is away nobody can take the turn, and without it these programs do nothing; so they stay.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        programs: Sequence[Program],
        candidate: standby.Candidate,
        say: Callable[[str], None],
    ) -> None:
        self._supervisor = supervisor
        self._programs = programs
        self._candidate = candidate
        self._say = say
        # Renewing and leaving never overtake one another.
        self._thread = ThreadPoolExecutor(1, "programs-lease")
        self._outage = Outage("renewing the lease of the programs", log)
        self._running: asyncio.Task[None] | None = None
        self.leader = ""  # the name of the `up` that was last seen to lead, "" while that is open
        self.leads = False

    async def start(self) -> None:
        """Look for the first time, and go on looking; the programs are started when this returns and leads."""
        while not self.leader:
            await self._turn()
            if not self.leader:
                await asyncio.sleep(standby.RETRY_S)
        self._running = asyncio.create_task(self._forever())

    async def _forever(self) -> None:
        while True:
            await asyncio.sleep(standby.RETRY_S)
            before = self.leads
            await self._turn()
            if self.leads != before:
                self._say(self.standing())

    async def _turn(self) -> None:
        try:
            self.leader = await self._ask(self._candidate.turn)
        except AWAY as error:
            self._outage.lasts(error)
            return
        self._outage.over()
        leads = self.leader == self._candidate.name
        if leads and not self.leads:
            await asyncio.gather(*(self._supervisor.start(program) for program in self._programs))
        elif self.leads and not leads:
            await self._supervisor.end(self._programs)
        self.leads = leads

    def standing(self) -> str:
        """Say in a sentence whether this `up` leads."""
        if self.leads:
            return f"Leads: mirror, workers and beat run here ({self._candidate.name})."
        return f"Stands by: mirror, workers and beat run elsewhere ({self.leader or 'another one'})."

    async def ended(self) -> None:
        """Wait for the end of the looking, which only a defect brings about, and raise it."""
        if self._running is not None:
            await self._running

    def stop(self) -> None:
        """Look no more."""
        if self._running is not None:
            self._running.cancel()

    async def leave(self) -> None:
        """Give the turn to who stands by; call it when the programs have ended."""
        with contextlib.suppress(*AWAY, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._ask(self._candidate.leave)
        self._thread.shutdown(wait=False)

    async def _ask(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, connected, work)
