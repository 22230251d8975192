"""Running the programs of which an installation has one set, while this `up` leads."""

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

LEAVE_S = 2.0  # how long to try to give up the lease; it expires by itself anyway
T = TypeVar("T")
log = logging.getLogger(__name__)


class Works:
    """The programs of one `up` that run while it leads; used from one event loop.

    While the database is away no other `up` can become the leader, and these programs can do nothing; so they stay.
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
        # One thread: renewing and leaving must not overtake one another.
        self._thread = ThreadPoolExecutor(1, "programs-lease")
        self._outage = Outage("renewing the lease of the programs", log)
        self._running: asyncio.Task[None] | None = None
        self.leader = ""  # the name of the `up` that was last seen to lead, "" while that is open
        self.leads = False

    async def start(self) -> None:
        """Try to lead, and go on trying in the background; if this `up` leads, its programs are started on return."""
        while not self.leader:
            await self._renew()
            if not self.leader:
                await asyncio.sleep(standby.RETRY_S)
        self._running = asyncio.create_task(self._forever())

    async def _forever(self) -> None:
        while True:
            await asyncio.sleep(standby.RETRY_S)
            before = self.leads
            await self._renew()
            if self.leads != before:
                self._say(self.status_text())

    async def _renew(self) -> None:
        try:
            self.leader = await self._in_thread(self._candidate.turn)
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

    def status_text(self) -> str:
        """Return in a sentence whether this `up` leads."""
        if self.leads:
            return f"Leads: mirror, workers and beat run here ({self._candidate.name})."
        return f"Stands by: mirror, workers and beat run elsewhere ({self.leader or 'another one'})."

    async def ended(self) -> None:
        """Wait until the background task ends, which only a defect makes it do, and raise its exception."""
        if self._running is not None:
            await self._running

    def stop(self) -> None:
        """Stop trying to lead."""
        if self._running is not None:
            self._running.cancel()

    async def leave(self) -> None:
        """Give up the lease to another `up`; call it when the programs have ended."""
        with contextlib.suppress(*AWAY, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._in_thread(self._candidate.leave)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, connected, work)
