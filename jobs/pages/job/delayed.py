"""What policies will do with a job when a delay is over."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.consumers import consumer
from cluster.store import Stored
from jobs.controller import asked
from jobs.rules import words

JOBS_CONSUMER = "jobs"


@dataclass(frozen=True, slots=True)
class Delayed:
    """An action, as an instruction; when it is due, in ms; and what it answers, in a sentence."""

    said: str
    due: int
    why: str


def of_job(stored: Stored) -> list[Delayed]:
    """Return the delayed actions that a job's policies have asked for and nothing has called off, the next first."""
    timers = consumer.timers_for(JOBS_CONSUMER, asked.ASKED, stored.key)
    waiting = [each for timer in timers for each in asked.read(timer)]
    found = [
        Delayed(words.ACTION_WORDS[each.action].said, each.due, each.why)
        for each in waiting
        if each.delay_ms and each.uid == stored.uid and each.action in words.ACTION_WORDS
    ]
    return sorted(found, key=lambda each: each.due)
