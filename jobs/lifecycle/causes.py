"""The causes for which pods failed, in a few words: `exit 1 · worker-0, worker-3`, the same wherever a failure is told.

What is equal is told once. Reasons are those that Kubernetes and our nodes write into a pod's or a container's
status; one that has no words here stands as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from jobs.lifecycle import image_waits
from jobs.logs.text import of_lines
from kube import pod_health
from kube.kinds.core import PodPhase
from kube.pod_health import Cause as Kept

MOST_NAMES = 3  # pods that a cause names; the others are counted
MOST_CAUSES = 3  # that a text tells
MOST_FAILURES = 500  # that are looked at, where more pods failed
LONGEST_MESSAGE = 200  # characters of a container's message that are repeated
_CLAUSE_END = re.compile(r"[,;:.](?= )")
START_ERROR = "StartError"  # the reason of a container whose command could not be run
_COULD_NOT_START = "could not start"
_NO_IMAGE = "image cannot be pulled"
_CANNOT_START = "cannot start"
_WORDS = {
    "OOMKilled": "out of memory",
    "DeadlineExceeded": "deadline exceeded",
    "Evicted": "evicted",
    "Preempted": "evicted for a pod of higher priority",
    "Preempting": "evicted for a pod of higher priority",
    "NodeLost": "node lost",
    "NodeShutdown": "node stopped",
    "ProcessLimitExceeded": "too many processes",
    "NoCommand": "no command",
    START_ERROR: _COULD_NOT_START,
    "ContainerCannotRun": _COULD_NOT_START,
    "CreateContainerError": _COULD_NOT_START,
    "CreateContainerConfigError": _COULD_NOT_START,
    "ErrImagePull": _NO_IMAGE,
    "ImagePullBackOff": _NO_IMAGE,
    "ErrImageNeverPull": _NO_IMAGE,
    "InvalidImageName": _NO_IMAGE,
    Kept.IMAGE.value: _NO_IMAGE,
    Kept.SECRET.value: _CANNOT_START,
    Kept.CONFIG_MAP.value: _CANNOT_START,
    Kept.VOLUME.value: _CANNOT_START,
    Kept.DEVICE.value: _CANNOT_START,
    Kept.CONFIGURATION.value: _CANNOT_START,
    Kept.COMMAND.value: _CANNOT_START,
    Kept.STARTS_AGAIN.value: "between two starts",
}
_SAYS_NOTHING = ("", "Error", "Completed")  # an exit code says more than these reasons


class Failure(NamedTuple):
    """How a pod failed: its full name and task, the exit codes of the containers that ended badly, why, and what was said of it.

    `reason` is the pod's, else that of the first of these containers; `message` has one line.
    Of a pod that has not ended it says what keeps it from running, and `kept` is the word for that; where that is a
    crash loop, the rest is how the container ended last, with its code also when that is 0.
    """

    pod: str
    task: str = ""
    exit_codes: tuple[int, ...] = ()
    reason: str = ""
    message: str = ""
    kept: str = ""

    @property
    def short(self) -> str:
        """The pod's name without that of its job: `worker-3`; the whole name of a pod whose name is not made so."""
        own = f"{self.task}-{self.pod.rpartition('-')[2]}"
        return own if self.task and self.pod.endswith(f"-{own}") else self.pod

    @property
    def said(self) -> str:
        """Why the pod failed: `exit 1`, `exit 1 and 42`, `out of memory`, `Poisoned (exit 3)`; or does not run: `crash-looping, exit 1`."""
        if self.kept == Kept.CRASH_LOOP:
            ended = self._replace(kept="").said if self.exit_codes else ""
            return f"crash-looping, {ended}" if ended else "crash-looping"
        if self.reason in _WORDS:
            return _WORDS[self.reason]
        code = f"exit {listed(self.exit_codes)}" if self.exit_codes else ""
        if self.reason in _SAYS_NOTHING:
            return code or "failed"
        return f"{self.reason} ({code})" if code else self.reason


class Ended(Protocol):
    """How a container ended."""

    @property
    def exit_code(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


def failure(
    pod: str, task: str, reason: str, message: str, containers: Iterable[Ended], init: Iterable[Ended]
) -> Failure:
    """Return how a pod failed, by its own reason and message and the containers and init containers of it that have ended.

    What the pod does not say is that of its first container that ended badly. Init containers come last: where one
    failed no container has run, and a sidecar is ended because the containers are over.
    """
    bad = [each for each in (*containers, *init) if each.exit_code]
    its_reason, its_message = (bad[0].reason, bad[0].message) if bad else ("", "")
    codes = tuple(dict.fromkeys(each.exit_code for each in bad))
    return Failure(pod, task, codes, reason or its_reason, one_line(message or its_message))


def listed(exit_codes: Sequence[int]) -> str:
    """Return exit codes in words: `1`, `1 and 42`, `1, 2 and 42`."""
    *first, last = map(str, exit_codes)
    return f"{', '.join(first)} and {last}" if first else last


class Status(Protocol):
    """The status of a pod, as the views of pages and controllers have it."""

    @property
    def phase(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def container_statuses(self) -> Sequence[Any]: ...
    @property
    def init_container_statuses(self) -> Sequence[Any]: ...


def of_status(pod: str, task: str, status: Status) -> Failure:
    """Return how a pod failed, by its status; of one that failed before any container ran, what it waited for."""
    containers, inits = (
        [each.state.terminated for each in statuses if each.state.terminated]
        for statuses in (status.container_statuses, status.init_container_statuses)
    )
    found = failure(pod, task, status.reason, status.message, containers, inits)
    if found.reason or found.exit_codes or status.phase != PodPhase.FAILED:
        return found
    waited = _waits_for(pod, task, PodPhase.PENDING, status)
    return waited._replace(kept="") if waited is not None and not waited.exit_codes else found


def start_obstacle(pod: str, task: str, status: Status, *, is_ending: bool) -> Failure | None:
    """Return what keeps a pod that has its node from running, None where nothing does."""
    return None if is_ending else _waits_for(pod, task, status.phase, status)


def _waits_for(pod: str, task: str, phase: str, status: Status) -> Failure | None:
    statuses, inits = status.container_statuses, status.init_container_statuses
    found = pod_health.trouble(
        phase, is_ending=False, containers=pod_health.states(statuses), inits=pod_health.states(inits)
    )
    if found is None:
        return None
    container, kept = [*statuses, *inits][found.place], found.cause.value
    waiting, ended = container.state.waiting, container.last_state.terminated
    if found.cause is Kept.CRASH_LOOP:
        looping = Failure(pod, task, kept=kept)
        if ended is None:
            return looping
        return looping._replace(exit_codes=(ended.exit_code,), reason=ended.reason, message=one_line(ended.message))
    if waiting is None:
        return Failure(pod, task, reason=kept, kept=kept)
    message = waiting.message
    if found.cause is Kept.IMAGE:
        message = f"{container.image}: {image_waits.registry_message(message)}"
    reason = waiting.reason if found.cause is Kept.OTHER else kept
    return Failure(pod, task, reason=reason, message=one_line(message), kept=kept)


def one_line(text: str) -> str:
    """Return a message as part of a sentence; of one that is long, and maybe of many lines, the first whole clauses and "…"."""
    line = " ".join(of_lines(text).split()).rstrip(".")
    if len(line) <= LONGEST_MESSAGE:
        return line
    line = line[: LONGEST_MESSAGE - 2]
    # Up to the last clause that ends in it, outside brackets; up to its last word where that is much more.
    ends = [found.start() for found in _CLAUSE_END.finditer(line)]
    whole = [end for end in ends if line.count("(", 0, end) == line.count(")", 0, end)]
    if whole and whole[-1] >= LONGEST_MESSAGE // 4:
        return f"{line[: whole[-1]]} …"
    return f"{(line.rpartition(' ')[0] or line).rstrip(',;:.')} …"


class Named(NamedTuple):
    """A pod that failed, as a text names it; `times` is how many pods of its name did, one after another."""

    pod: str
    short: str
    times: int = 1

    def __str__(self) -> str:
        return self.short if self.times == 1 else f"{self.short} ({self.times} times)"


class Cause(NamedTuple):
    """Failures that are told as one: `said` is why, with the message where all have the same."""

    said: str
    failures: Sequence[Failure]

    @property
    def named(self) -> Sequence[Named]:
        """The pods that are named, each once."""
        return self._pods[:MOST_NAMES]

    @property
    def more(self) -> int:
        """How many others there are, each name counted once."""
        return max(len(self._pods) - MOST_NAMES, 0)

    @property
    def names(self) -> str:
        """`worker-0, worker-3 (2 times) and 5 more`"""
        return f"{', '.join(map(str, self.named))}{f' and {self.more} more' if self.more else ''}"

    @property
    def _pods(self) -> list[Named]:
        times = Counter(each.pod for each in self.failures)
        known = {each.pod: each.short for each in self.failures}
        return [Named(pod, known[pod], number) for pod, number in times.items()]


def causes(failures: Iterable[Failure]) -> list[Cause]:
    """Return why pods failed, the cause of most of them first, and the pods of each in the order of their names."""
    found: dict[str, list[Failure]] = {}
    for failure in failures:
        found.setdefault(failure.said, []).append(failure)
    told = []
    for said, alike in found.items():
        # Failures are parted by their messages where the pods of each task have one; else all have none.
        is_of_tasks = len({(each.task, each.message) for each in alike}) == len({each.task for each in alike})
        by_message: dict[str, list[Failure]] = {}
        for each in alike:
            by_message.setdefault(each.message if is_of_tasks else "", []).append(each)
        for message, own in by_message.items():
            told.append(Cause(f"{said}: {message}" if message else said, sorted(own, key=_natural)))
    return sorted(told, key=lambda each: (-len(each.failures), _natural(each.failures[0])))


def _natural(failure: Failure) -> tuple[str, int, str]:
    """Put worker-2 before worker-10."""
    stem, _, number = failure.pod.rpartition("-")
    return (stem, int(number), "") if number.isascii() and number.isdigit() else (failure.pod, -1, failure.said)


def cause(failures: Iterable[Failure], more: int = 0) -> str:
    """Return why pods failed: `exit 1 · worker-0, worker-3; out of memory · ps-0`; empty when none is given.

    `more` is how many pods failed besides those that are given.
    """
    found = causes(failures)
    if not found:
        return ""
    if len(found) == 1:
        (only,) = found
        names, others = ", ".join(map(str, only.named)), only.more + more
        return f"{only.said} · {names}{f' and {others} more' if others else ''}"
    told = [f"{each.said} · {each.names}" for each in found[:MOST_CAUSES]]
    others = more + sum(len(each.failures) for each in found[MOST_CAUSES:])
    return "; ".join([*told, *([f"{others} more"] if others else [])])


def sentence(failures: Iterable[Failure], more: int = 0) -> str:
    """Return `cause` as a sentence; empty when there is none."""
    told = cause(failures, more)
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def without(message: str, told: str) -> str:
    """Return a job's message without the sentence about its failures, where that is told apart from it."""
    return message.removeprefix(told).removesuffix(told).strip() if told else message
