"""Sending writes of plans: one pool of threads for each process, and how fast requests go out.

Threads only ask; what the answers mean is decided by rules (`verdicts`, `progress`). Who sends waits for a moment at
most and comes back, so that one consumer never keeps the others of its process waiting.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import cache
from random import Random, SystemRandom

from cluster import clock
from cluster.remote.dispatch import requests, verdicts
from cluster.remote.dispatch.progress import Progress
from cluster.remote.dispatch.requests import Request
from cluster.remote.dispatch.verdicts import Again, Look, Verdict
from cluster.remote.http.request import RestClient, Unreachable, decode
from cluster.remote.mirroring import reflection
from cluster.writes import Group, Write
from kube.errors import ApiError, NotFound, ServiceUnavailable
from kube.meta import Object

AT_ONCE = 16  # requests of one process
ANSWER_S = 10.0


@cache
def pool() -> ThreadPoolExecutor:
    """Return this process's threads."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="sending")


class Pace:
    """How fast a process may ask: not at all for a while when the server says so, or answers nobody."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or SystemRandom()
        self._failures = 0
        self.paused_until = 0.0

    def room(self, now: float, under_way: int) -> int:
        """Return how many more requests may be sent; one alone tries whether a server is back."""
        if now < self.paused_until:
            return 0
        return max(0, (1 if self._failures else AT_ONCE) - under_way)

    def note_verdict(self, verdict: Verdict, now: float) -> None:
        """Note what the server answered, or that it did not."""
        if not isinstance(verdict, Again):
            self._failures = 0
        elif verdict.is_away:
            self._failures += 1
            wait_s = max(verdict.after_s, reflection.wait_s(self._failures, self._random.random()))
            self.paused_until = max(self.paused_until, now + wait_s)
        elif not verdict.may_be_done:
            self.paused_until = max(self.paused_until, now + verdict.after_s)

    def wait_s(self, tries: int) -> float:
        """Return how long one write waits that the server failed at."""
        return reflection.wait_s(tries, self._random.random())


class Sending:
    """The groups of one plan on their way. With is_repeat they may have been carried out before."""

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        is_repeat: bool,
        connect: Callable[[], RestClient],
        threads: Executor,
        pace: Pace,
    ) -> None:
        self.progress = [Progress(group, is_repeat) for group in groups]
        self._connect, self._threads, self._pace = connect, threads, pace
        self._open = list(self.progress)
        self._under_way: dict[Future[Verdict], tuple[Progress, int]] = {}
        self._tries: dict[tuple[int, int], int] = {}
        self._resting: list[tuple[float, int, Progress, int]] = []  # a heap: due, place in line, what
        self._places = itertools.count()

    def go_on(
        self, within_s: float, may_send: Callable[[], bool], ended: Callable[[Sequence[Group]], Collection[str]]
    ) -> bool:
        """Send, and take answers, until all groups are answered (True), the time is over or nothing can be sent.

        `ended` tells which pods of groups have ended, by their uids.
        """
        until = clock.monotonic() + within_s
        while True:
            under_way: list[Progress] = []
            failed: list[Progress] = []
            for each in self._open:
                if not each.is_answered:
                    under_way.append(each)
                elif each.error is not None and each.group.minima:
                    failed.append(each)
            # What takes back a half gang comes in the place of its group.
            gone = ended([each.group for each in failed]) if failed else ()
            rollbacks = [each.roll_back(gone) for each in failed]
            self._open = [*under_way, *(each for each in rollbacks if each is not None)]
            if not self._open:
                return True
            if may_send():
                self._send()
            left = until - clock.monotonic()
            if not self._under_way or left <= 0:
                return False
            wait(self._under_way, timeout=left, return_when=FIRST_COMPLETED)
            self._take_answers()

    @property
    def next_look_s(self) -> float:
        """After how many seconds something can be sent again."""
        now = clock.monotonic()
        soonest = self._resting[0][0] if self._resting else now
        return max(0.02, max(self._pace.paused_until, soonest) - now)

    def _send(self) -> None:
        now = clock.monotonic()
        resting = {(id(progress), number) for _, _, progress, number in self._resting}
        while self._resting and self._resting[0][0] <= now:
            _, _, progress, number = heapq.heappop(self._resting)
            resting.discard((id(progress), number))
        room = self._pace.room(now, len(self._under_way))
        for progress in self._open:
            if room <= 0:
                return
            for number in progress.to_send():
                if room <= 0:
                    return
                if (id(progress), number) in resting:
                    continue
                write = progress.group.writes[number]
                is_repeat, is_doomed = progress.is_repeated(number), progress.is_doomed(number)
                progress.note_sent(number)
                future = self._threads.submit(attempt, self._connect, write, is_repeat=is_repeat, is_doomed=is_doomed)
                self._under_way[future] = progress, number
                room -= 1

    def _take_answers(self) -> None:
        now = clock.monotonic()
        for future in [each for each in self._under_way if each.done()]:
            progress, number = self._under_way.pop(future)
            verdict = future.result()
            self._pace.note_verdict(verdict, now)
            again = progress.note_verdict(number, verdict)
            if again is not None and not again.is_away:
                key = (id(progress), number)
                tries = self._tries[key] = self._tries.get(key, 0) + 1
                due = now + max(again.after_s, self._pace.wait_s(tries))
                heapq.heappush(self._resting, (due, next(self._places), progress, number))


def attempt(connect: Callable[[], RestClient], write: Write, *, is_repeat: bool, is_doomed: bool) -> Verdict:
    """Ask for one write, and look at its object where the answer does not tell enough."""
    try:
        connection = connect()
    except Unreachable as error:
        return _unheard(error, may_be_done=is_repeat)
    try:
        return verdicts.of_answer(write, _ask(connection, requests.of(write)))
    except Unreachable as error:
        return _unheard(error, may_be_done=is_repeat or error.sent)
    except ApiError as error:
        verdict = verdicts.of_error(write, error, is_repeat=is_repeat, is_doomed=is_doomed)
    if not isinstance(verdict, Look):
        return verdict
    try:
        current = _ask(connection, requests.get_request(write))
    except Unreachable as error:
        return _unheard(error, may_be_done=is_repeat)
    except NotFound:
        return verdicts.of_current(write, verdict.error, None, is_repeat=is_repeat, is_doomed=is_doomed)
    except ApiError as why:
        return verdicts.of_unreadable(verdict.error, why)
    return verdicts.of_current(write, verdict.error, current, is_repeat=is_repeat, is_doomed=is_doomed)


def look(connect: Callable[[], RestClient], write: Write) -> Verdict:
    """Look whether the object that a write is about is there; a refusal says why it is not."""
    try:
        current = _ask(connect(), requests.get_request(write))
    except Unreachable as error:
        return _unheard(error, may_be_done=False)
    except ApiError as error:
        return verdicts.of_unreadable(error, error)
    return verdicts.of_look(write, current)


def _ask(connection: RestClient, call: Request) -> Object:
    return decode(
        connection.request(
            call.method, call.path, query=call.query, body=call.body, media_type=call.media_type, answer_s=ANSWER_S
        )
    )


def _unheard(error: Unreachable, *, may_be_done: bool) -> Again:
    return Again(ServiceUnavailable(f"{error.server}: {error.cause}"), may_be_done, is_away=True)
